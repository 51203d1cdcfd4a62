"""What every store must do: a suite to subclass::

    from linnet.testing.stores import StoreSuite

    class TestMine(StoreSuite):
        @pytest.fixture
        def store(self):
            return MyStore()

    class TestMineFromManyProcesses(StoreProcessSuite):
        @pytest.fixture
        def url(self):
            return "mine://here"  # by which any process can open it

A store that is new or emptied is wanted for each test. `FlakyStore` makes any store fail now and then.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from linnet.errors import DamagedTileError, MissingTileError, StoreError
from linnet.tiles.codec import decoded, encoded
from linnet.workers.store import Buffer, Store, open_store


def tile_of(seed: int, side: int = 40) -> NDArray[Any]:
    """A tile whose every element tells which one it is."""
    return np.full((side, side), float(seed))


def sound(store: Store, key: str) -> bool:
    """Whether what is stored under the key is a whole tile of one attempt."""
    tile = decoded(store.get(key), key)
    return bool((tile == tile.flat[0]).all())


class StoreSuite:
    """Subclass this with a fixture `store`."""

    @pytest.fixture
    def store(self) -> Store:
        """The store under test, with nothing in it."""
        pytest.fail("a subclass of StoreSuite gives the fixture `store`")

    # ---- one after the other

    def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)
        assert "://" in store.url

    def test_what_was_put_is_got(self, store: Store) -> None:
        store.put("job/A/0.1/7", [b"some ", b"", memoryview(b"bytes")])
        assert bytes(store.get("job/A/0.1/7")) == b"some bytes"
        assert store.size("job/A/0.1/7") == 10
        assert list(store.list()) == [("job/A/0.1/7", 10)]

    def test_nothing_is_something(self, store: Store) -> None:
        store.put("job/empty", [])
        assert bytes(store.get("job/empty")) == b""
        assert store.size("job/empty") == 0
        assert list(store.list("job/")) == [("job/empty", 0)]

    def test_putting_again_replaces(self, store: Store) -> None:
        store.put("job/A", [b"a long one"])
        before = store.get("job/A")
        store.put("job/A", [b"short"])
        assert bytes(store.get("job/A")) == b"short"
        assert bytes(before) == b"a long one"

    def test_what_was_got_stays_when_it_is_deleted(self, store: Store) -> None:
        raw = np.random.default_rng(0).bytes(100_000)
        store.put("job/A", [raw])
        got = store.get("job/A")
        store.delete(["job/A"])
        assert bytes(got) == raw

    def test_what_was_put_may_be_changed_afterwards(self, store: Store) -> None:
        mine = bytearray(b"as it was")
        store.put("job/A", [mine])
        mine[:2] = b"no"
        assert bytes(store.get("job/A")) == b"as it was"

    def test_what_is_missing_is_named(self, store: Store) -> None:
        store.put("job/A/0/1", [b"there"])
        for key in ("job/A/0/2", "other", "job/A", "job/A/0/1/2"):
            with pytest.raises(MissingTileError, match=f"{key} is not in .*; resume the job"):
                store.get(key)
            assert store.size(key) is None

    def test_deleting(self, store: Store) -> None:
        for number in range(5):
            store.put(f"job/A/{number}", [b"x"])
        store.delete(f"job/A/{number}" for number in range(3))
        store.delete(["job/A/0", "never/there", "job"])
        store.delete([])
        assert sorted(store.list()) == [("job/A/3", 1), ("job/A/4", 1)]
        store.put("job/A/0", [b"again"])
        assert bytes(store.get("job/A/0")) == b"again"

    def test_listing_by_the_beginning_of_keys(self, store: Store) -> None:
        keys = ["a/x/1", "a/x/2", "a/xy/1", "ab/1", "b", "a=1/-_.z"]
        for size, key in enumerate(keys):
            store.put(key, [b"x" * size])
        for prefix in ("", "a", "a/", "a/x", "a/x/", "a/x/1", "a/x/12", "b", "c", "a="):
            expected = [(key, size) for size, key in enumerate(keys) if key.startswith(prefix)]
            assert sorted(store.list(prefix)) == sorted(expected)

    def test_listing_many(self, store: Store) -> None:
        keys = {
            f"job/A/{number // 50}.{number}/1" for number in range(1100)
        }  # services answer 1,000 at a time
        for key in keys:
            store.put(key, [b"x"])
        assert {key for key, _ in store.list("job/A/")} == keys
        store.delete(keys)
        assert list(store.list()) == []

    @pytest.mark.parametrize(
        "key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "a\n", "ä", "a\\b", "a\0"]
    )
    def test_what_is_no_key_is_refused(self, store: Store, key: str) -> None:
        for use in (
            lambda: store.put(key, [b"x"]),
            lambda: store.get(key),
            lambda: store.size(key),
            lambda: store.delete([key]),
        ):
            with pytest.raises(StoreError, match="is no key of a store: give names of letters, digits"):
                use()
        assert list(store.list()) == []

    @pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/..", "%", "a b"])
    def test_what_begins_no_key_is_refused(self, store: Store, prefix: str) -> None:
        with pytest.raises(StoreError, match="no key of a store starts with"):
            list(store.list(prefix))

    def test_long_keys(self, store: Store) -> None:
        key = "/".join(["k" * 200] * 4)
        store.put(key, [b"x"])
        assert list(store.list()) == [(key, 1)]
        assert bytes(store.get(key)) == b"x"
        for long in ("k" * 201, "/".join(["k" * 100] * 10)):
            with pytest.raises(StoreError, match="characters: give at most"):
                store.put(long, [b"x"])

    def test_closing_keeps_what_is_stored(self, store: Store) -> None:
        store.put("job/A", [b"x"])
        store.close()
        assert bytes(store.get("job/A")) == b"x"
        store.put("job/B", [b"x"])

    # ---- tiles

    @pytest.mark.parametrize("shape", [(), (0, 3), (1,), (300, 40), (3, 4, 5)])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_tiles(self, store: Store, shape: tuple[int, ...], order: Any) -> None:
        tile = np.asarray(np.random.default_rng(0).standard_normal(shape), order=order)
        store.put("job/A/0/1", encoded(tile))
        found = decoded(store.get("job/A/0/1"))
        assert found.strides == tile.strides or tile.size == 0
        assert np.array_equal(found, tile)
        assert found.shape == shape
        assert not found.flags.writeable

    def test_a_large_tile(self, store: Store) -> None:
        tile = np.random.default_rng(0).standard_normal((1200, 1100))
        store.put("job/A/0/1", encoded(tile))
        assert np.array_equal(decoded(store.get("job/A/0/1")), tile)

    def test_hostile_tiles(self, store: Store) -> None:
        raw = b"".join(encoded(tile_of(1)))
        for number, bad in enumerate(
            [b"", b"LNTL", raw[:-1], raw + b"x", b"\x80\x04." + raw, raw[:200] + b"?" + raw[201:]]
        ):
            store.put(f"job/A/{number}", [bad])
            with pytest.raises(DamagedTileError, match=f"^job/A/{number}: .*resume the job"):
                decoded(store.get(f"job/A/{number}"), f"job/A/{number}")

    # ---- many at once

    def test_many_threads(self, store: Store) -> None:
        def work(number: int) -> None:
            for step in range(10):
                key = f"job/A/{number}.{step}/1"
                store.put(key, encoded(tile_of(number)))
                assert sound(store, key)
                store.put("job/B/same/1", encoded(tile_of(number)))
                assert sound(store, "job/B/same/1")
                store.delete([f"job/A/{number}.{step - 1}/1"])

        _all_at_once(work, 8)
        assert sorted(key for key, _ in store.list("job/A/")) == [
            f"job/A/{number}.9/1" for number in range(8)
        ]

    def test_deleting_while_others_write_beside(self, store: Store) -> None:
        """Where keys are paths, directories come and go."""

        def work(number: int) -> None:
            for _ in range(40):
                store.put(f"job/A/0/{number}", [b"x" * number])
                assert store.size(f"job/A/0/{number}") == number
                list(store.list("job/"))
                store.delete([f"job/A/0/{number}"])

        _all_at_once(work, 6)
        assert list(store.list()) == []


class StoreProcessSuite:
    """Subclass this with a fixture `url`, by which other processes can open the store."""

    @pytest.fixture
    def url(self) -> str:
        """The store under test, with nothing in it."""
        pytest.fail("a subclass of StoreProcessSuite gives the fixture `url`")

    @pytest.fixture
    def environment(self) -> dict[str, str]:
        """Variables the processes need to open the store, such as credentials."""
        return {}

    @pytest.fixture
    def store(self, url: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Store:
        """The same store, as this process sees it."""
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return open_store(url)

    def test_many_processes_put_one_key(self, store: Store, url: str, environment: dict[str, str]) -> None:
        writers = [_writer(url, environment, "once", number) for number in range(3)]
        for writer in writers:
            assert writer.wait(60) == 0
        assert sound(store, "job/same/1")
        assert len(list(store.list("job/"))) == 1 + 3 * 20

    def test_writers_killed_at_any_point(self, store: Store, url: str, environment: dict[str, str]) -> None:
        """Whatever is listed is whole, whenever its writer died."""
        chance = random.Random(0)
        for round_ in range(4):
            writer = _writer(url, environment, "forever", round_)
            end = time.monotonic() + 60
            while not any(store.list(f"job/{round_}/")) and time.monotonic() < end:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.1)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            keys = [key for key, _ in store.list("job/")]
            assert keys
            assert all(sound(store, key) for key in keys)


def _all_at_once(work: Callable[[int], None], count: int) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _writer(url: str, environment: dict[str, str], how: str, number: int) -> subprocess.Popen[bytes]:
    """Another process that writes tiles into the store at `url`."""
    command = [sys.executable, "-m", "linnet.testing.stores", url, how, str(number)]
    return subprocess.Popen(command, env={**os.environ, **environment})


def _write(url: str, how: str, number: int) -> None:
    store = open_store(url)
    step = 0
    while how == "forever" or step < 20:
        store.put(f"job/{number}/{step % 50}", encoded(tile_of(step, side=300)))
        store.put("job/same/1", encoded(tile_of(number, side=300)))
        step += 1


class FlakyStore:
    """A store that fails now and then, as services do: for tests of what uses stores.

    `chance` of each request fails, before or after it took effect; the same `seed` fails at the same
    requests. With `chance=1` nothing works until it is set to 0.

    >>> from linnet.workers.store import open_store
    >>> store = FlakyStore(open_store("memory://flaky"), chance=1)
    >>> store.put("job/A", [b"x"])
    Traceback (most recent call last):
    linnet.errors.StoreError: memory://flaky: put failed on purpose
    >>> store.chance, store.failures
    (1, 1)
    """

    def __init__(self, store: Store, chance: float = 0.1, seed: int = 0) -> None:
        self.url: str = store.url
        self.chance = chance
        self.failures: int = 0
        self._store = store
        self._random = random.Random(seed)
        self._mutex = threading.Lock()

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        self._call("put", lambda: self._store.put(key, parts))

    def get(self, key: str) -> Buffer:
        return self._call("get", lambda: self._store.get(key))

    def size(self, key: str) -> int | None:
        return self._call("size", lambda: self._store.size(key))

    def delete(self, keys: Iterable[str]) -> None:
        asked = list(keys)
        self._call("delete", lambda: self._store.delete(asked))

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        return self._call("list", lambda: self._store.list(prefix))

    def close(self) -> None:
        self._store.close()

    def _call(self, what: str, act: Callable[[], Any]) -> Any:
        with self._mutex:
            fails, late = self._random.random() < self.chance, self._random.random() < 0.5
            self.failures += fails
        if fails and late:
            act()
        if fails:
            raise StoreError(f"{self.url}: {what} failed on purpose")
        return act()


if __name__ == "__main__":
    _write(sys.argv[1], sys.argv[2], int(sys.argv[3]))
