"""The shipped suite for stores, on directories and memory; and what directories do beyond it."""

from __future__ import annotations

import errno
import os
import threading
import time
import uuid

import numpy as np
import pytest

import linnet as ln
from linnet.errors import MissingTileError, StoreError
from linnet.testing.stores import FlakyStore, StoreProcessSuite, StoreSuite
from linnet.tiles.codec import decoded, encoded
from linnet.workers.store import open_store
from linnet.workers.stores import directory
from linnet.workers.stores.delayed import Delayed
from linnet.workers.stores.directory import DirectoryStore


@pytest.mark.slow
class TestDirectory(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return open_store(tmp_path / "tiles")


@pytest.mark.slow
class TestDirectoryFromManyProcesses(StoreProcessSuite):
    @pytest.fixture
    def url(self, tmp_path):
        return str(tmp_path / "tiles")


class TestMemory(StoreSuite):
    @pytest.fixture
    def store(self):
        store = open_store(f"memory://{uuid.uuid4().hex}")
        yield store
        store.delete([key for key, _ in store.list()])


class TestDelayed(StoreSuite):
    @pytest.fixture
    def store(self):
        return Delayed(open_store(f"memory://{uuid.uuid4().hex}"), 0)

    def test_every_request_takes_longer(self, tmp_path):
        store = Delayed(open_store(tmp_path), 0.01)
        begun = time.monotonic()
        store.put("a", [b"x"])
        store.get("a")
        store.size("a")
        list(store.list())
        store.delete(["a"])
        assert time.monotonic() - begun >= 0.05
        assert store.url == open_store(tmp_path).url


class TestOpening:
    def test_paths_and_urls_are_one_store(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        open_store("a store").put("job/A", [b"x"])
        for url in (
            tmp_path / "a store",
            f"{tmp_path}/a store",
            f"file://{tmp_path}/a%20store",
            open_store("a store").url,
        ):
            assert bytes(open_store(url).get("job/A")) == b"x"

    def test_memory_is_shared_by_name(self):
        name = uuid.uuid4().hex
        open_store(f"memory://{name}").put("a", [b"x"])
        assert bytes(open_store(f"memory://{name}").get("a")) == b"x"
        with pytest.raises(MissingTileError):
            open_store(f"memory://{name}-other").get("a")

    def test_unknown_schemes_are_named(self):
        with pytest.raises(
            StoreError,
            match="'ftp' stores are not known: give a path, or a URL that starts with file://, memory://, s3://",
        ):
            open_store("ftp://user:secret@example.org/x")

    @pytest.mark.parametrize("url", ["file://server{}", "file://me:secret@127.0.0.1{}", "FILE://server:99{}"])
    def test_a_folder_of_another_machine_is_not_taken_for_one_here(self, url, tmp_path):
        with pytest.raises(StoreError, match=r"is on the machine '(server|127.0.0.1|server:99)'") as caught:
            open_store(url.format(tmp_path / "there"))
        assert "secret" not in str(caught.value)
        with pytest.raises(StoreError, match="has a query, which no file has: write \\? as %3F"):
            open_store(f"file://{tmp_path}/a?b")
        with pytest.raises(StoreError, match="is on the machine"):
            ln.attach(f"{url.format(tmp_path)}#job=a")
        assert not everything(tmp_path)

    def test_this_machine_may_be_named(self, tmp_path):
        for host in ("", "localhost", "LOCALHOST"):
            assert open_store(f"file://{host}{tmp_path}").url == tmp_path.as_uri()

    @pytest.mark.parametrize("name", ["a\ud800b", "a\0b"])
    def test_names_that_no_file_has_are_refused(self, name, tmp_path):
        for given in (f"{tmp_path}/{name}", tmp_path / name, f"file://{tmp_path}/{name}"):
            with pytest.raises(StoreError, match="cannot be the name of a directory"):
                open_store(given)
        assert not everything(tmp_path)


def everything(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


class TestDirectoryFiles:
    @pytest.fixture
    def store(self, tmp_path):
        return DirectoryStore(tmp_path)

    def test_the_key_is_the_path(self, store, tmp_path):
        store.put("job/A/0.1/7", [b"x"])
        assert (tmp_path / "job/A/0.1/7").read_bytes() == b"x"
        assert store.file("job/A/0.1/7") == str(tmp_path / "job/A/0.1/7")

    def test_nothing_is_left_behind(self, store, tmp_path):
        store.put("job/A/0/1", [b"x"])
        store.put("job/A/1/1", [b"x"])
        store.delete(["job/A/0/1"])
        assert everything(tmp_path) == [".writing", "job", "job/A", "job/A/1", "job/A/1/1"]
        store.delete(["job/A/1/1"])
        store.close()
        assert everything(tmp_path) == []

    def test_files_of_dead_writers_are_not_listed_and_go_after_an_hour(self, store, tmp_path):
        store.put("job/A", [b"x"])
        old, new = tmp_path / ".writing/old", tmp_path / ".writing/new"
        old.write_bytes(b"half")
        new.write_bytes(b"half")
        os.utime(old, (time.time() - 4000,) * 2)
        assert list(DirectoryStore(tmp_path).list()) == [("job/A", 1)]
        assert not old.exists()
        assert new.exists()
        os.utime(new, (time.time() - 4000,) * 2)
        DirectoryStore(tmp_path).delete(["nothing"])
        assert not new.exists()

    def test_large_tiles_are_mapped_and_not_copied(self, store):
        tile = np.arange(10_000.0)
        store.put("job/A", encoded(tile))
        first, second = decoded(store.get("job/A")), decoded(store.get("job/A"))
        assert first.ctypes.data % 64 == 0
        assert np.array_equal(first, second)

    def test_more_parts_than_the_system_takes_at_once(self, store):
        parts = [bytes([number % 256]) * (number % 7) for number in range(5000)]
        store.put("job/A", parts)
        assert bytes(store.get("job/A")) == b"".join(parts)

    def test_short_writes_go_on(self, store, monkeypatch):
        whole = os.writev
        monkeypatch.setattr(os, "writev", lambda file, parts: whole(file, [memoryview(parts[0])[:3]]))
        store.put("job/A", [b"a part", b"another one", b"x"])
        assert bytes(store.get("job/A")) == b"a partanother onex"

    def test_a_key_that_is_the_beginning_of_another(self, store):
        store.put("job/A/0", [b"x"])
        with pytest.raises(
            StoreError, match="job/A was not written: .*this key is the beginning of other keys"
        ):
            store.put("job/A", [b"x"])
        with pytest.raises(
            StoreError, match="job/A/0/1 was not written: .*the beginning of this key is a file"
        ):
            store.put("job/A/0/1", [b"x"])
        assert list(store.list()) == [("job/A/0", 1)]

    @pytest.mark.parametrize(
        ("number", "words"),
        [
            (
                errno.ENOSPC,
                "No space left on device; the disk is full: free some space, or use a store elsewhere",
            ),
            (errno.EDQUOT, "your quota is used up"),
            (errno.EACCES, "Permission denied; no permission: change the owner or mode of the directory"),
            (errno.EROFS, "the file system is read-only: use a store elsewhere"),
            (errno.EIO, "the disk has an error: look at the system's log"),
        ],
    )
    def test_what_the_system_refuses(self, store, tmp_path, monkeypatch, number, words):
        store.put("job/A", [b"before"])

        def refuse(file, parts):
            os.write(file, b"half")
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "writev", refuse)
        with pytest.raises(StoreError) as caught:
            store.put("job/A", [b"x" * 2_000_000])
        assert str(caught.value).startswith(f"store {tmp_path}: job/A: 2.0 MB were not written: ")
        assert words in str(caught.value)
        assert bytes(store.get("job/A")) == b"before"
        assert everything(tmp_path) == [".writing", "job", "job/A"]

    def test_a_full_disk(self, tmp_path):
        """Real: a file may not be longer than this here."""
        import resource
        import signal

        store = DirectoryStore(tmp_path)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
        try:
            with pytest.raises(
                StoreError, match="job/A: 2.0 MB were not written: File too large; larger than a file may be"
            ):
                store.put("job/A", [b"x" * 2_000_000])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        assert everything(tmp_path) == [".writing"]

    def test_a_place_that_cannot_be_a_store(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreError, match="store .*/file/tiles: cannot be made a store: Not a directory"):
            DirectoryStore(tmp_path / "file/tiles")
        with pytest.raises(StoreError, match="cannot be made a store"):
            DirectoryStore("/proc/tiles")

    def test_things_that_are_no_files_are_no_tiles(self, store, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        for key in ("pipe", "folder"):
            with pytest.raises(MissingTileError):
                store.get(key)
            assert store.size(key) is None

    def test_closing_while_others_write(self, store, tmp_path):
        def close():
            while not done.is_set():
                DirectoryStore(tmp_path).close()

        done = threading.Event()
        closing = threading.Thread(target=close)
        closing.start()
        try:
            for number in range(200):
                store.put(f"job/{number}", [b"x"])
        finally:
            done.set()
            closing.join()
        assert len(list(store.list())) == 200

    def test_sweeping_is_rare(self, store, tmp_path, monkeypatch):
        store.delete([])
        old = tmp_path / ".writing/old"
        old.write_bytes(b"half")
        os.utime(old, (time.time() - 4000,) * 2)
        store.delete([])
        assert old.exists()
        monkeypatch.setattr(directory, "SWEEP_SECONDS", 0)
        store.delete([])
        assert not old.exists()


def test_flaky_stores_fail_before_or_after():
    real = open_store(f"memory://{uuid.uuid4().hex}")
    flaky = FlakyStore(real, chance=0.5)
    failed = []
    for number in range(100):
        try:
            flaky.put(f"job/{number}", [b"x"])
        except StoreError:
            failed.append(f"job/{number}")
    there = {key for key, _ in real.list()}
    assert 0 < len(set(failed) & there) < len(failed) == flaky.failures
    assert len(there | set(failed)) == 100


@pytest.mark.parametrize("place", ["job", "job/A"])
def test_nothing_is_written_through_a_link(tmp_path, place):
    """Somebody who may write to the store makes a directory in it lead elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    store = DirectoryStore(tmp_path / "store")
    (tmp_path / "store" / place).parent.mkdir(parents=True, exist_ok=True)
    os.symlink(elsewhere, tmp_path / "store" / place)
    with pytest.raises(StoreError, match="is a link, which leads out of the store; remove the link"):
        store.put("job/A/0.0=1", [b"some bytes"])
    assert list(elsewhere.iterdir()) == []
    store.put("other/A/0.0=1", [b"some bytes"])
    assert bytes(store.get("other/A/0.0=1")) == b"some bytes"
