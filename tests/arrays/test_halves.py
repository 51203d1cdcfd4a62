"""Where an algorithm reads one half of a matrix, the other half is not computed; corners of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet import linalg
from linnet.algorithms import cholesky, eigh, products, triangular
from linnet.arrays.expression.tile_sets import stairs_of, triangle
from linnet.arrays.lowering import on_caller_thread
from linnet.arrays.lowering.kept_programs import lowered
from linnet.programs.liveness import live
from linnet.programs.program import TileProgram
from linnet.session.work import Setting
from linnet.tiles import Layout, TileKey

FLOAT = np.dtype(float)
SQUARE, RIGHT = Layout.regular((22, 22), 4), Layout.regular((22, 9), 4)
RECIPES = {
    "cholesky": cholesky.recipe(SQUARE, FLOAT),
    "eigh": eigh.recipe(SQUARE, FLOAT),
    "eigenvalues": eigh.values_of(SQUARE, FLOAT),
    "forward": triangular.solution(SQUARE, RIGHT, FLOAT, lower=True, unit=False),
    "backward": triangular.solution(SQUARE, RIGHT, FLOAT, lower=False, unit=True),
    "symm": products.hermitian_product(SQUARE, RIGHT, FLOAT),
    "trmm, lower": products.triangular_product(SQUARE, RIGHT, FLOAT, lower=True, unit=False),
    "trmm, upper": products.triangular_product(SQUARE, RIGHT, FLOAT, lower=False, unit=True),
}
SETTINGS = [Setting(), Setting(nodes=4), Setting(at_hand=True, workers=2), Setting(trusting=False)]


def tiles(argument: Any) -> list[TileKey]:
    """The tiles among arguments."""
    if isinstance(argument, TileKey):
        return [argument]
    return [key for each in argument for key in tiles(each)] if isinstance(argument, tuple | list) else []


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_reads_the_half_that_it_says(name: str, setting: Setting):
    recipe = RECIPES[name]
    ((array, half),) = recipe.halves
    wanted = frozenset(each for each, _ in recipe.outputs)
    tree = recipe.choose(setting, wanted, dict(recipe.sizes)).tree
    program = TileProgram(live(tree, wanted | recipe.notes), verify=False)
    sizes = {each: value for each, value in recipe.sizes if each in program.sizes}
    bound = program.bind(**sizes)
    read = {key.index for task in bound.tasks() for key in tiles(bound.call(task).args) if key.array == array}
    expected = {
        index for box in triangle(SQUARE.grid[0], half == "lower") for index in np.ndindex(6, 6)
        if index[0] in box[0] and index[1] in box[1]
    }  # fmt: skip
    assert read == expected


def products_in(made: Any) -> set[tuple[int, ...]]:
    """The tiles of a product of matrices that an expression computes, perhaps in parts."""
    bound = lowered([made.__node__], Setting())[0].bound
    called = (bound.call(task) for task in bound.tasks())
    return {each.outputs[0].index[-2:] for each in called if each.kernel == "contract"}


def spd(a: Any, chunks: int = 4) -> Any:
    n = a.shape[0]
    return a @ a.T + n * (np.eye(n) if isinstance(a, np.ndarray) else ln.eye(n, chunks=chunks))


EXPRESSIONS = {
    "cholesky": (lambda a, b: linalg.cholesky(spd(a)), lambda a, b: np.linalg.cholesky(spd(a))),
    "cholesky of the upper half": (
        lambda a, b: linalg.cholesky(spd(a), lower=False),
        lambda a, b: np.linalg.cholesky(spd(a)).T,
    ),
    "eigenvalues": (lambda a, b: linalg.eigvalsh(spd(a), "U"), lambda a, b: np.linalg.eigvalsh(spd(a))),
    "triangle": (
        lambda a, b: linalg.solve_triangular(spd(a), b),
        lambda a, b: np.linalg.solve(np.triu(spd(a)), b),
    ),
    "transposed triangle": (
        lambda a, b: linalg.solve_triangular(spd(a), b, lower=True, trans="T"),
        lambda a, b: np.linalg.solve(np.tril(spd(a)).T, b),
    ),
    "symm": (lambda a, b: linalg.symm(spd(a), b, lower=False), lambda a, b: spd(a) @ b),
    "trmm": (lambda a, b: linalg.trmm(spd(a), b), lambda a, b: np.tril(spd(a)) @ b),
}


@pytest.mark.slow
@pytest.mark.parametrize("tiles", [3, 5, 18])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_other_half_is_not_computed(name: str, tiles: int):
    ours, numpys = EXPRESSIONS[name]
    rng = np.random.default_rng(tiles)
    n = 4 * tiles - 1
    a, b = rng.standard_normal((n, n)), rng.standard_normal((n, 3))
    made = ours(ln.asarray(a, chunks=4), b)
    assert len(products_in(made)) == tiles * (tiles + 1) // 2
    assert np.allclose(made.compute(), numpys(a, b))


@pytest.mark.slow
def test_what_another_reader_needs_is_computed():
    a = np.random.default_rng(1).standard_normal((30, 30))
    product = spd(ln.asarray(a, chunks=4))
    factor, whole = ln.compute(linalg.cholesky(product), product)
    assert np.allclose(factor @ factor.T, spd(a))
    assert np.allclose(whole, spd(a))
    first, column = ln.compute(linalg.cholesky(product), product[:5, 17])
    assert np.allclose(first, factor)
    assert np.allclose(column, spd(a)[:5, 17])


def test_a_program_with_a_half_is_as_long_for_any_number_of_tiles():
    def length(n: int) -> int:
        made = linalg.cholesky(spd(ln.random.default_rng(0).standard_normal((n, n), chunks=40), 40))
        return len(lowered([made.__node__], Setting())[0].bound.program.to_bytes())

    assert length(4000) <= length(400) + 16


def test_a_half_computed_at_once_has_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    """What is cheap runs without a program: loops are then over numbers."""
    a = ln.asarray(np.random.default_rng(2).standard_normal((23, 23)), chunks=4)
    made = linalg.trmm(spd(a) * 2, a)
    with ln.init("threads", 1, deterministic=True):
        at_once = made.compute()
        monkeypatch.setattr(on_caller_thread, "evaluated", lambda *_: None)
        assert made.compute().tobytes() == at_once.tobytes()


@given(
    st.integers(1, 9),
    st.integers(-2, 2),
    st.integers(-2, 2),
    st.integers(-9, 9),
    st.integers(1, 30),
    st.booleans(),
)
def test_stairs_are_the_boxes_they_were_found_in(count, by, further, start, length, turned):
    lines = [(k, range(start + by * k, start + length + further * k)) for k in range(3, 3 + count)]
    boxes = [(line, range(k, k + 1)) if turned else (range(k, k + 1), line) for k, line in lines if len(line)]
    found = stairs_of(boxes) if boxes else None
    if found is None:
        return
    tiles = {
        (place, step) if found.across else (step, place)
        for step in found.steps
        for place in range(found.start[0] + found.start[1] * step, found.stop[0] + found.stop[1] * step)
    }
    assert tiles == {(i, j) for box in boxes for i in box[0] for j in box[1]}


# ---- stacks without a matrix


@pytest.mark.parametrize("tile", [None, 2])
@pytest.mark.parametrize("batch", [(0,), (2, 0)])
def test_stacks_without_a_matrix(batch: tuple[int, ...], tile: int | None):
    a, b = ln.asarray(np.zeros((*batch, 5, 5))), np.zeros((*batch, 5, 3))
    factors = linalg.lu_factor(a, tile=tile)
    assert linalg.lu_solve(factors, b, tile=tile).compute().shape == b.shape
    assert linalg.lu_solve(factors, np.zeros(5), tile=tile).compute().shape == (*batch, 5)
    assert ln.compute(linalg.lu(a, permute_l=True, tile=tile)).l.shape == a.shape
    assert linalg.cond(a, 1, tile=tile).compute().shape == batch
