"""What engines that drive a cluster must do besides the suite of engines; subclassed for each."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.engines import Threads
from linnet.engines.remote_tiles import RemoteTiles
from linnet.errors import EngineClosedError, JobError
from linnet.events import Events, TaskFinished
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.session import current_engine
from linnet.testing import kernels as programs
from linnet.testing.engines import numbers
from linnet.tiles import TiledArray


@kernel("driven_process", shape=lambda x: (1,))
def process(x):
    return np.full(1, os.getpid())


@tile_program
def processes(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = driven_process(A[i])


@kernel("driven_mixed", shape=lambda x, y: x)
def mixed(x, y):
    time.sleep(0.02)
    return x + 2 * y


@tile_program
def mixing(A: In, B: Out, S: Temp("A"), N: int, M: int):
    assert M >= 1
    for m in range(M):
        for i in range(N):
            S[m + 1, i] = driven_mixed(S[m, i], S[m, (i + 1) % N])
    for i in range(N):
        B[i] = driven_mixed(S[M, i], S[M - 1, i])


def survives(engine, lose):
    """A run during which nodes are lost gives the right result all the same."""
    inputs = {"A": TiledArray.from_numpy(numbers((12 * 50,)), 50)}
    bound = mixing.bind(N=12, M=20)
    events = Events()
    finished = itertools.count(1)
    events.subscribe(lambda event: lose() if next(finished) == 90 else None, TaskFinished)
    found = engine.run(bound, inputs, events=events)["B"].to_numpy()
    assert next(finished) > 90
    assert np.array_equal(found, Threads(2).run(bound, inputs)["B"].to_numpy())


def outlives(engine, lose):
    """What was persisted on a node that is lost is made again, or is named if it cannot be."""
    with ln.init(engine):
        x = ln.random.default_rng(1).random((1500, 1800), chunks=300)
        expected = x.compute()
        kept = (x * 2).persist()
        given = (ln.asarray(expected, chunks=300) + 1).persist()
        lose()
        assert np.array_equal((kept + 1).compute(), expected * 2 + 1)
        assert np.array_equal(kept.compute(), expected * 2)
        try:  # perhaps none of its tiles lay on that node
            assert np.array_equal(given.compute(), expected + 1)
        except JobError as error:
            words = r"tiles of the array of shape \(1500, 1800\).*Persist it again"
            assert re.search(words, str(error))


def product(n=5, tile=400):
    a, b = numbers((n * tile, n * tile)), numbers((n * tile, n * tile), seed=1)
    inputs = {"A": TiledArray.from_numpy(a, tile), "B": TiledArray.from_numpy(b, tile)}
    return programs.affine.bind(N=n, K=n), inputs, "C"


def factor(n=6, tile=400):
    a = numbers((n * tile, n * tile))
    spd = a @ a.T + n * tile * np.eye(n * tile)
    return cholesky.bind(N=n), {"A": TiledArray.from_numpy(spd, tile)}, "O"


class DrivenCases:
    """Subclass this with fixtures `engine` and `unplanned`, which leaves placing to the engine below."""

    @pytest.mark.parametrize("case", [product, factor])
    def test_bytes_that_move_are_those_of_the_plan(self, engine, case):
        bound, inputs, name = case()
        plan = engine.plan(bound, inputs)
        engine.moved()
        found = engine.run(bound, inputs)
        moved = engine.moved()
        assert plan.bytes_moved > 20e6
        assert sum(moved) == pytest.approx(plan.bytes_moved, rel=0.05)
        assert np.allclose(moved, plan.bytes_in, rtol=0.05)
        expected = Threads(1, deterministic=True).run(bound, inputs)
        assert np.array_equal(found[name].to_numpy(), expected[name].to_numpy())

    def test_tasks_run_where_the_plan_wants_them(self, engine):
        bound = processes.bind(N=24)
        inputs = {"A": TiledArray.from_numpy(np.zeros(24 * 1000), 1000)}
        nodes = engine.plan(bound, inputs).placement.nodes.tolist()
        found = engine.run(bound, inputs)["B"].to_numpy().tolist()
        homes = {}
        for node, each in zip(nodes, found, strict=True):
            homes.setdefault(each, set()).add(node)
        assert all(len(at) == 1 for at in homes.values())
        assert len(set(nodes)) == 4
        assert os.getpid() not in homes

    def test_array_expressions(self, engine):
        a, b = numbers((300, 200)), numbers((200, 250), seed=1)
        with ln.init(engine=engine):
            x, y = ln.asarray(a, chunks=64), ln.asarray(b, chunks=64)
            found = (ln.sin(x @ y) + 1).sum(axis=0).compute()
            shown = float((x * 2).mean())
            mapped = ln.map_blocks(lambda tile: tile + 3, x).compute()
        assert np.allclose(found, (np.sin(a @ b) + 1).sum(0))
        assert shown == pytest.approx(2 * a.mean())
        assert np.array_equal(mapped, a + 3)

    def test_linear_algebra(self, engine):
        a = numbers((120, 120))
        with ln.init(engine=engine):
            q, r = ln.linalg.qr(ln.asarray(a, chunks=40))
            solved = ln.linalg.solve(ln.asarray(a, chunks=40), ln.asarray(a[:, :3], chunks=40))
            assert np.allclose(np.asarray(q @ r), a)
            assert np.allclose(np.asarray(solved), np.eye(120)[:, :3])

    def test_factors_stay_on_the_cluster(self, engine):
        a = numbers((400, 400))
        spd = a @ a.T + 400 * np.eye(400)
        with ln.init(engine=engine):
            factor = ln.linalg.cholesky(ln.asarray(spd, chunks=100) * 1.0, tile=100).persist()
            assert isinstance(factor.__node__.tiles.tiles, RemoteTiles)
            q, r = ln.persist(ln.linalg.qr(factor, tile=100))
            assert isinstance(q.__node__.tiles.tiles, RemoteTiles)
            x = ln.linalg.solve_triangular(factor, ln.asarray(a, chunks=150), lower=True, tile=100)
            x.persist()
            assert isinstance(x.__node__.tiles.tiles, RemoteTiles)
            assert np.allclose(np.asarray(factor), np.linalg.cholesky(spd))
            assert np.allclose(np.asarray(q @ r), np.asarray(factor))
            assert np.allclose(np.asarray(factor @ x), a)

    def test_systems_and_spectra_stay_on_the_cluster(self, engine):
        a, b = numbers((400, 400)), numbers((400, 30), seed=1)
        with ln.init(engine=engine):
            x = ln.asarray(a, chunks=100) * 1.0
            packed, piv = ln.persist(ln.linalg.lu_factor(x, tile=100))
            assert isinstance(packed.__node__.tiles.tiles, RemoteTiles)
            solved = ln.linalg.solve(x, b, tile=100)
            assert np.allclose(a @ np.asarray(solved), b)
            again = ln.linalg.lu_solve((packed, piv), b, tile=100)
            assert np.allclose(np.asarray(again), np.asarray(solved))
            assert np.allclose(np.asarray(ln.linalg.inv(x, tile=100) @ x), np.eye(400))
            w, z = ln.linalg.eigh(x + x.mT, tile=100)
            assert np.allclose(np.asarray((x + x.mT) @ z), np.asarray(z * w))
            u, s, vh = ln.linalg.svd(x[:, :250], full_matrices=False, tile=100)
            assert np.allclose(np.asarray((u * s) @ vh), a[:, :250])

    def test_what_is_persisted_stays_on_the_cluster(self, engine):
        a = numbers((1200, 900))
        with ln.init(engine=engine):
            x = (ln.asarray(a, chunks=300) * 2).persist()
            y = (x * 2).persist()
            engine.moved()
            assert float((y - x).sum()) == pytest.approx(2 * a.sum())
            assert sum(engine.moved()) < 1000  # sums of tiles, and none of the tiles
            assert np.array_equal(y.compute(), 4 * a)

    def test_what_was_persisted_is_gone_when_the_engine_is_closed(self, engine):
        a = numbers((120, 90))
        with ln.init(engine):
            kept = (ln.asarray(a, chunks=30) * 2).persist()
        assert np.array_equal(kept.compute(), a * 2)  # the engine was given: it is open
        engine.close()
        engine.close()
        name = type(engine).__name__
        with pytest.raises(
            EngineClosedError,
            match=rf"shape \(120, 90\) and dtype float64 was kept on {name}\(.*, which was closed",
        ):
            (kept + 1).compute()
        with pytest.raises(EngineClosedError, match=rf"{name}\(.*\) was closed and runs nothing any more"):
            engine.run(*product(n=2, tile=10)[:2])

    def test_a_task_that_computes_does_so_in_its_worker(self, engine):
        def nested(tile):
            found = ln.asarray(tile, chunks=3) + 1
            return found.compute() + (0 if "workers=1, determ" in repr(current_engine()) else 1)

        a = numbers((40, 30))
        with ln.init(engine):
            made = ln.map_blocks(nested, ln.asarray(a, chunks=8), dtype=float).compute()
        assert np.array_equal(made, a + 1)

    def test_placing_may_be_left_to_the_engine_below(self, unplanned):
        bound, inputs, name = product(n=3, tile=50)
        assert unplanned.plan(bound, inputs) is None
        expected = Threads(1, deterministic=True).run(bound, inputs)[name].to_numpy()
        assert np.array_equal(unplanned.run(bound, inputs)[name].to_numpy(), expected)

    def test_many_short_tasks_go_together(self, engine):
        a = np.arange(400.0)
        found = engine.run(programs.chain.bind(N=40, M=20), {"A": TiledArray.from_numpy(a, 10)})["B"]
        assert np.array_equal(found.to_numpy(), a + 20)


SCRIPT = """
import sys
import numpy as np
import linnet as ln
from linnet.tiles import TiledArray

@ln.kernel("script_add_five")
def add_five(x):
    return x + 5

@ln.tile_program
def fives(A: ln.In, B: ln.Out, N: int):
    for i in range(N):
        B[i] = script_add_five(A[i])

if __name__ == "__main__":
    with ln.init(sys.argv[1], workers=2, memory="200 MB") as session:
        print(session.engine.cluster.workers)
        given = {"A": TiledArray.from_numpy(np.arange(6.0), 2)}
        print(session.engine.run(fives.bind(N=3), given)["B"].to_numpy().sum())
        print(float((ln.asarray(np.arange(6.0), chunks=2) + 5).sum()))
    del session
"""
"""A cluster that the engine starts, and a kernel that only the script has."""


def said_by(script, name, folder):
    path = folder / "script.py"
    path.write_text(script)
    found = subprocess.run(
        [sys.executable, path, name], check=True, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in found.stderr
    return found.stdout


def check_script(name, folder):
    assert said_by(SCRIPT, name, folder).split() == ["2", "45.0", "45.0"]


CLOSING = """
import sys
import numpy as np
import linnet as ln
from linnet.session import current_engine

def running():
    if sys.argv[1] == "ray":
        import ray
        return ray.is_initialized()
    return engine.client.status == "running"

if __name__ == "__main__":
    with ln.init(sys.argv[1], workers=1) as session:
        engine = session.engine
        kept = (ln.asarray(np.arange(10.0), chunks=3) + 1).persist()
        print(float(kept.sum()), running())
    print(running(), type(current_engine()).__name__)
    try:
        kept.compute()
    except ln.EngineClosedError as error:
        print(error)
    del kept
    plain = ln.init(sys.argv[1], workers=1)
    engine = plain.engine
    kept = (ln.asarray(np.arange(10.0), chunks=3) + 1).persist()
    print(float(kept.sum()), running())
"""


def check_closing(name, folder):
    """A cluster that a session started ends with it, and the last one with the process."""
    first, second, third, fourth = said_by(CLOSING, name, folder).splitlines()
    assert first == fourth == "55.0 True"
    assert second == "False Threads"
    assert third.startswith("the array of shape (10,) and dtype float64 was kept on ")
    assert "which was closed: its tiles are gone; make it again" in third
