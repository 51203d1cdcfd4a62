"""Jobs that read results of other jobs where they are."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import msgpack
import numpy as np
import pytest
from job_samples import matrix, workers_left

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.engines.stateless import Stateless
from linnet.errors import InputError, JobFailedError, WireError
from linnet.programs.framing import framed, unframed
from linnet.tiles import Layout, TiledArray, TileKey
from linnet.workers.array_specs import Borrowed, InputSpec
from linnet.workers.client import submit
from linnet.workers.job_parts import open_parts
from linnet.workers.spec import MARK, VERSION, JobSpec, Options
from linnet.workers.store import open_store

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.0, grace=0.2)
X = np.arange(30.0).reshape(5, 6)


def given(array, **options):
    return ln.submit(array, launcher="threads", options=QUICK, **options)


def keys(store, job):
    return sorted(key for key, _ in open_store(store).list(f"{job.folder}/"))


def copied(store, job):
    """Tiles of inputs that a job stored, but for plain numbers."""
    return [key for key in keys(store, job) if key.endswith("=in") and not key.endswith("/-=in")]


@pytest.fixture
def first(store):
    """A finished job; its result is X + 1 in six tiles."""
    with given(ln.asarray(X, chunks=(2, 3)) + 1, store=store) as job:
        job.wait(150)
        yield job


def test_the_result_of_a_job_is_not_stored_again(store, first):
    with given(first.result() * 2, store=store) as job:
        assert np.array_equal(job.result().compute(), (X + 1) * 2)
        assert copied(store, job) == []
        (borrowed,) = [each.borrowed for each in job.spec.inputs.values() if each.borrowed]
        assert borrowed.job == first.folder
        assert len(borrowed.tokens) == 6
        job.delete()
        assert np.array_equal(first.result().compute(), X + 1)


def test_results_stay_until_their_job_is_deleted(store, first):
    result = first.result()
    before = keys(store, first)
    with given(result * 2, store=store) as job:
        job.wait(150)
    assert keys(store, first) == before
    first.delete()
    assert keys(store, first) == []
    with pytest.raises(ln.LinnetError, match="is not in file:"):
        result.compute()


def test_several_arrays_share_one_job_and_one_loan(store, first):
    y = first.result()
    with given((y * 2, y.sum(), y + ln.asarray(X, chunks=(2, 3))), store=store) as job:
        doubled, total, added = job.result()
        assert np.array_equal(doubled.compute(), (X + 1) * 2)
        assert total.compute() == (X + 1).sum()
        assert np.array_equal(added.compute(), X + 1 + X)
        assert len(copied(store, job)) == 6


def test_a_program_borrows_too(store):
    tiles = TiledArray.from_numpy(matrix(20), 10)
    with submit(cholesky.bind(N=2), {"A": tiles}, store=store, launcher="threads", options=QUICK) as job:
        found = job.stored()["O"]
    tiles = TiledArray(Layout.regular((20, 20), 10), np.dtype(float), found, fill=0)
    with submit(cholesky.bind(N=2), {"A": tiles}, store=store, launcher="threads", options=QUICK) as again:
        again.wait(150)
        assert again.spec.inputs["A"].absent == {(0, 1)}
        assert copied(store, again) == []


def test_into_another_store_tiles_are_copied(store, first, tmp_path):
    other = str(tmp_path / "other")
    with given(first.result() * 2, store=other) as job:
        assert np.array_equal(job.result().compute(), (X + 1) * 2)
        assert len(copied(other, job)) == 6


def test_an_engine_borrows_from_jobs_in_its_store(store, first):
    engine = Stateless(1, store=store, launcher="threads", options=QUICK)
    with ln.init(engine):
        y = (first.result() * 2).persist()
        assert np.array_equal(y.compute(), (X + 1) * 2)
    engine.close()
    assert np.array_equal(first.result().compute(), X + 1)


def test_a_job_does_not_borrow_what_may_go_before_it_ends(store):
    engine = Stateless(1, store=store, launcher="threads", options=QUICK)
    with ln.init(engine):
        y = (ln.asarray(X, chunks=(2, 3)) + 1).persist()
    with given(y * 2, store=store) as job:
        engine.close()
        assert len(copied(store, job)) == 6
        assert np.array_equal(job.result().compute(), (X + 1) * 2)


def test_a_job_whose_loan_was_deleted_fails_and_says_whose_it_was(store, first):
    result = first.result()
    first.delete()
    with given(result.sum(), store=store) as job:
        words = (
            rf"an input of the job cannot be read: \w+\[\d, \d\] is tile \w+\[\d, \d\] of job {first.folder} "
        )
        with pytest.raises(JobFailedError, match=words + ".*only that job can compute it"):
            job.wait(150)


def test_a_lost_ledger_of_a_borrower_is_rebuilt(store):
    with given(ln.asarray(matrix(60), chunks=10) * 1, store=store) as lender:
        result = lender.result()
        with given(result @ result, store=store) as job:
            while job.progress().done < 5:
                time.sleep(0.001)
            job.cancel()
            workers_left(job)
            before = keys(store, lender)
            open_parts(job.address).ledger.drop()
            with ln.attach(job.address, launcher="threads") as again:
                again.resume(workers=2)
                again.wait(150)
                assert np.allclose(again.result().compute(), matrix(60) @ matrix(60))
            assert keys(store, lender) == before


def test_a_damaged_loan_is_left_alone(store, first):
    parts = open_parts(first.address)
    damaged = keys(store, first)[-2]
    parts.store.put(damaged, [b"not a tile"])
    with given(first.result().sum(), store=store) as job:
        with pytest.raises(JobFailedError, match=f"of job {first.folder}"):
            job.wait(150)
        job.delete()
    assert bytes(parts.store.get(damaged)) == b"not a tile"


# ---- as data


def spec_of(store, **changes):
    given = TiledArray.from_numpy(matrix(20), 10)
    job = submit(cholesky.bind(N=2), {"A": given}, store=store, launcher=None)
    body = msgpack.unpackb(unframed(job.spec.to_bytes(), MARK, VERSION, "a job", most=2**20))
    job.close()
    body["inputs"]["A"][4] = changes.get("borrowed")
    return body


def test_loans_are_written_and_read(store):
    body = spec_of(store, borrowed=["lender-1", "O", [5, 2**40, 7, 8]])
    spec = JobSpec.from_bytes(framed(MARK, VERSION, msgpack.packb(body)))
    read = spec.inputs["A"]
    assert read.borrowed == Borrowed("lender-1", "O", (5, 2**40, 7, 8))
    assert read.key("mine", TileKey("A", (0, 1))) == f"lender-1/O/0.1={2**40}"
    assert read.key("mine", TileKey("A", (1, 0))) == "lender-1/O/1.0=7"
    assert JobSpec.from_bytes(spec.to_bytes()).inputs == spec.inputs


def test_jobs_of_the_first_version_are_read(store):
    body = spec_of(store)
    body["inputs"] = {name: each[:4] for name, each in body["inputs"].items()}
    spec = JobSpec.from_bytes(framed(MARK, 1, msgpack.packb(body)))
    assert spec.inputs["A"] == InputSpec(Layout.regular((20, 20), 10), np.dtype(float))
    assert spec.inputs["A"].key("mine", TileKey("A", (1, 0))) == "mine/A/1.0=in"
    with pytest.raises(WireError, match=r"format version 4; this Linnet reads versions 1 to 3"):
        JobSpec.from_bytes(framed(MARK, 4, msgpack.packb(body)))


@pytest.mark.parametrize(
    "borrowed",
    [
        ["../other", "O", [1, 2, 3, 4]],
        ["a/b", "O", [1, 2, 3, 4]],
        ["", "O", [1, 2, 3, 4]],
        [".boards", "O", [1, 2, 3, 4]],
        ["lender", "../O", [1, 2, 3, 4]],
        ["lender", "O/1", [1, 2, 3, 4]],
        ["lender", "O\n", [1, 2, 3, 4]],
        ["lender", "", [1, 2, 3, 4]],
        ["lender", "O", [1, 2, 3]],
        ["lender", "O", [1, 2, 3, 4, 5]],
        ["lender", "O", [1, 2, 3, 0]],
        ["lender", "O", [1, 2, 3, -4]],
        ["lender", "O", [1, 2, 3, "4/../../x"]],
        ["lender", "O", [1, 2, 3, 4.5]],
        ["lender", "O", [1, 2, 3, True]],
        ["lender", "O", "1234"],
        ["lender", "O"],
        ["lender"],
        "lender",
        7,
    ],
)
def test_a_job_borrows_tiles_of_jobs_and_nothing_else(store, borrowed):
    body = spec_of(store, borrowed=borrowed)
    with pytest.raises(WireError, match="the job cannot be read"):
        JobSpec.from_bytes(framed(MARK, VERSION, msgpack.packb(body)))


# ---- what else may be in a job


def nested(levels):
    wanted = ["array", "L"]
    for _ in range(levels):
        wanted = ["list", [wanted]]
    return wanted


def test_results_are_arranged_in_a_hundred_levels_at_most(store):
    body = spec_of(store)
    body["arrays"] = [["L", body["inputs"]["A"][:4]]]
    spec = JobSpec.from_bytes(framed(MARK, VERSION, msgpack.packb(body | {"wanted": nested(99)})))
    assert JobSpec.from_bytes(spec.to_bytes()).wanted == nested(99)
    for levels in (100, 500):  # msgpack writes 511
        given = framed(MARK, VERSION, msgpack.packb(body | {"wanted": nested(levels)}))
        with pytest.raises(WireError, match=r"cannot be read: .* more than 100 levels of lists"):
            JobSpec.from_bytes(given)
    with pytest.raises(InputError, match="more than 100 levels of lists"):
        replace(spec, wanted=nested(100)).to_bytes()


@pytest.mark.parametrize(
    "field", ["sizes", "tables", "inputs", "weights", "arrays", "options", "gate", "wanted"]
)
def test_what_is_nested_too_deeply_is_refused_in_words(store, field):
    body = spec_of(store)
    marks = b"\x91" * 100_000 + b"\xc0"  # a list of one list of one list…, deeper than any stack
    given = msgpack.packb(body | {field: "here"}).replace(msgpack.packb("here"), marks)
    with pytest.raises(WireError, match="the job cannot be read: StackError: nested too deeply"):
        JobSpec.from_bytes(framed(MARK, VERSION, given))
    with pytest.raises(WireError, match="the job cannot be read"):
        JobSpec.from_bytes(framed(MARK, VERSION, msgpack.packb(body | {field: nested(500)})))


def test_a_job_is_read_or_refused_however_little_stack_is_left(store):
    given = framed(MARK, VERSION, msgpack.packb(spec_of(store)))

    def below(levels):
        return below(levels - 1) if levels else JobSpec.from_bytes(given)

    limit = sys.getrecursionlimit()
    refused = 0
    for levels in range(limit - 400, limit - 60, 3):
        try:
            assert below(levels).total
        except (WireError, RecursionError) as error:
            refused += isinstance(error, WireError)
    assert refused


def test_what_is_only_half_there_or_unknown_is_no_job(store):
    body = spec_of(store)
    packed = msgpack.packb(body)
    whole = framed(MARK, VERSION, packed)
    for size in range(0, len(whole), 7):
        with pytest.raises(WireError, match=r"too few|truncated or damaged"):
            JobSpec.from_bytes(whole[:size])
    for size in range(0, len(packed), 7):
        with pytest.raises(WireError, match="cannot be read"):
            JobSpec.from_bytes(framed(MARK, VERSION, packed[:size]))
    with pytest.raises(WireError, match="fields that this Linnet does not know: later, other"):
        JobSpec.from_bytes(framed(MARK, VERSION, msgpack.packb(body | {"other": 1, "later": 2})))
    options = body["options"] | {"later": 1}
    with pytest.raises(WireError, match="unexpected keyword argument 'later'"):
        JobSpec.from_bytes(framed(MARK, VERSION, msgpack.packb(body | {"options": options})))
