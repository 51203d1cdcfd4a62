"""Each line of "What is trusted" in `docs/workers.md`: what somebody can do at worst, and what not."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace

import job_kernels
import numpy as np
import pytest

import linnet as ln
from linnet.engines import Threads
from linnet.errors import AddressError, JobError, LinnetError, MissingTileError, StoreError
from linnet.tiles import TiledArray
from linnet.tiles.codec import encoded
from linnet.workers import crew, provisioner
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.ledger import Child, Completion, Start
from linnet.workers.queue import Entry
from linnet.workers.serving import serve
from linnet.workers.spec import JobSpec, Options, spec_key

pytestmark = pytest.mark.slow

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


class Recording(Threads):
    """An engine that keeps what it was given to run."""

    def run(self, bound, inputs, **options):
        self.last = bound, dict(inputs)
        return super().run(bound, inputs, **options)


def test_who_writes_to_the_store_cannot_make_workers_write_files(store, tmp_path):
    """A program that saves an array stands in the job: nobody is sent to that place who was not told of it."""
    engine = Recording(1)
    with ln.init(engine=engine):
        ln.save(tmp_path / "out.npy", ln.ones((4, 6), chunks=2))
    (tmp_path / "out.npy").unlink()
    with submit(*engine.last, store=store, launcher=None) as job:
        for files in ((), [f"{tmp_path}/other"], ["https://host"]):
            with pytest.raises(JobError, match=r"out\.npy, which is not allowed"):
                serve(job.address, files=files)
        assert not (tmp_path / "out.npy").exists()


def test_who_writes_to_the_store_cannot_make_workers_use_files_while_they_run(store, tmp_path, monkeypatch):
    """A worker believes the job that it read when it began, and those that come later are not told of more."""
    monkeypatch.setattr(provisioner, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(crew, "_PERIOD", 0.05)
    np.save(tmp_path / "secret.npy", np.arange(10.0))
    with (
        ln.submit(ln.load(tmp_path / "secret.npy", chunks=5) + 1, store=store, launcher=None) as hostile,
        started(store, launcher=None) as job,
    ):
        body = replace(hostile.spec, identity=job.spec.identity).to_bytes()
        with attach(job.address, launcher="threads", imports=["job_kernels"]) as other:
            open_parts(job.address).store.put(spec_key(job.name), [body])
            other.resume(workers=1)
            with pytest.raises(JobError, match=r"secret\.npy, which is not allowed"):
                other.wait(60)


def test_who_writes_to_the_store_can_change_the_job_into_another_of_the_kernels_workers_have(store):
    """Whoever comes later believes it, and whoever holds the job notices a program that is not its own."""
    with started(store, launcher=None) as job, started(store, job_kernels.doubling, launcher=None) as other:
        parts = open_parts(job.address).store
        mine, theirs = (
            JobSpec.from_bytes(memoryview(parts.get(spec_key(each.name)))) for each in (job, other)
        )
        parts.put(spec_key(job.name), [replace(mine, program=theirs.program).to_bytes()])
        with attach(job.address, workers=1, launcher="threads", imports=["job_kernels"]) as changed_job:
            changed_job.wait(150)
            found = changed_job.result()["B"].to_numpy()
        assert np.array_equal(found, 2 * np.arange(10.0 * TILES))


def test_who_writes_to_the_store_cannot_name_a_kernel_that_workers_do_not_have(store):
    with started(store, launcher=None) as job:
        parts = open_parts(job.address).store
        spec = bytes(parts.get(spec_key(job.name)))
        assert spec.count(b"jobs_sleepy") == 1
        parts.put(spec_key(job.name), [spec.replace(b"jobs_sleepy", b"os.system!!")])
        with pytest.raises(LinnetError, match="os.system!!|checksum|damaged"):
            attach(job.address, workers=1, launcher="threads", imports=["job_kernels"]).wait(150)


# ---- who may write to the queue

ALIASES = ["00.1", "0.01", "0.-0", "0.\u0661", "@00", "@0:00:1"]
"""Other ways to write the names of tasks and seeds that there are: each would be counted once more."""


def test_who_writes_to_the_queue_cannot_have_done_what_is_no_task(store):
    with started(store, launcher=None) as job:
        parts = open_parts(job.address)
        hostile = ["7.0", "0.99", "0.-1", "@9", "@0:0:5", "os.system", "../x", "0.1;0.2", "", *ALIASES]
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


def test_who_writes_to_the_ledger_can_publish_other_attempts(store):
    """What is read then is what lies under their tokens: nothing, if they cannot write to the store."""
    with started(store) as job:
        job.wait(150)
        parts = open_parts(job.address)
        (honest,) = parts.ledger.published(["0.0"])
        assert parts.ledger.reopen("0.0", honest, [], "")
        (begun,) = parts.ledger.begin([Start("0.0")], "mallory/1")
        parts.ledger.complete([Completion("0.0", begun.token)])
        assert parts.ledger.published(["0.0"]) == [begun.token] != [honest]
        with (
            attach(job.address, launcher=None) as again,
            pytest.raises(MissingTileError, match="resume the job"),
        ):
            again.result()["B"].to_numpy()
        with attach(job.address, launcher="threads", imports=["job_kernels"]) as again:
            again.resume()
            assert right(again)


HOSTILE = [
    "os.system",
    "../../etc/passwd",
    "0.99",
    "9.0",
    "0",
    "0.1;0.2",
    "@7",
    "@0:0:5",
    *ALIASES,
    "0.\udcff",
]


def test_who_writes_to_the_ledger_cannot_have_done_what_is_no_task(store):
    """Names that are none of the program's, as ready and as begun long ago: nothing is done for them."""
    with started(store, launcher=None) as job:
        ledger = open_parts(job.address).ledger
        (seed,) = ledger.begin([Start("@")], "mallory/1")
        ledger.complete(
            [
                Completion(
                    "@", seed.token, [Child(each, 0) for each in HOSTILE[:-1]], last=False, counted=False
                )
            ]
        )
        ledger.begin([Start(each) for each in HOSTILE[:-1]], "mallory/1")
        with attach(job.address, launcher="threads", imports=["job_kernels"]) as other:
            other.resume()
            other.wait(150)
            assert right(other)
            assert other.progress().done == TILES


def test_what_the_ledger_calls_slow_is_begun_only_if_it_is_a_task(store, monkeypatch):
    with started(store, launcher=None) as job:
        parts = open_parts(job.address)
        told = iter([HOSTILE])
        monkeypatch.setattr(type(parts.ledger), "stragglers", lambda *_: next(told, []))
        with attach(job.address, workers=1, launcher="threads", imports=["job_kernels"]) as other:
            parts.queue.clear()  # so that the worker has time to look around
            other.wait(150)
            assert right(other)
            assert next(told, None) is None
            assert len(parts.ledger.workers()) == 1, "a worker ended by it"


# ---- who starts workers


def test_who_starts_workers_decides_what_they_may(store, tmp_path):
    """All that their own account can: the modules and files that they name are used."""
    np.save(tmp_path / "own.npy", np.arange(10.0))
    with ln.submit(ln.load(tmp_path / "own.npy", chunks=5) + 1, store=store, launcher=None) as job:
        assert serve(job.address, files=[str(tmp_path)]) == "finished"
        assert np.array_equal(job.result().compute(), np.arange(10.0) + 1)


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
