"""Each line of "What is trusted" in `docs/workers.md`: what somebody can do at worst, and what not."""

from __future__ import annotations

from contextlib import closing, suppress

import job_kernels
import numpy as np
import pytest

import linnet as ln
from linnet.errors import AddressError, JobError, MissingTileError, StoreError
from linnet.tiles import TiledArray
from linnet.tiles.codec import encoded
from linnet.workers.client import attach, submit
from linnet.workers.ledger import Completion, Start
from linnet.workers.parts import open_parts
from linnet.workers.queue import Entry
from linnet.workers.spec import JobSpec, Options, spec_key

QUICK = Options(lease=1.0, grace=0.5)
TILES = 6


def started(store, program=job_kernels.sleeping, **options):
    given = {"A": TiledArray.from_numpy(np.arange(10.0 * TILES), 10)}
    options.setdefault("launcher", "threads")
    return submit(program.bind(N=TILES), given, store=store, options=QUICK, **options)


def right(job):
    return np.array_equal(job.result()["B"].to_numpy(), np.arange(10.0 * TILES) + 1)


# ---- who may write to the store


def test_who_writes_to_the_store_can_put_other_numbers_there(store):
    with started(store) as job:
        job.wait(150)
        tiles = job.stored()["B"]
        key = next(tiles.stored_keys())
        open_parts(job.address).store.put(key, encoded(np.full(10, 7.0)))
        assert not right(job)


def test_who_writes_to_the_store_cannot_put_what_has_no_sound_checksum(store):
    with started(store) as job:
        job.wait(150)
        key = next(job.stored()["B"].stored_keys())
        open_parts(job.address).store.put(key, [b"x" * 200])
        job.resume()
        assert right(job)


def test_who_writes_to_the_store_can_delete_tiles_which_are_made_again(store):
    with started(store) as job:
        job.wait(150)
        open_parts(job.address).store.delete(list(job.stored()["B"].stored_keys()))
        job.resume()
        assert right(job)


def changed(job, **options):
    """The stored job, with other options, as somebody who may write to the store makes it."""
    from dataclasses import replace

    store = open_parts(job.address).store
    spec = JobSpec.from_bytes(memoryview(store.get(spec_key(job.name))))
    made = replace(spec, options=replace(spec.options, **options))
    store.put(spec_key(job.name), [made.to_bytes()])


def test_who_writes_to_the_store_cannot_make_workers_import_a_module(store):
    with started(store, launcher=None) as job:
        changed(job, imports=("job_kernels", "antigravity"))
        with pytest.raises(JobError, match="wants its workers to import 'antigravity', which is not allowed"):
            attach(job.address, workers=1, imports=["job_kernels"])


def test_who_writes_to_the_store_cannot_make_workers_use_files(store, tmp_path):
    np.save(tmp_path / "secret.npy", np.arange(10.0))
    with (
        ln.submit(ln.load(tmp_path / "secret.npy", chunks=5) + 1, store=store, launcher=None) as job,
        pytest.raises(JobError, match=r"secret\.npy, which is not allowed"),
    ):
        ln.attach(job.address, workers=1)


# ---- who may write to the queue


def test_who_writes_to_the_queue_cannot_have_done_what_is_no_task(store):
    with started(store, launcher=None) as job:
        parts = open_parts(job.address)
        hostile = ["7.0", "0.99", "0.-1", "@9", "@0:0:5", "os.system", "../x", "0.1;0.2", ""]
        parts.queue.put([Entry(name, 10**9) for name in hostile])
        parts.close()
        with attach(job.address, workers=1, launcher="threads", imports=["job_kernels"]) as other:
            other.wait(150)
            assert right(other)
            assert other.progress().done == TILES


def test_who_writes_to_the_queue_can_have_tasks_done_twice_and_put_off(store):
    with started(store, launcher=None) as job:
        parts = open_parts(job.address)
        parts.queue.put([Entry("0.0"), Entry("0.1")])  # before it is their turn, and once more then
        parts.queue.remove(parts.queue.lease(1, 60))
        parts.queue.clear()  # what is ready is put again after a lease
        parts.close()
        with attach(job.address, workers=1, launcher="threads", imports=["job_kernels"]) as other:
            other.wait(150)
            assert right(other)


# ---- who may write to the ledger


def test_who_writes_to_the_ledger_can_call_tasks_done_that_are_not(store):
    """Their tiles are missing then, which is said, and made again by `resume`."""
    with started(store, launcher=None) as job:
        ledger = open_parts(job.address).ledger
        for number in range(TILES):
            (begun,) = ledger.begin([Start(f"0.{number}")], "mallory/1")
            ledger.complete([Completion(f"0.{number}", begun.token)])
        assert job.progress().state == "finished"
        with pytest.raises(MissingTileError, match="resume the job"):
            job.result()["B"].to_numpy()
    with attach(job.address, launcher="threads", imports=["job_kernels"]) as again:
        again.resume()
        assert right(again)


def test_who_writes_to_the_ledger_can_end_the_job(store):
    with started(store, launcher=None) as job:
        open_parts(job.address).ledger.halt("stopped", "so I say")
        with pytest.raises(ln.JobStoppedError, match="so I say"):
            job.wait(150)


# ---- who sees the address, and users of their own


def allowed(server, user, name):
    """Let a user of a server reach the keys of the jobs of one name, and no others."""
    with closing(server.client()) as client:
        client.execute_command(
            *("ACL", "SETUSER", user, "on", ">" + user + "-secret", "resetkeys", f"~linnet:{{{name}}}:*"),
            *("+@all", "-@dangerous", "+info"),
        )


def test_an_address_does_not_log_in_and_a_user_reaches_its_own_jobs_only(start_redis, store, monkeypatch):
    for variable in ("LINNET_LEDGER_PASSWORD", "LINNET_LEDGER_USER"):
        monkeypatch.setenv(variable, "")  # workers in threads put theirs there: it is taken back afterwards
        monkeypatch.delenv(variable)
    server = start_redis(password="of-the-owner")
    for user in ("ann", "bob"):
        allowed(server, user, user)
    place = server.url.partition("@")[2]
    with started(store, name="ann", ledger=f"redis://ann:ann-secret@{place}") as job:
        job.wait(150)
        assert right(job)
        for secret in ("ann-secret", "of-the-owner", "ann:"):
            assert secret not in job.address
        for variable in ("LINNET_LEDGER_PASSWORD", "LINNET_LEDGER_USER"):
            monkeypatch.delenv(variable, raising=False)
        with pytest.raises(StoreError, match="did not accept the login"):
            attach(job.address)
        with pytest.raises(StoreError, match="may not run what is needed") as caught:
            attach(job.address.replace("redis://", "redis://bob:bob-secret@")).progress()
        assert "bob-secret" not in str(caught.value)
        with suppress(AddressError):
            job.delete()
