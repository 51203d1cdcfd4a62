"""What MPI as an engine must do, on rank 0 of a job of four ranks: `test_mpi.py` starts it there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.engines import Threads
from linnet.engines.mpi import MPI, derived
from linnet.engines.remote_tiles import RemoteTiles
from linnet.errors import BudgetError, EngineClosedError, InputError, JobError, KernelError
from linnet.events import Events, TaskFinished, WorkerStarted
from linnet.kernels import kernel
from linnet.planning.choosing import FAMILIES
from linnet.programs import In, Out, Temp, tile_program
from linnet.session import current_engine
from linnet.testing import kernels as programs
from linnet.testing.engines import EngineSuite, numbers
from linnet.testing.models import ModelSuite
from linnet.tiles import Layout, TiledArray


class TestMPI(EngineSuite):
    @pytest.fixture
    def engine(self):
        return current_engine()


class TestModelsOnMPI(ModelSuite):
    @pytest.fixture
    def engine(self):
        return current_engine()


# Other ranks cannot import this module: its kernels are sent to them.


@kernel("mpi_refuse", shape=lambda x: x)
def refuse(x):
    if x[0] == 3:
        raise ValueError("not this one")
    return x


@kernel("mpi_bad_dtype")
def objects(x):
    return x.astype(object)


@tile_program
def neighbours(A: In, B: Out, C: Out, S: Temp, N: int):
    for i in range(N):
        S[i] = testing_step(A[i])
    for i in range(N):
        B[i] = testing_nap(S[i], 1.5)
    for i in range(N):
        C[i] = testing_step(S[(i + 1) % N])


@tile_program
def refusing(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = mpi_refuse(A[i])


@tile_program
def object_tiles(A: In, B: Out, S: Temp, N: int):
    for i in range(N):
        S[i] = mpi_bad_dtype(A[i])
    for i in range(N):
        B[i] = testing_scaled(S[(i + 1) % N], 1)


@tile_program
def scaling(A: In, B: Out, N: int, M: int, F: int):
    for i in range(N):
        for j in range(M):
            B[i, j] = testing_scaled(A[i, j], F)


@pytest.fixture
def engine():
    return MPI()


def product(n=4, tile=400, seed=0):
    a, b = numbers((n * tile, n * tile), seed=seed), numbers((n * tile, n * tile), seed=seed + 1)
    inputs = {"A": TiledArray.from_numpy(a, tile), "B": TiledArray.from_numpy(b, tile)}
    return programs.affine.bind(N=n, K=n), inputs, "C"


def factor(n=5, tile=400):
    a = numbers((n * tile, n * tile))
    spd = a @ a.T + n * tile * np.eye(n * tile)
    return cholesky.bind(N=n), {"A": TiledArray.from_numpy(spd, tile)}, "O"


# ---- what moves, and what is held


@pytest.mark.parametrize("case", [product, factor])
def test_bytes_that_move_are_those_of_the_plan(engine, case):
    bound, inputs, name = case()
    plan = engine.plan(bound, inputs)
    engine.moved()
    found = engine.run(bound, inputs)
    moved = engine.moved()
    assert plan.bytes_moved > 10e6
    assert np.allclose(moved[1:], plan.bytes_in[1:], rtol=0.05)
    assert moved[0] <= plan.bytes_in[0]  # it has the inputs in memory
    expected = Threads(1, deterministic=True).run(bound, inputs)
    assert np.array_equal(found[name].to_numpy(), expected[name].to_numpy())


def stayed(engine, given, factor):
    """An array, multiplied, whose tiles are on the ranks."""
    n, m = given.grid
    tiles = engine.run(scaling.bind(N=n, M=m, F=factor), {"A": given}).tiles("B")
    return TiledArray(given.layout, given.dtype, tiles)


def test_bytes_of_arrays_that_stayed_with_ranks(engine):
    bound, given, _ = product()
    inputs = {name: stayed(engine, array, 2) for name, array in given.items()}
    plan = engine.plan(bound, inputs)
    engine.moved(), engine.given()
    found = engine.run(bound, inputs)["C"].to_numpy()
    assert plan.bytes_moved > 10e6
    assert np.allclose(engine.moved(), plan.bytes_in, rtol=0.05)
    assert not engine.given().any()
    assert np.allclose(found, 4 * given["A"].to_numpy() @ given["B"].to_numpy())


def test_memory_stays_near_what_the_plan_expects(engine):
    bound, given, _ = product(n=6, tile=200)
    inputs = {name: stayed(engine, array, 1) for name, array in given.items()}
    plan = engine.plan(bound, inputs)
    engine.peak()
    engine.run(bound, inputs)
    assert (engine.peak() <= 1.25 * plan.peak_memory).all()


def test_a_plan_that_needs_more_memory_is_refused(engine):
    bound, inputs, _ = product()
    with pytest.raises(
        BudgetError, match=r"affine needs .* of tiles at once on one rank, and the budget is 2.0 MB"
    ):
        MPI(memory="2 MB").run(bound, inputs)
    assert product_is_right(engine)


def product_is_right(engine):
    bound, inputs, name = product(n=3, tile=20)
    found = engine.run(bound, inputs)[name].to_numpy()
    return np.allclose(found, inputs["A"].to_numpy() @ inputs["B"].to_numpy())


def test_little_memory_is_enough_where_it_is_enough_for_the_plan():
    bound, inputs, name = product(n=6, tile=100)
    peak = int(MPI(workers=2).plan(bound, inputs).peak_memory.max())
    found = MPI(workers=2, memory=peak + 100_000).run(bound, inputs)[name].to_numpy()
    assert np.allclose(found, inputs["A"].to_numpy() @ inputs["B"].to_numpy())


def test_tiles_go_while_kernels_run():
    engine = MPI(workers=2, policy="round-robin")
    n, size = 4, 250_000
    events, ends = Events(), {}
    events.subscribe(lambda event: ends.setdefault(event.task, event.at), TaskFinished)
    a = np.arange(float(n * size))
    bound, inputs = neighbours.bind(N=n), {"A": TiledArray.from_numpy(a, size)}
    engine.run(neighbours.bind(N=1), {"A": TiledArray.from_numpy(a[:size], size)})  # kernels are known now
    nodes = engine.plan(bound, inputs).placement.nodes
    assert nodes[2 * n :].tolist() == nodes[:n].tolist()  # C[i] runs where S[i] was made, and needs S[i + 1]
    found = engine.run(bound, inputs, events=events)["C"].to_numpy()
    assert np.array_equal(found.reshape(n, size), np.roll(a.reshape(n, size), -1, axis=0) + 2)
    for i in range(n):
        assert ends[2, (i,)] < ends[1, (i,)], "the tile came only after the kernels had ended"
        assert ends[2, (i,)] < ends[1, ((i + 1) % n,)]


@settings(max_examples=20)
@given(
    n=st.integers(1, 5),
    k=st.integers(2, 5),
    tile=st.integers(1, 7),
    policy=st.sampled_from(sorted(FAMILIES)),
    workers=st.integers(1, 3),
    placed=st.booleans(),
)
def test_any_grid_any_policy(n, k, tile, policy, workers, placed):
    rng = np.random.default_rng(n * 100 + k)
    a, b = rng.integers(-9, 9, (n * tile, k * tile)) * 1.0, rng.integers(-9, 9, (k * tile, n * tile)) * 1.0
    inputs = {"A": TiledArray.from_numpy(a, tile), "B": TiledArray.from_numpy(b, tile)}
    whole = np.zeros((n * tile, n * tile), a.dtype)
    out = {"C": TiledArray.over(whole, Layout.regular(whole.shape, tile))} if placed else None
    found = MPI(workers=workers, policy=policy).run(programs.affine.bind(N=n, K=k), inputs, out=out)
    assert np.array_equal(whole if placed else found["C"].to_numpy(), a @ b)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_results_go_to_their_places(engine, order):
    bound, inputs, _ = product(n=4, tile=128)
    whole = np.zeros((512, 512), order=order)
    out = {"C": TiledArray.over(whole, Layout.regular(whole.shape, 128))}
    engine.run(bound, inputs, out=out)
    assert np.allclose(whole, inputs["A"].to_numpy() @ inputs["B"].to_numpy())


def test_array_expressions(engine):
    a, b = numbers((300, 200)), numbers((200, 250), seed=1)
    with ln.init(engine):
        x, y = ln.asarray(a, chunks=64), ln.asarray(b, chunks=64)
        assert np.allclose((ln.sin(x @ y) + 1).sum(axis=0).compute(), (np.sin(a @ b) + 1).sum(0))
        assert float((x * 2).mean()) == pytest.approx(2 * a.mean())
        assert np.array_equal(ln.map_blocks(lambda tile: tile + 3, x).compute(), a + 3)
        assert np.array_equal(x[a > 0.5].compute(), a[a > 0.5])  # a stage
        drawn = ln.random.default_rng(3).standard_normal((100, 100), chunks=30)
        known = drawn.compute()
    assert np.array_equal(ln.random.default_rng(3).standard_normal((100, 100), chunks=30).compute(), known)


def test_linear_algebra(engine):
    a = numbers((120, 120))
    with ln.init(engine):
        q, r = ln.linalg.qr(ln.asarray(a, chunks=40))
        solved = ln.linalg.solve(ln.asarray(a, chunks=40), ln.asarray(a[:, :3], chunks=40))
        assert np.allclose(np.asarray(q @ r), a)
        assert np.allclose(np.asarray(solved), np.eye(120)[:, :3])


def test_systems_and_spectra_stay_with_the_ranks(engine):
    a, b = numbers((300, 300)), numbers((300, 20), seed=1)
    with ln.init(engine):
        x = ln.asarray(a, chunks=100) * 1.0
        packed, piv = ln.persist(ln.linalg.lu_factor(x, tile=75))
        assert isinstance(packed.__node__.tiles.tiles, RemoteTiles)
        factor = ln.linalg.cholesky(ln.asarray(a @ a.T + 300 * np.eye(300), chunks=75)).persist()
        assert isinstance(factor.__node__.tiles.tiles, RemoteTiles)
        assert np.allclose(a @ np.asarray(ln.linalg.solve(x, b, tile=75)), b)
        assert np.allclose(a @ np.asarray(ln.linalg.lu_solve((packed, piv), b, tile=75)), b)
        u, s, vh = ln.linalg.svd(x[:, :200], full_matrices=False, tile=75)
        assert np.allclose(np.asarray((u * s) @ vh), a[:, :200])
        w, z = ln.linalg.eigh(x + x.mT, tile=75)
        assert np.allclose(np.asarray((x + x.mT) @ z), np.asarray(z * w))


def test_what_is_persisted_stays_with_the_ranks(engine):
    a = numbers((1200, 900))
    with ln.init(engine):
        x = (ln.asarray(a, chunks=300) * 2).persist()
        y = (x * 2).persist()
        engine.moved(), engine.given()
        assert float((y - x).sum()) == pytest.approx(2 * a.sum())
        assert engine.moved().sum() < 1000  # sums of tiles, and none of the tiles
        assert engine.given().sum() < 1000
        assert np.array_equal(y.compute(), 4 * a)


def test_a_task_that_computes_does_so_where_it_runs(engine):
    def nested(tile):
        assert repr(current_engine()) == "Threads(workers=1, deterministic=True)"
        return (ln.asarray(tile, chunks=3) + 1).compute()

    a = numbers((40, 30))
    with ln.init(engine):
        assert np.array_equal(ln.map_blocks(nested, ln.asarray(a, chunks=8), dtype=float).compute(), a + 1)


def test_an_engine_that_is_closed_leaves_the_ranks_to_others(engine):
    a = numbers((120, 90))
    with ln.init("mpi") as session:
        kept = (ln.asarray(a, chunks=30) * 2).persist()
        assert np.array_equal(kept.compute(), a * 2)
    gone = r"the array of shape \(120, 90\) and dtype float64 was kept on MPI\(ranks=4.*\), which was closed"
    with pytest.raises(EngineClosedError, match=gone):
        kept.compute()
    with ln.init(engine), pytest.raises(EngineClosedError, match=gone):
        (kept + 1).compute()
    with pytest.raises(EngineClosedError, match=r"MPI\(ranks=4.*\) was closed and runs nothing any more"):
        session.engine.run(programs.doubled.bind(N=1), {"B": TiledArray.from_numpy(np.ones(1), 1)})
    with ln.init(engine):
        assert np.array_equal((ln.asarray(a, chunks=30) * 2).compute(), a * 2)


# ---- what goes wrong


def test_an_error_on_another_rank_names_it(engine):
    inputs = {"A": TiledArray.from_numpy(np.arange(16.0), 1)}
    for policy in ("round-robin", "auto"):
        with pytest.raises(KernelError, match="not this one") as caught:
            MPI(policy=policy).run(refusing.bind(N=16), inputs)
        assert caught.value.task == (0, (3,))
        if policy == "round-robin":
            assert "on rank 3" in str(caught.value)
        assert "B[i] = mpi_refuse(A[i])" in caught.value.where
    assert product_is_right(engine)


def test_tiles_that_cannot_be_sent(engine):
    inputs = {"A": TiledArray.from_numpy(np.arange(8.0), 1)}
    with pytest.raises(InputError, match="a tile of dtype object cannot go to another rank"):
        MPI(policy="round-robin").run(object_tiles.bind(N=8), inputs)
    assert product_is_right(engine)


def test_results_that_do_not_fit_their_places(engine):
    bound, inputs, _ = product(n=3, tile=5)
    whole = np.zeros((15, 15), int)
    of_integers, cut_otherwise = (
        {"C": TiledArray.over(whole, Layout.regular((15, 15), tile))} for tile in (5, 3)
    )
    for policy in ("round-robin", "auto"):
        with pytest.raises(TypeError, match="Cannot cast array data"):
            MPI(policy=policy).run(bound, inputs, out=of_integers)
        with pytest.raises(InputError, match=r"C\[., .\] was written with shape \(5, 5\)"):
            MPI(policy=policy).run(bound, inputs, out=cut_otherwise)
    assert product_is_right(engine)


def test_another_plan_is_found_out(engine, monkeypatch):
    bound, inputs, _ = product(n=2, tile=3)
    monkeypatch.setattr(derived, "_checksum", lambda *_: 1)
    with pytest.raises(JobError, match="rank . made another plan for affine than rank 0"):
        engine.run(bound, inputs)
    monkeypatch.undo()
    assert product_is_right(engine)


def test_workers_are_those_of_all_ranks():
    events, started = Events(), []
    events.subscribe(started.append, WorkerStarted)
    engine = MPI(workers=2)
    engine.run(programs.doubled.bind(N=2), {"B": TiledArray.from_numpy(np.ones(2), 1)}, events=events)
    assert len({event.worker for event in started}) == engine.workers == 8
    assert repr(engine) == "MPI(ranks=4, workers=8)"
    with pytest.raises(InputError, match="workers=0: give at least 1"):
        MPI(workers=0)
    with pytest.raises(InputError, match="give the name of a policy; every rank makes the plan"):
        MPI(policy=object())
    with pytest.raises(InputError, match="policy 'best' is not known"):
        MPI(policy="best").run(programs.doubled.bind(N=2), {"B": TiledArray.from_numpy(np.ones(2), 1)})
