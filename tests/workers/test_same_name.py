"""Jobs of the same name: a name that is taken is refused, and nothing of an old job is met by a new one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import job_kernels
import numpy as np
import pytest

from linnet.errors import AddressError, LinnetError
from linnet.tiles import TiledArray
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.ledger import Completion, Start
from linnet.workers.store import open_store

pytestmark = pytest.mark.slow


@pytest.fixture(params=["embedded", "redis"])
def where(request, store):
    """Where jobs are."""
    if request.param == "embedded":
        return {"store": store}
    return {"store": store, "ledger": request.getfixturevalue("redis_server").url}


def one_more(start, where, launcher="threads"):
    """A job that adds 1 to four numbers, under a name that others may have."""
    given = {"A": TiledArray.from_numpy(np.arange(start, start + 4.0), 1)}
    return submit(job_kernels.sleeping.bind(N=4), given, name="mine", launcher=launcher, **where)


def result(job):
    return job.result()["B"].to_numpy().tolist()


def test_a_name_that_is_taken_is_refused(where):
    with one_more(0, where) as job:
        with pytest.raises(AddressError, match=r"the name 'mine' is taken.*ln\.attach\(.*job=mine"):
            one_more(1000, where)
        assert result(job) == [1, 2, 3, 4]
        job.delete()


def test_a_name_whose_ledger_is_lost_is_taken(where):
    with one_more(0, where) as job:
        job.wait(150)
        open_parts(job.address).ledger.drop()
        with pytest.raises(AddressError, match="is taken"):
            one_more(1000, where)


def test_of_several_clients_one_has_the_name(where):
    def tried(start):
        try:
            return start, one_more(start, where, launcher=None)
        except AddressError:
            return start, None

    with ThreadPoolExecutor(6) as pool:
        found = [(start, job) for start, job in pool.map(tried, range(0, 600, 100)) if job is not None]
    ((start, job),) = found
    with job, attach(job.address, workers=1, launcher="threads", imports=["job_kernels"]) as workers:
        assert result(workers) == [start + 1, start + 2, start + 3, start + 4]
        workers.delete()


def test_a_name_is_free_after_delete(where):
    for start in (0, 1000):
        with one_more(start, where) as job:
            assert result(job) == [start + 1, start + 2, start + 3, start + 4]
            job.delete()


def test_who_holds_an_old_job_meets_nothing_of_the_new_one(where):
    """A worker that slept while its job was deleted, and another made under the name."""
    old = one_more(0, where, launcher=None)
    parts = open_parts(old.address)
    (begun,) = parts.ledger.begin([Start("0.0")], "asleep/1")
    old.delete()
    with one_more(1000, where, launcher=None) as new:
        try:
            parts.ledger.complete([Completion("0.0", begun.token)])
            parts.ledger.fail("0.1", begun.token, "of the old job")
            parts.ledger.halt("stopped", "of the old job")
        except LinnetError:
            pass
        parts.queue.clear()
        status = open_parts(new.address).ledger.status()
        assert (status.state, status.done) == ("running", 0)
        with attach(new.address, workers=1, launcher="threads", imports=["job_kernels"]) as workers:
            assert result(workers) == [1001, 1002, 1003, 1004]
            workers.delete()


@pytest.mark.parametrize("act", ["delete", "resume"])
@pytest.mark.parametrize("whose", ["deleted it", "held it meanwhile"])
def test_an_old_job_does_nothing_to_a_new_one_of_its_name(where, act, whose):
    """Whoever has a job in hand that was deleted can only be told so."""
    first = one_more(0, where)
    first.wait(150)
    second = attach(first.address, launcher="threads", imports=["job_kernels"])
    first.delete()
    with one_more(1000, where) as new:
        new.wait(150)
        old = first if whose == "deleted it" else second
        for each in (act, "cancel", "delete"):  # who was told the first time may go on
            with suppress(LinnetError):
                getattr(old, each)()
        first.close()
        second.close()
        assert new.progress().state == "finished"
        assert result(new) == [1001, 1002, 1003, 1004]
        with attach(new.address, launcher=None) as again:
            assert result(again) == [1001, 1002, 1003, 1004]
        new.delete()
    assert not list(open_store(where["store"]).list())


def test_a_refused_name_leaves_nothing(where):
    with one_more(0, where) as job:
        job.wait(150)
        before = sorted(open_store(where["store"]).list())
        with pytest.raises(AddressError):
            one_more(1000, where)
        assert sorted(open_store(where["store"]).list()) == before
        job.delete()
