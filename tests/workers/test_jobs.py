"""Jobs from submission to result, with workers in threads of this process; faults are caused where they count."""

from __future__ import annotations

import signal
import sqlite3
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import job_kernels
import numpy as np
import pytest
from job_samples import matrix, undisturbed, workers_left

import linnet as ln
from linnet.algorithms.cholesky import cholesky, left_looking
from linnet.errors import (
    AddressError,
    JobCancelledError,
    JobError,
    JobFailedError,
    JobStoppedError,
    KernelError,
)
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray, TileKey
from linnet.workers.array_specs import tile_key
from linnet.workers.client import attach, submit
from linnet.workers.expansion import children_of, has_seed
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.names import Seed, named
from linnet.workers.queue import Entry
from linnet.workers.results import StoredTiles
from linnet.workers.serving import serve
from linnet.workers.spec import Options, spec_key
from linnet.workers.store import open_store

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.0, grace=0.2)


def factorised(n=60, tile=10, program=cholesky, **options):
    given = TiledArray.from_numpy(matrix(n), tile)
    return submit(program.bind(N=given.grid[0]), {"A": given}, options=QUICK, **options)


def lower(job):
    return np.tril(job.result()["O"].to_numpy())


def test_a_job_gives_the_same_bits_as_the_program_run_here(store):
    with factorised(store=store, launcher="threads", program=left_looking) as job:
        found = lower(job)
    given = TiledArray.from_numpy(matrix(60), 10)
    here = undisturbed(left_looking.bind(N=6), {"A": given})["O"].to_numpy()
    assert np.array_equal(found, here)
    assert np.allclose(found @ found.T, matrix(60))


def test_anyone_with_the_address_can_watch_and_fetch(store):
    with factorised(store=store, launcher="threads") as job, attach(job.address) as other:
        other.wait(150)
        assert other.progress().done == other.progress().total == 6 + 15 + 35
        assert np.array_equal(lower(other), lower(job))
        assert job.facts()["tasks"] >= 0


def test_nothing_is_left_when_a_job_is_deleted(store, tmp_path):
    with factorised(store=store, launcher="threads") as job:
        job.wait(150)
        job.delete()
        with pytest.raises(AddressError, match="was it deleted"):
            attach(job.address)
    # Workers close their cache when they go, and threads have gone when the job is closed.
    assert not [path for path in (tmp_path / "jobs").rglob("*") if path.is_file()]


def test_nothing_is_left_when_a_job_is_deleted_as_it_runs(store, tmp_path):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(programs.slow.bind(N=400), given, store=store, launcher="threads", options=QUICK) as job:
        while job.progress().done < 20:
            time.sleep(0.01)
        job.delete()
    assert not [path for path in (tmp_path / "jobs").rglob("*") if path.is_file()]


def test_temporary_tiles_are_gone_when_a_job_is_finished(store):
    with factorised(store=store, launcher="threads") as job:
        job.wait(150)
        arrays = {key.split("/")[1] for key, _ in open_parts(job.address).store.list(f"{job.folder}/")}
        assert arrays == {"A", "O"}


def test_temporary_tiles_go_though_no_client_waits(store):
    """Workers delete them when they see that the job is finished, however long they would be kept else."""
    given = TiledArray.from_numpy(matrix(60), 10)
    options = Options(lease=1.0, grace=600)
    with submit(cholesky.bind(N=6), {"A": given}, store=store, launcher=None, options=options) as job:
        assert serve(job.address) == "finished"
        assert {key.split("/")[1] for key, _ in open_store(store).list(f"{job.folder}/")} == {"A", "O"}


def test_a_job_that_was_closed_or_deleted_says_so(store):
    with factorised(store=store, launcher=None) as job:
        pass
    with pytest.raises(JobError, match=r"was closed, or its job deleted; ln\.attach"):
        job.wait(1)
    with attach(job.address) as again:
        again.delete()
        with pytest.raises((JobError, AddressError), match="deleted"):
            again.progress()


def test_a_lost_input_that_is_asked_for_is_not_promised_again(store):
    with ln.submit(ln.asarray(np.arange(6.0), chunks=2), store=store) as job:
        found = job.result()
        kept = open_store(store)
        kept.delete([key for key, _ in kept.list(f"{job.folder}/") if key.endswith("=in")])
        with pytest.raises(OSError, match="is an input, which no task computes; submit the job again"):
            found.compute()


def test_an_array_is_submitted_and_comes_back_lazily(store):
    x = ln.asarray(np.arange(30.0).reshape(5, 6), chunks=2)
    with ln.submit((x @ x.T + 1).sum(axis=0), store=store, launcher="threads") as job:
        found = job.result()
        assert isinstance(found, ln.Array)
        assert np.array_equal((found * 2).compute(), 2 * (x @ x.T + 1).sum(axis=0).compute())
        assert np.array_equal(ln.attach(job.address).result().compute(), found.compute())


def test_several_arrays_share_their_work(store):
    x = ln.asarray(np.arange(20.0), chunks=3)
    y = ln.exp(x / 10)
    with ln.submit((y + 1, y.sum()), store=store, launcher="threads") as job:
        first, second = job.result()
        assert np.array_equal(first.compute(), np.exp(np.arange(20.0) / 10) + 1)
        assert second.compute() == y.sum().compute()


def test_an_array_in_memory_is_a_finished_job(store):
    x = ln.asarray(np.arange(6.0), chunks=2)
    with ln.submit(x, store=store) as job:
        assert job.done()
        assert np.array_equal(job.result().compute(), np.arange(6.0))


def test_what_cannot_be_submitted_is_refused(store):
    x = ln.asarray(np.arange(6.0), chunks=2)
    with pytest.raises(ln.InputError, match="has no import name"):
        ln.submit(ln.map_blocks(lambda tile: tile + 1, x), store=store)
    with pytest.raises(ln.InputError, match="given a list"):
        ln.submit([1, 2], store=store)
    with pytest.raises(ln.InputError, match="takes the arrays A"):
        ln.submit(cholesky.bind(N=2), {"B": np.eye(4)}, store=store)
    with pytest.raises(AddressError, match="need a ledger that all workers reach"):
        ln.submit(x + 1, store="s3://bucket/jobs")
    with pytest.raises(AddressError, match="no address of a job"):
        ln.attach("/nowhere")


# ---- failures


def test_a_kernel_that_raises_fails_the_job_with_task_tiles_and_line(store):
    divisors = np.array([1.0, 2.0, 0.0, 4.0])
    inputs = {"A": TiledArray.from_numpy(np.ones(4), 1), "B": TiledArray.from_numpy(divisors, 1)}
    with submit(programs.divided.bind(N=4), inputs, store=store, launcher="threads", options=QUICK) as job:
        with pytest.raises(KernelError, match="a divisor is 0") as caught:
            job.wait(150)
        assert caught.value.task == (0, (2,))
        assert "with i=2" in str(caught.value)
        assert job.progress().state == "failed"


def test_a_cancelled_job_stops_and_resumes_where_it_was(store):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(programs.slow.bind(N=40), given, store=store, launcher="threads", options=QUICK) as job:
        while job.progress().done < 5:
            time.sleep(0.01)
        job.cancel()
        with pytest.raises(JobCancelledError):
            job.wait(150)
        workers_left(job)
        assert job.progress().done < 40
        job.resume()
        job.wait(150)
        status = open_parts(job.address).ledger.status()
        assert status.done == 40
        assert status.epoch == 2


def test_a_lost_tile_is_computed_again_from_its_parents(store):
    with factorised(store=store, launcher="threads") as job:
        job.wait(150)
        expected = lower(job)
        parts = open_parts(job.address)
        gone = [key for key, _ in parts.store.list(f"{job.folder}/O/")][::3]
        parts.store.delete(gone)
        job.resume()
        job.wait(150)
        assert np.array_equal(lower(job), expected)


@pytest.mark.parametrize("done", [0, 10, 30, 55])
def test_a_lost_ledger_is_rebuilt_from_what_is_stored(store, done):
    with factorised(store=store, launcher="threads", n=60) as job:
        while job.progress().done < done:
            time.sleep(0.001)
        job.cancel()
        workers_left(job)
        parts = open_parts(job.address)
        parts.ledger.drop()
        again = attach(job.address, launcher="threads")
        again.resume(workers=2)
        again.wait(150)
        found = lower(again)
        assert np.allclose(found @ found.T, matrix(60))
        again.close()


@pytest.fixture(params=["embedded", "redis"])
def ledger_place(request):
    return None if request.param == "embedded" else request.getfixturevalue("redis_server").url


def test_a_ledger_that_is_lost_under_a_client_is_rebuilt_and_the_job_deleted(store, ledger_place):
    """By the handle that the client has, which provisions."""
    with factorised(store=store, launcher="threads", ledger=ledger_place) as job:
        while job.progress().done < 10:
            time.sleep(0.001)
        job.cancel()
        workers_left(job)
        job.provision()
        open_parts(job.address).ledger.drop()
        with pytest.raises(AddressError, match="holds no job"):
            job.progress()
        job.resume()
        job.wait(150)
        assert np.allclose(lower(job) @ lower(job).T, matrix(60))
        open_parts(job.address, create=True).ledger.drop()
        job.delete()
        assert list(open_store(store).list()) == []


def test_nothing_is_left_on_a_server_that_lost_the_ledger(store, redis_server):
    with factorised(store=store, launcher="threads", ledger=redis_server.url) as job:
        while job.progress().done < 10:
            time.sleep(0.001)
        with redis_server.client() as client:
            client.delete(*client.keys(f"linnet:{{{job.name}}}:*"))
            time.sleep(1)
            job.resume()
            job.wait(150)
            job.delete()
            time.sleep(0.5)
            assert client.keys(f"linnet:{{{job.name}}}:*") == []


@pytest.mark.parametrize("harm", ["header", "pages"])
def test_a_damaged_ledger_is_named_and_built_anew(store, harm):
    with factorised(store=store, launcher="threads") as job:
        while job.progress().done < 20:
            time.sleep(0.001)
        job.cancel()
    board = Path(store) / ".boards" / f"{job.name}.sqlite"
    with sqlite3.connect(board) as tables:
        tables.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    tables.close()
    data = bytearray(board.read_bytes())
    for place in range(0 if harm == "header" else 4096, len(data), 4096):
        data[place : place + 200] = bytes(200)
    board.write_bytes(data)
    with attach(job.address, launcher="threads") as again:
        with pytest.raises(
            ln.DamagedLedgerError, match=r"sqlite, which .* is damaged .*resume\(\) sets it aside"
        ):
            again.progress()
        again.resume()
        again.wait(150)
        assert np.allclose(lower(again) @ lower(again).T, matrix(60))
        again.delete()
    assert not [path for path in Path(store).rglob("*") if path.is_file()]


def test_a_job_whose_ledger_is_damaged_can_be_deleted(store):
    with factorised(store=store, launcher=None) as job:
        address = job.address
    (Path(store) / ".boards" / f"{job.name}.sqlite").write_bytes(b"no database" * 1000)
    with attach(address, launcher=None) as again:
        again.delete()
    assert not [path for path in Path(store).rglob("*") if path.is_file()]


def test_a_lost_input_fails_the_job_and_says_so(store):
    given = TiledArray.from_numpy(matrix(20), 10)
    job = submit(cholesky.bind(N=2), {"A": given}, store=store, launcher=None, options=QUICK)
    parts = open_parts(job.address)
    parts.store.delete([tile_key(job.folder, TileKey("A", (1, 1)), None)])
    with (
        attach(job.address, workers=1, launcher="threads") as workers,
        pytest.raises(JobFailedError, match="an input of the job cannot be read"),
    ):
        workers.wait(150)


@pytest.mark.parametrize("harm", [b"not a tile", b"", None])
def test_damaged_and_lost_temporary_tiles_are_computed_again(store, harm):
    options = Options(lease=1.0, delete=False)
    given = TiledArray.from_numpy(matrix(60), 10)
    with submit(cholesky.bind(N=6), {"A": given}, store=store, launcher="threads", options=options) as job:
        while job.progress().done < 25:
            time.sleep(0.001)
        job.cancel()
        workers_left(job)
        parts = open_parts(job.address)
        for key in [key for key, _ in parts.store.list(f"{job.folder}/S/")]:
            parts.store.delete([key]) if harm is None else parts.store.put(key, [harm])
        job.resume()
        found = lower(job)
        assert np.allclose(found @ found.T, matrix(60))
        assert job.progress().done == job.progress().total


def test_a_damaged_result_is_named_and_computed_again_by_resume(store):
    with factorised(store=store, launcher="threads") as job:
        job.wait(150)
        parts = open_parts(job.address)
        key, _ = next(parts.store.list(f"{job.folder}/O/"))
        parts.store.put(key, [b"not a tile"])
        with pytest.raises(OSError, match=f"{key}: .* resume the job"):
            job.result()["O"].to_numpy()
        job.resume()
        assert np.allclose(lower(job) @ lower(job).T, matrix(60))


def test_two_workers_that_stop_at_their_limit_of_time_are_replaced(store):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    limits = Limits(runtime=0.5, timeout=1)
    with submit(
        programs.slow.bind(N=150), given, store=store, launcher="threads", options=QUICK, limits=limits
    ) as job:
        job.wait(150)
        assert len(open_parts(job.address).ledger.workers()) > 2


def test_hostile_messages_are_thrown_away(store):
    job = factorised(store=store, launcher=None)
    parts = open_parts(job.address)
    parts.queue.put(
        [Entry(name, 2**61) for name in ("__import__('os')", "99.0", "0.1.2.3.4", "@77", "0.-5", "../../x")]
    )
    parts.queue.put([Entry(name, 2**61) for name in ("@0:0:5", "@1:-3:2", "@2:0:0", "@0:5")])
    with attach(job.address, workers=1, launcher="threads") as workers:
        workers.wait(150)
        assert np.allclose(lower(workers) @ lower(workers).T, matrix(60))


def test_seeds_of_this_program_are_known():
    small, large = left_looking.bind(N=3), job_kernels.sleeping.bind(N=5000)
    for bound in (small, large):
        seeds = [Seed(), *(named(child.name) for child in children_of(bound, Seed()))]
        for seed in seeds[1:]:
            ranges = [named(child.name) for child in children_of(bound, seed) if child.name[0] == "@"]
            seeds += ranges
        assert all(has_seed(bound, seed) for seed in seeds)
        assert (bound is large) == any(seed.low is not None for seed in seeds)
    for hostile in ("@0:0:5", "@0:0:1000000", "@0:5:2", "@0:-1:1", "@9"):
        assert not has_seed(large, named(hostile))


@pytest.mark.parametrize("board", ["embedded", "redis"])
def test_messages_that_are_no_text_are_thrown_away(store, board, request):
    server = request.getfixturevalue("redis_server") if board == "redis" else None
    job = factorised(store=store, launcher=None, ledger=server.url if server else None)
    hostile = b"0.\xff\xfe"
    if server is not None:
        with server.client() as client:
            client.zadd(f"linnet:{{{job.name}}}:{job.spec.identity}:queue:ready", {hostile: 2.0**61})
    else:
        with open_parts(job.address).queue._database.writing() as tables:
            tables.execute("INSERT INTO queue (name, priority) VALUES (CAST(? AS TEXT), 1 << 61)", (hostile,))
            tables.execute("INSERT INTO queue (name, priority) VALUES (?, 1 << 61)", (b"\xff",))
    with attach(job.address, workers=1, launcher="threads") as workers:
        workers.wait(150)
        assert np.allclose(lower(workers) @ lower(workers).T, matrix(60))
        assert open_parts(job.address).queue.size() == (0, 0, 0)


def test_a_hostile_job_is_refused(store):
    job = factorised(store=store, launcher=None)
    parts = open_parts(job.address)
    whole = bytes(parts.store.get(spec_key(job.name)))
    for damaged in (whole[:-1], b"", b"LNTJ" + whole[4:40], whole[:30] + b"\xff" + whole[31:]):
        parts.store.put(spec_key(job.name), [damaged])
        with pytest.raises(ln.WireError):
            attach(job.address)


def test_strange_keys_beside_the_tiles_disturb_nobody(store):
    job = factorised(store=store, launcher=None)
    parts = open_parts(job.address)
    for strange in ("O/x.1=5", "O/1.1=five", "O/=3", "O/1.-1=2", "job.old"):
        parts.store.put(f"{job.folder}/{strange}", [b"strange"])
    with attach(job.address, workers=1, launcher="threads") as workers:
        workers.wait(150)
        parts.ledger.drop()
        workers.resume()
        workers.wait(150)
        assert np.allclose(lower(workers) @ lower(workers).T, matrix(60))
        workers.delete()
        assert not list(parts.store.list(job.name))


@pytest.mark.parametrize("module", ["pickle", "os", "linnet.cli.__main__", "this"])
def test_a_stored_job_cannot_make_workers_import_anything(store, module):
    job = factorised(store=store, launcher=None)
    parts = open_parts(job.address)
    spec = replace(job.spec, options=replace(job.spec.options, imports=(module,)))
    parts.store.put(spec_key(job.name), [spec.to_bytes()])
    with pytest.raises(JobError, match=f"wants its workers to import '{module}', which is not allowed"):
        attach(job.address, workers=1, launcher="threads")
    with pytest.raises(JobError, match="not allowed"):
        serve(job.address)
    assert "this" not in sys.modules


def test_jobs_in_one_store_do_not_meet(store):
    jobs = [factorised(store=store, launcher="threads", n=40 + 10 * k) for k in range(3)]
    for k, job in enumerate(jobs):
        found = lower(job)
        assert np.allclose(found @ found.T, matrix(40 + 10 * k))
        job.close()


def test_waiting_has_a_limit(store):
    with factorised(store=store, launcher=None) as job, pytest.raises(TimeoutError, match="0 of 56 tasks"):
        job.wait(0.2)


def test_a_stopped_job_says_how_to_go_on(store):
    with factorised(store=store, launcher=None) as job:
        open_parts(job.address).ledger.halt("stopped", "the disk is full")
        with pytest.raises(JobStoppedError, match=r"the disk is full\n.*resume\(\)"):
            job.wait(5)


def test_results_of_a_job_that_is_not_finished_are_refused(store):
    with factorised(store=store, launcher=None) as job:
        parts = open_parts(job.address)
        with pytest.raises(OSError, match="not finished"):
            StoredTiles(parts, job.spec, "O")


def test_control_c_in_wait_leaves_the_job_running(store):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(programs.slow.bind(N=30), given, store=store, launcher="threads", options=QUICK) as job:
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            job.wait(150)
        job.wait(150)


def test_a_job_that_cannot_fit_its_workers_is_refused_with_the_numbers(store):
    limits = Limits(memory=2000)
    with pytest.raises(ln.BudgetError, match=r"a task needs 2.4 kB .* may use 2.0 kB(.|\n)*trsm"):
        factorised(store=store, limits=limits, launcher=None)
