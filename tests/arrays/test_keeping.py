"""Programs that are kept: slices that grow or move are computed by the program of their kind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.lowering import kept_programs, on_caller_thread
from linnet.arrays.lowering.kept_programs import lowered
from linnet.planning.cluster import Cluster

SIDE, TILES = 40, 4
STEPS = range(2, SIDE - 9)

LOOPS: dict[str, Callable[[Any, int], Any]] = {
    "growing slices": lambda x, i: x[:i, :i] * 2 + 1,
    "sums of growing slices": lambda x, i: (x[:i] * 2).sum(),
    "moving windows": lambda x, i: x[i : i + 7, 3:30] * 2 - x[i + 1 : i + 8, 3:30],
    "growing slices turned around": lambda x, i: x[:i][::-1] + 1,
    "rows by their numbers": lambda x, i: x[[i, i - 1, 0]] + 1,
    "rows that shrink": lambda x, i: x[i:].mean(axis=0),
    "products": lambda x, i: x[i] @ x[:, :i],
    "triangles": lambda x, i: x[i + 1 :, i : i + 1] * x[i : i + 1, i + 1 :],
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every program that is made, as nothing is cheap."""
    found: list[bytes] = []
    program = kept_programs.TileProgram

    def counted(tree: Any, **options: Any) -> Any:
        found.append(kept_programs.to_bytes(tree))
        return program(tree, **options)

    monkeypatch.setattr(kept_programs, "TileProgram", counted)
    monkeypatch.setattr(on_caller_thread, "evaluated", lambda *_, **__: None)
    kept_programs._programs.clear()
    kept_programs._trees.clear()
    return found


SESSIONS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "a budget": lambda: ln.init("threads", workers=2, memory="50 MB"),
    "a cluster": lambda: ln.init("simulated", cluster=Cluster(nodes=3)),
}


@pytest.mark.slow
@pytest.mark.threads
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in tiles"])
@pytest.mark.parametrize("name", LOOPS)
def test_a_few_programs_for_each_tile_that_a_loop_crosses(name: str, stored: bool, made: list[bytes]) -> None:
    data = np.random.default_rng(0).random((SIDE, SIDE))
    with ln.init("threads", workers=2):
        x = ln.array(data, chunks=SIDE // TILES)
        x = (x + 0).persist() if stored else x
        made.clear()
        for i in STEPS[::5]:
            np.testing.assert_allclose(np.asarray(LOOPS[name](x, i)), LOOPS[name](data, i), rtol=1e-12)
    assert len(made) <= 3 * TILES


@pytest.mark.slow
@pytest.mark.parametrize("where", SESSIONS)
def test_so_it_is_under_a_budget_and_on_clusters(where: str, made: list[bytes]) -> None:
    """Lowered only: what is counted does not depend on running it."""
    data = np.random.default_rng(0).random((SIDE, SIDE))
    with SESSIONS[where]():
        engine = on_caller_thread.current_engine()
        x = (ln.array(data, chunks=SIDE // TILES) + 0).persist()
        for name, loop in LOOPS.items():
            made.clear()
            for i in STEPS[::4]:
                lowered([loop(x, i).__node__], on_caller_thread.Setting.of(engine))
            assert len(made) <= 3 * TILES, name
        i = STEPS[-1]
        np.testing.assert_allclose(
            np.asarray(LOOPS["products"](x, i)), LOOPS["products"](data, i), rtol=1e-12
        )


def test_numbers_are_given_when_the_program_is_bound() -> None:
    x = ln.asarray(np.zeros((40, 40)), chunks=10).persist()
    x = (x + 1).persist()
    one, other = (lowered([(x[i : i + 12, 4:33] * 2).__node__])[0].bound for i in (3, 4))
    assert one.program is other.program
    assert one.program.tables == ("numbers",)
    assert list(one.tables["numbers"].values()) != list(other.tables["numbers"].values())
    third = lowered([(x[3:15, 4:23] * 2).__node__])[0].bound  # fewer tiles
    assert third.program is not one.program


@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, True), (1, 1.0)])
def test_programs_are_the_same_to_the_last_digit(pair: tuple[Any, Any]) -> None:
    """Numbers that are equal, and not the same, must not give one another's program."""
    data = np.array([-1.0, 2.0, np.nan, 4.0])
    for each in pair:
        x = (ln.asarray(data, chunks=2) * 1).persist()
        made = ln.pad(x, 1, constant_values=each)
        assert str(np.asarray(made)) == str(np.pad(data, 1, constant_values=each))
