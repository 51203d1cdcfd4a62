"""Where results of the stateless engine are, who reads them there, and when they go: by listing the store."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import linnet as ln
from linnet.engines.stateless import Stateless
from linnet.errors import EngineClosedError, JobCancelledError, KernelError, StoreError
from linnet.events import Events, TaskStarted
from linnet.testing import kernels as programs
from linnet.testing.engines import EngineSuite
from linnet.tiles import Layout, TiledArray
from linnet.workers.kept_results import KeptTiles
from linnet.workers.launcher import Limits
from linnet.workers.launchers.processes import Processes
from linnet.workers.spec import Options
from linnet.workers.store import open_store
from linnet.workers.stores.directory import DirectoryStore

pytestmark = pytest.mark.slow

QUICK = Options(lease=2.0, grace=0.2)


def numbers(shape=(60, 40)):
    return np.random.default_rng(5).standard_normal(shape)


class ResultsInTheStore:
    """Subclasses say where: a fixture `places`, as `Stateless` takes them."""

    @pytest.fixture
    def places(self):
        pytest.fail("a subclass gives the fixture `places`")

    @pytest.fixture
    def engine(self, places) -> Iterator[Stateless]:
        made = Stateless(2, launcher="threads", options=QUICK, **places)
        with ln.init(made):
            yield made
        made.close()

    @pytest.fixture
    def keys(self, places):
        """What is in the store, sorted."""
        return lambda: sorted(key for key, _ in open_store(places["store"]).list())

    @pytest.fixture
    def uploads(self, places, monkeypatch):
        """Keys of tiles of inputs that were stored, in order; plain numbers left out."""
        kind = type(open_store(places["store"]))
        found, put = [], kind.put

        def recorded(self, key, parts):
            if key.endswith("=in") and not key.endswith("/-=in"):
                found.append(key)
            put(self, key, parts)

        monkeypatch.setattr(kind, "put", recorded)
        return found

    def test_a_persisted_array_is_read_where_it_is(self, engine, keys, uploads):
        x = numbers()
        y = (ln.asarray(x, chunks=20) + 1).persist()
        assert len(uploads) == 6
        stored = keys()
        assert len(stored) == 6
        assert len({key.rpartition("/")[0] for key in stored}) == 1
        uploads.clear()
        assert np.isclose(y.sum().compute(), (x + 1).sum())
        assert np.isclose(y.sum(axis=0).compute()[3], (x + 1).sum(axis=0)[3])
        assert np.array_equal((y * 2).compute(), (x + 1) * 2)
        assert uploads == []
        assert keys() == stored

    def test_tiles_go_with_the_last_array_that_reads_them(self, engine, keys):
        x = numbers()
        y = (ln.asarray(x, chunks=20) + 1).persist()
        z = y * 2
        del y
        assert len(keys()) == 6
        assert np.array_equal(z.compute(), (x + 1) * 2)
        del z
        gc.collect()
        assert keys() == []

    def test_arrays_persisted_together_go_one_by_one(self, engine, keys):
        x = numbers()
        y = ln.asarray(x, chunks=20) + 1
        first, second = ln.persist(y, y.T @ y)
        assert len(keys()) == 6 + 4
        assert np.array_equal(first.compute(), x + 1)
        del first, y
        gc.collect()
        assert len(keys()) == 4
        assert np.allclose(second.compute(), (x + 1).T @ (x + 1))

    def test_what_is_computed_leaves_nothing(self, engine, keys):
        x = ln.asarray(numbers(), chunks=20)
        (x @ x.T).compute()
        x.sum().compute()
        gc.collect()
        assert keys() == []

    def test_closing_the_engine_deletes_what_it_keeps(self, engine, keys):
        y = (ln.asarray(numbers(), chunks=20) + 1).persist()
        assert keys()
        engine.close()
        engine.close()
        assert keys() == []
        words = (
            r"the array of shape \(60, 40\) and dtype float64 was kept in the store of Stateless\(workers=2\)"
        )
        with ln.init("threads"):
            for use in (y, y + 1, y.sum()):
                with pytest.raises(EngineClosedError, match=words + ", which was closed: its tiles are gone"):
                    use.compute()
        with pytest.raises(EngineClosedError, match=r"Stateless\(workers=2\) was closed and runs nothing"):
            (y + 1).compute()

    def test_a_run_that_fails_leaves_nothing(self, engine, keys):
        with pytest.raises(KernelError, match="a divisor is 0"):
            engine.run(*EngineSuite.failing())
        assert keys() == []

    def test_control_c_leaves_nothing(self, engine, keys):
        events = Events()
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        events.subscribe(lambda _: None if timer.is_alive() else timer.start(), TaskStarted)
        one = {"A": TiledArray.from_numpy(np.ones(1), 1)}
        with pytest.raises(KeyboardInterrupt):
            engine.run(programs.slow.bind(N=1000), one, events=events)
        assert keys() == []

    def test_control_c_while_inputs_are_stored_leaves_nothing(self, engine, keys, uploads, monkeypatch):
        kind = type(open_store(engine._store))
        put = kind.put

        def interrupted(self, key, parts):
            put(self, key, parts)
            if len(uploads) == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(kind, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            (ln.asarray(numbers(), chunks=20) + 1).persist()
        assert len(uploads) == 3
        assert keys() == []

    def test_closing_cancels_runs_of_other_threads(self, engine, keys):
        one = {"A": TiledArray.from_numpy(np.ones(1), 1)}
        kept = engine.run(programs.doubled.bind(N=1), {"B": one["A"]})
        begun, ends = threading.Event(), []
        events = Events()
        events.subscribe(lambda _: begun.set(), TaskStarted)

        def run():
            try:
                engine.run(programs.slow.bind(N=3000), one, events=events)
            except JobCancelledError as error:
                ends.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert begun.wait(30)
        engine.close()
        thread.join(30)
        assert len(ends) == 1
        assert keys() == []
        with pytest.raises(EngineClosedError, match="was closed"):
            kept.tiles("D")[(0,)]

    def test_results_with_a_place_are_brought_there(self, engine, keys):
        whole = np.zeros(6)
        given = {"A": TiledArray.from_numpy(np.arange(6.0), 2)}
        out = {"B": TiledArray.over(whole, Layout.regular((6,), 2))}
        found = engine.run(programs.chain.bind(N=3, M=4), given, out=out)
        assert whole.tolist() == [4, 5, 6, 7, 8, 9]
        assert found["B"].to_numpy().tolist() == whole.tolist()
        assert keys() == []

    def test_tiles_of_one_value_are_neither_stored_nor_copied(self, engine, keys, uploads):
        a = numbers((6, 6))
        layout = Layout.regular((6, 6), 2)
        found = engine.run(programs.filled.bind(N=3), {"A": TiledArray.from_numpy(a, 2)})
        expected = found["B"].to_numpy()
        left = found.left("B", layout, a.dtype)
        assert len(left.tiles) == 9
        assert len(left.tiles.stored) == 6
        left.tile((0, 0))[...] = -1  # what is looked at is the caller's own
        uploads.clear()
        again = engine.run(programs.filled.bind(N=3), {"A": left})["B"].to_numpy()
        del found
        for i in (0, 2, 4):
            expected[i : i + 2, i : i + 2] = 3.5
        assert uploads == []
        assert np.array_equal(np.where(expected == 3.5, 7, 2 * expected), again)
        del left
        gc.collect()
        assert keys() == []

    def test_a_lost_tile_of_a_kept_array_is_named_with_its_job(self, engine, keys, places):
        y = (ln.asarray(numbers(), chunks=20) + 1).persist()
        gone = keys()[1]
        open_store(places["store"]).delete([gone])
        job, array, _ = gone.split("/")
        with pytest.raises(ln.LinnetError) as caught:
            y.sum().compute()
        for words in (
            "an input of the job cannot be read",
            f"is tile {array}[0, 1] of job {job} (stored as {gone})",
            "only that job can compute it",
        ):
            assert words in str(caught.value)
        assert len(keys()) == 5

    def test_what_another_engine_keeps_is_copied(self, engine, keys, places, uploads):
        x = numbers()
        y = (ln.asarray(x, chunks=20) + 1).persist()
        uploads.clear()
        with closing(Stateless(1, launcher="threads", options=QUICK, **places)) as other, ln.init(other):
            assert np.array_equal((y + 1).compute(), x + 1 + 1)
        assert len(uploads) == 6
        assert len(keys()) == 6


class TestInADirectory(ResultsInTheStore):
    @pytest.fixture
    def places(self, tmp_path):
        return {"store": str(tmp_path / "jobs")}

    def test_no_file_is_left(self, engine, places):
        y = (ln.asarray(numbers(), chunks=20) + 1).persist()
        y.sum().compute()
        del y
        assert not [path for path in Path(places["store"]).rglob("*") if path.is_file()]

    def test_what_cannot_be_deleted_now_is_deleted_later(self, engine, keys, monkeypatch):
        y = (ln.asarray(numbers(), chunks=20) + 1).persist()
        z = (ln.asarray(numbers(), chunks=20) + 2).persist()

        def refuse(self, keys):
            raise StoreError("the store is away")

        with monkeypatch.context() as patch:
            patch.setattr(DirectoryStore, "delete", refuse)
            del y
            assert len(keys()) == 12
        del z
        assert keys() == []

    def test_runs_leave_no_state_behind(self, engine):
        y = (ln.asarray(numbers(), chunks=20) + 1).persist()
        for _ in range(3):
            y = (y + 1).persist()
        gc.collect()
        keeper = y.__node__.tiles.tiles.keeper
        assert len(keeper._holds) == 1
        assert engine._running == 0


@pytest.mark.slow
class TestInMemory(ResultsInTheStore):
    @pytest.fixture
    def places(self, redis_server, request):
        return {"store": f"memory://{request.node.name}", "ledger": redis_server.url}


@pytest.mark.slow
class TestInS3(ResultsInTheStore):
    @pytest.fixture
    def places(self, redis_server, s3_server, monkeypatch, request):
        for name, value in s3_server.environment.items():
            monkeypatch.setenv(name, value)
        bucket, mark, options = s3_server.url.partition("?")
        return {
            "store": f"{bucket}/{request.node.name.lower().replace('_', '-')}{mark}{options}",
            "ledger": redis_server.url,
        }


# ---- a place of its own


def test_an_engine_without_a_store_has_one_directory_for_its_life(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # that of all processes changes at any time

    def folders():
        return list(tmp_path.glob(f"linnet-{os.getuid()}-jobs-*"))

    engine = Stateless(1, launcher="threads", options=QUICK)
    assert folders() == []
    one = {"B": TiledArray.from_numpy(np.ones(2), 1)}
    first = engine.run(programs.doubled.bind(N=2), one)
    second = engine.run(programs.doubled.bind(N=2), one)
    assert len(folders()) == 1
    del engine, first  # results outlive an engine that nobody closed
    gc.collect()
    assert second["D"].to_numpy().tolist() == [2, 2]
    assert isinstance(second.tiles("D"), KeptTiles)
    del second
    gc.collect()
    assert folders() == []


SCRIPT = """
import os, sys, tempfile
import numpy as np
import linnet as ln
tempfile.tempdir = sys.argv[1]
ln.init("stateless", workers=1, launcher="threads")
x = (ln.asarray(np.arange(8.0), chunks=2) + 1).persist()
if os.fork() == 0:
    del x
    sys.exit(0)  # it ends as processes do, and takes nothing along
os.wait()
print(x.sum().compute(), len(os.listdir(sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_at_the_end_of_the_process_the_directory_is_gone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout == "36.0 1\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_the_directory_of_a_process_that_was_killed_is_removed_by_the_next(tmp_path, monkeypatch):
    script = SCRIPT.partition("if os.fork")[0] + "os.kill(os.getpid(), 9)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, env=environment)
    assert len(os.listdir(tmp_path)) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = Stateless(1, launcher="threads", options=QUICK)
    engine.run(programs.doubled.bind(N=1), {"B": TiledArray.from_numpy(np.ones(1), 1)})
    assert len(os.listdir(tmp_path)) == 1
    engine.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_kept_results_survive_workers_that_are_killed(tmp_path):
    launcher = Processes()
    store = str(tmp_path / "jobs")
    x = numbers((200, 200))
    limits = Limits(timeout=5, cache=2**26)
    stop = threading.Event()
    killed = []

    def kill():
        # So often only: where workers take longer to start than they live, no job ends.
        while len(killed) < 6 and not stop.wait(0.7):
            for pid in launcher.pids[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                time.sleep(1.5)

    try:
        engine = Stateless(3, store=store, launcher=launcher, options=QUICK, limits=limits)
        with closing(engine), ln.init(engine):
            y = (ln.asarray(x, chunks=20) + 1).persist()
            killer = threading.Thread(target=kill)
            killer.start()
            for _ in range(3):
                assert np.allclose((y @ y.T).compute(), (x + 1) @ (x + 1).T)
            stop.set()
            killer.join()
            assert killed
            assert len(list(open_store(store).list())) == 100
            assert np.array_equal(y.compute(), x + 1)
        assert not list(open_store(store).list())
    finally:
        stop.set()
        for pid in launcher.pids:
            os.kill(pid, signal.SIGKILL)
