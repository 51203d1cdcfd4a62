"""The cache of tiles that the workers of a host share: its limit, its sharing, and what the death of workers leaves."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from linnet.errors import StoreError
from linnet.tiles.codec import encoded
from linnet.workers import cache as caches
from linnet.workers.cache import TileCache, cache_for
from linnet.workers.store import open_store

PAGE = os.sysconf("SC_PAGE_SIZE")


def tile_of(number, pages=3):
    """A tile that fills so many pages, header and all."""
    return np.full(pages * PAGE // 8 - 8, float(number))


def harm(path):
    """Change the first element of a stored tile where it is."""
    with open(path, "r+b") as file:
        file.seek(64)
        file.write(np.float64(5).tobytes())


@pytest.fixture
def base(tmp_path):
    return tmp_path


@pytest.fixture
def make(base):
    made = []

    def one(limit=100 * PAGE, name="job", **options):
        made.append(TileCache(name, limit, **{"base": base, **options}))
        return made[-1]

    yield one
    for each in made:
        each.close()


def files(cache):
    return sorted(path.name for path in (cache.path / "tiles").iterdir())


def truth(cache):
    return sum(-(-path.stat().st_size // PAGE) * PAGE for path in (cache.path / "tiles").iterdir())


class TestHolding:
    def test_what_was_put_is_got_by_all(self, make):
        first, second = make(), make()
        for order in "CF":
            tile = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
            assert first.put(f"job/{order}", tile)
            for cache in (first, second):
                found = cache.get(f"job/{order}")
                assert np.array_equal(found, tile)
                assert found.strides == tile.strides
                assert not found.flags.writeable

    def test_other_names_are_other_caches(self, make):
        make(name="a").put("key", tile_of(1))
        assert make(name="b").get("key") is None

    def test_a_tile_is_there_once(self, make):
        """It is mapped, not read: what one process changes in the file the other sees."""
        first, second = make(), make()
        first.put("key", tile_of(1, pages=8))
        a, b = first.get("key"), second.get("key")
        harm(first.path / "tiles" / "key")
        assert a[0] == b[0] == 5

    @pytest.mark.parametrize("pages", [1, 8])
    @pytest.mark.parametrize("known", [True, False])
    def test_a_tile_that_was_changed_is_not_given(self, make, pages, known):
        """Whether this process has it mapped already or not."""
        cache = make()
        cache.put("key", tile_of(1, pages))
        if known:
            assert cache.get("key")[0] == 1
        harm(cache.path / "tiles" / "key")
        assert cache.get("key") is None
        assert files(cache) == []
        assert cache.put("key", tile_of(1, pages))
        assert cache.get("key")[0] == 1
        assert cache.used == truth(cache)

    def test_a_file_that_was_exchanged_is_verified(self, make):
        cache = make()
        cache.put("key", tile_of(1))
        cache.put("other", tile_of(2))
        assert cache.get("key")[0] == 1
        os.replace(cache.path / "tiles" / "other", cache.path / "tiles" / "key")
        assert cache.get("key")[0] == 2

    def test_again_it_is_the_same_object(self, make):
        cache = make()
        cache.put("key", tile_of(1))
        assert cache.get("key") is cache.get("key")

    def test_counters(self, make):
        cache = make()
        tile = tile_of(1)
        cache.put("a", tile)
        cache.put("a", tile)
        cache.get("a"), cache.get("a"), cache.get("b")
        assert (cache.hits, cache.misses, cache.hit_bytes, cache.put_bytes) == (
            2,
            1,
            2 * tile.nbytes,
            tile.nbytes,
        )
        assert (cache.used, len(cache)) == (3 * PAGE, 1)

    def test_long_keys(self, make):
        cache = make()
        keys = ["/".join(["k" * 100] * 4) + f"/{number}" for number in range(2)]
        for number, key in enumerate(keys):
            assert cache.put(key, tile_of(number))
        assert [cache.get(key)[0] for key in keys] == [0, 1]

    def test_discarding(self, make):
        first, second = make(), make()
        for key in "abc":
            first.put(key, tile_of(1))
        second.discard(["a", "b", "never"])
        assert [first.get(key) is None for key in "abc"] == [True, True, False]
        assert first.used == 3 * PAGE

    def test_clearing(self, make):
        first, second = make(), make()
        first.put("a", tile_of(1))
        second.clear()
        assert first.used == len(first) == 0
        first.put("b", tile_of(1))
        assert second.get("b") is not None


class TestLimit:
    def test_the_least_recently_used_goes_first(self, make):
        cache = make(limit=9 * PAGE)
        for key in "abc":
            cache.put(key, tile_of(1))
        cache.get("a")
        cache.put("d", tile_of(1))
        assert files(cache) == ["a", "c", "d"]
        cache.put("a", tile_of(1))
        cache.put("e", tile_of(1))
        assert files(cache) == ["a", "d", "e"]

    def test_use_by_others_counts(self, make):
        first, second = make(limit=9 * PAGE), make(limit=9 * PAGE)
        for key in "abc":
            first.put(key, tile_of(1))
        second.get("a"), second.get("a")
        first.put("d", tile_of(1))
        assert files(first) == ["a", "c", "d"]

    def test_tiles_larger_than_the_cache_pass_by(self, make):
        cache = make(limit=9 * PAGE)
        cache.put("a", tile_of(1))
        assert cache.put("large", tile_of(1, pages=10)) is False
        assert cache.put("fits", tile_of(1, pages=9)) is True
        assert files(cache) == ["fits"]

    def test_the_limit_holds_for_all_together(self, make):
        workers = [make(limit=30 * PAGE) for _ in range(4)]
        most = 0

        def work(cache, who):
            nonlocal most
            for number in range(60):
                cache.put(f"{who}/{number}", tile_of(number))
                most = max(most, cache.used)

        threads = [threading.Thread(target=work, args=each) for each in zip(workers, "abcd", strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most <= 30 * PAGE
        assert truth(workers[0]) == workers[0].used <= 30 * PAGE

    @pytest.mark.slow
    def test_memory_of_tiles_put_out_by_others_is_free(self, make, monkeypatch):
        monkeypatch.setattr(caches, "LOOK_SECONDS", 0)
        first, second = make(), make()
        first.put("a", tile_of(1))
        watched = weakref.ref(second.get("a"))
        first.discard(["a"])
        assert second.get("b") is None
        gc.collect()
        assert watched() is None

    def test_a_tile_in_use_outlives_its_file(self, make):
        first, second = make(), make()
        first.put("a", tile_of(7, pages=8))
        tile = second.get("a")
        first.clear()
        second.get("a")
        assert (tile == 7).all()

    @pytest.mark.slow
    def test_few_tiles_are_kept_mapped(self, make, monkeypatch):
        monkeypatch.setattr(caches, "MAX_MAPPED", 2)
        cache = make()
        for number in range(5):
            cache.put(f"{number}", tile_of(number))
        watched = [weakref.ref(cache.get(f"{number}")) for number in range(5)]
        gc.collect()
        assert [each() is None for each in watched] == [True, True, True, False, False]

    def test_limits_are_amounts(self, make):
        assert make(limit="2 MB").limit == 2_000_000


class Model(RuleBasedStateMachine):
    """Two workers and one cache: what is got is what was put, and the count is right."""

    def __init__(self):
        super().__init__()
        self.name = uuid.uuid4().hex
        self.caches = [TileCache(self.name, 20 * PAGE) for _ in range(2)]

    def teardown(self):
        for cache in self.caches:
            cache.close()

    who = st.integers(0, 1)
    keys = st.integers(0, 9)

    @rule(who=who, key=keys, pages=st.integers(1, 7))
    def put(self, who, key, pages):
        assert self.caches[who].put(f"{key}/{pages}", tile_of(key, pages))
        assert self.caches[who].get(f"{key}/{pages}") is not None

    @rule(who=who, key=keys, pages=st.integers(1, 7))
    def get(self, who, key, pages):
        found = self.caches[who].get(f"{key}/{pages}")
        assert found is None or np.array_equal(found, tile_of(key, pages))

    @rule(who=who, key=keys)
    def discard(self, who, key):
        self.caches[who].discard(f"{key}/{pages}" for pages in range(1, 8))
        assert all(self.caches[who].get(f"{key}/{pages}") is None for pages in range(1, 8))

    @rule(who=who)
    def clear(self, who):
        self.caches[who].clear()

    @precondition(lambda self: self.caches[0].used)
    @rule(who=who)
    def leave_and_come_back(self, who):
        self.caches[who].close()
        self.caches[who] = TileCache(self.name, 20 * PAGE)

    @invariant()
    def counts(self):
        assert self.caches[0].used == self.caches[1].used == truth(self.caches[0]) <= 20 * PAGE


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


class TestTrouble:
    @pytest.mark.parametrize("call", ["writev", "rename", "open"])
    def test_a_full_file_system_costs_speed_only(self, make, monkeypatch, call):
        cache = make()
        cache.put("a", tile_of(1))

        def refuse(*args, **options):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, call, refuse)
            assert cache.put("b", tile_of(2)) is False
        assert files(cache) == ["a"]
        assert cache.used == 3 * PAGE
        assert cache.put("b", tile_of(2)) is True

    def test_somebody_removes_it(self, make):
        cache = make()
        cache.put("a", tile_of(1))
        subprocess.run(["rm", "-r", str(cache.path)], check=True)
        assert cache.put("b", tile_of(1)) is False
        assert cache.get("c") is None
        cache.discard(["a"])
        cache.clear()

    def test_files_that_are_no_tiles_are_misses(self, make):
        cache = make()
        (cache.path / "tiles/a").write_bytes(b"nonsense" * 100)
        assert cache.get("a") is None

    def test_a_directory_of_somebody_else_is_not_used(self, tmp_path, monkeypatch):
        theirs, mine = tmp_path / "theirs", tmp_path / "mine"
        theirs.mkdir()
        mine.mkdir()
        monkeypatch.setattr(caches, "SHARED_MEMORY", theirs)
        monkeypatch.setattr(caches.tempfile, "gettempdir", lambda: str(mine))
        with TileCacheAt("job") as cache:
            name = cache.path.name
            assert cache.path.parent == theirs
        (theirs / name).mkdir(mode=0o755)
        with TileCacheAt("job") as cache:
            assert cache.path.parent == mine
        (mine / name).symlink_to(theirs)
        with pytest.raises(
            StoreError,
            match="there is no place for a cache of tiles .*belongs to somebody else.*; give one with base=",
        ):
            TileCache("job", 1000)

    def test_an_unfinished_tile_of_a_dead_worker_goes(self, make, monkeypatch):
        cache = make(limit=9 * PAGE)
        cache.put("a", tile_of(1))
        left = cache.path / "tiles/.unfinished"
        left.write_bytes(bytes(3 * PAGE))
        cache.put("b", tile_of(1))
        cache.put("c", tile_of(1))
        cache.put("d", tile_of(1))
        assert left.exists()  # its writer may be alive: two others went in its place
        assert cache.used == truth(cache) == 9 * PAGE
        os.utime(left, (time.time() - 100,) * 2)
        cache.put("e", tile_of(1))
        assert not left.exists()
        assert cache.used == truth(cache) == 9 * PAGE


class TileCacheAt:
    def __init__(self, name):
        self.cache = TileCache(name, 10 * PAGE)

    def __enter__(self):
        return self.cache

    def __exit__(self, *_):
        self.cache.close()


class TestLives:
    def test_the_last_one_removes_it(self, make):
        first, second = make(), make()
        first.put("a", tile_of(1))
        first.close()
        assert second.get("a") is not None
        second.close()
        second.close()
        assert not second.path.exists()

    @pytest.mark.slow
    def test_caches_nobody_uses_are_removed_by_the_next(self, make, base):
        alive = make(name="alive")
        code = (
            "import sys, os, numpy as np; from linnet.workers.cache import TileCache\n"
            "cache = TileCache('dead', '1 MB', base=sys.argv[1]); cache.put('a', np.zeros(3)); print(cache.path)\n"
            "os.kill(os.getpid(), 9)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(base)], capture_output=True, text=True, check=False
        )
        assert done.returncode == -signal.SIGKILL
        dead = base / os.path.basename(done.stdout.strip())
        assert dead.exists()
        begun = base / f"linnet-{os.getuid()}-begun"
        begun.mkdir(mode=0o700)
        newer = make(name="newer")
        assert not dead.exists()
        assert begun.exists()  # somebody may be making it
        assert alive.path.exists()
        os.utime(begun, (time.time() - 100,) * 2)
        newer.close()
        make(name="newest")
        assert not begun.exists()

    @pytest.mark.slow
    def test_what_the_dead_left_is_used_again(self, make, base):
        code = (
            "import sys, os, numpy as np; from linnet.workers.cache import TileCache\n"
            "TileCache('job', '1 MB', base=sys.argv[1]).put('a', np.ones(3)); os.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", code, str(base)], check=False)
        assert make().get("a").tolist() == [1, 1, 1]

    @pytest.mark.slow
    def test_a_forked_process_shares_it_and_does_not_remove_it(self, make):
        cache = make(limit=30 * PAGE)
        cache.put("a", tile_of(1))

        context = multiprocessing.get_context("fork")
        begun = context.Event()

        def child():
            assert cache.get("a") is not None
            begun.set()
            for number in range(50):
                assert cache.put(f"child/{number}", tile_of(number))
            cache.close()

        process = context.Process(target=child)
        process.start()
        assert begun.wait(30)
        for number in range(50):
            assert cache.put(f"parent/{number}", tile_of(number))
        process.join()
        assert process.exitcode == 0
        assert cache.path.exists()
        assert cache.used == truth(cache) <= 30 * PAGE

    @pytest.mark.slow
    def test_workers_killed_at_any_point(self, make, base):
        """Whatever is held is right, the count is never too low, and room made afterwards makes it exact."""
        code = (
            "import sys, random; import numpy as np; from linnet.workers.cache import TileCache\n"
            "cache = TileCache('job', 60 * 4096, base=sys.argv[1]); chance = random.Random(int(sys.argv[2]))\n"
            "print('ready', flush=True)\n"
            "while True:\n"
            "    key, pages = chance.randrange(40), chance.randrange(1, 9)\n"
            "    cache.put(f'{key}/{pages}', np.full(pages * 512 - 8, float(key)))\n"
            "    found = cache.get(f'{chance.randrange(40)}/{pages}')\n"
            "    assert found is None or (found == found[0]).all()\n"
            "    if chance.random() < 0.2: cache.discard([f'{key}/{pages}'])\n"
        )
        cache = make(limit=60 * PAGE)
        for round_ in range(6):
            command = [sys.executable, "-c", code, str(base)]
            workers = [
                subprocess.Popen([*command, str(3 * round_ + each)], stdout=subprocess.PIPE)
                for each in range(2)
            ]
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == b"ready\n"
            time.sleep(0.05 + 0.013 * round_)
            for worker in workers:
                assert worker.poll() is None
                worker.kill()
                worker.communicate()
            assert truth(cache) <= 60 * PAGE
            assert cache.used >= truth(cache)
            for name in files(cache):
                if not name.startswith("."):
                    found = cache.get(name.replace(",", "/"))
                    assert (found == int(name.partition(",")[0])).all()
        for number in range(60):
            cache.put(f"after/{number}", tile_of(number))
        assert cache.used == truth(cache) <= 60 * PAGE


class TestBesideAStore:
    def test_stored_tiles_get_a_second_name(self, tmp_path):
        store = open_store(tmp_path)
        cache = cache_for(store, "job", "1 MB")
        store.put("job/A", encoded(tile_of(1)))
        assert cache.put("job/A", tile_of(1))
        assert os.path.samefile(store.file("job/A"), cache.path / "tiles/job,A")
        assert list(store.list()) == [("job/A", 3 * PAGE)]
        assert cache.used == 3 * PAGE
        store.delete(["job/A"])
        assert cache.get("job/A")[0] == 1
        cache.close()
        store.close()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.needs("lz4")
    def test_compressed_ones_and_those_not_stored_are_written(self, tmp_path):
        store = open_store(tmp_path)
        cache = cache_for(store, "job", "1 MB")
        store.put("job/A", encoded(tile_of(1), "lz4"))
        for key in ("job/A", "job/B"):
            assert cache.put(key, tile_of(1))
            assert (cache.path / "tiles" / key.replace("/", ",")).stat().st_size == 3 * PAGE
        cache.close()

    def test_other_stores_have_it_in_shared_memory(self):
        cache = cache_for(open_store("memory://cached"), "job", "1 MB")
        try:
            assert cache.path.parent == caches.SHARED_MEMORY
            assert cache.put("job/A", tile_of(1))
        finally:
            cache.close()

    def test_a_directory_of_another_machine_is_not_linked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(caches.os, "major", lambda device: 0)
        cache = cache_for(open_store(tmp_path), "job", "1 MB")
        try:
            assert cache.path.parent == caches.SHARED_MEMORY
        finally:
            cache.close()
