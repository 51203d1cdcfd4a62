"""Products and sums of products in tiles, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.elements.core import recut_as, wrap
from linnet.arrays.expression.nodes import Source
from linnet.arrays.lowering.kept_programs import lowered

DTYPES = ["f8", "f4", "c16", "i4", "u1", "?"]


def tiled(a: np.ndarray, chunks: object) -> ln.Array:
    return wrap(recut_as(Source(a), chunks))


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(0, 5, shape).astype(dtype)


@st.composite
def products(draw: st.DrawFn) -> tuple[str, list[np.ndarray], list[object]]:
    """A spec, arrays of small integers (so that sums are exact), and chunks for each."""
    lengths = {c: draw(st.integers(0, 5)) for c in "ijkl"}
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    operands = draw(st.lists(st.text("ijkl", max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(operands)))
    out = "".join(draw(st.permutations(draw(st.lists(st.sampled_from(used), unique=True)) if used else [])))
    kinds = [draw(st.sampled_from(DTYPES)) for _ in operands]
    arrays = [
        values(rng, tuple(lengths[c] for c in own), kind) for own, kind in zip(operands, kinds, strict=True)
    ]
    chunks = [draw(st.integers(1, 4)) for _ in operands]
    return ",".join(operands) + "->" + out, arrays, chunks


@given(products())
def test_einsum(case: tuple[str, list[np.ndarray], list[object]]) -> None:
    spec, arrays, chunks = case
    found = np.einsum(spec, *(tiled(a, c) for a, c in zip(arrays, chunks, strict=True)))
    expected = np.einsum(spec, *arrays)
    assert isinstance(found, ln.Array)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((7, 5), (5, 6)), ((5,), (5, 6)), ((7, 5), (5,)), ((5,), (5,)), ((3, 7, 5), (5, 6)),
        ((3, 7, 5), (3, 5, 6)), ((2, 1, 7, 5), (3, 5, 6)), ((7, 0), (0, 6)), ((0, 5), (5, 6)),
    ],
)  # fmt: skip
def test_matmul(dtype: str, one: tuple[int, ...], other: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = values(rng, one, dtype), values(rng, other, dtype)
    found = tiled(a, 2) @ tiled(b, 3)
    assert found.dtype == (a @ b).dtype
    np.testing.assert_array_equal(np.asarray(found), a @ b)


@pytest.mark.parametrize("axes", [0, 1, 2, ((1, 0), (0, 1)), ((2,), (1,)), (-1, 0)])
def test_tensordot(axes: object) -> None:
    rng = np.random.default_rng(1)
    a, b = values(rng, (4, 5, 5), "f8"), values(rng, (5, 5, 4), "f8")
    if axes == ((1, 0), (0, 1)):
        b = values(rng, (5, 4, 6), "f8")
    np.testing.assert_array_equal(
        np.asarray(np.tensordot(tiled(a, 2), tiled(b, 3), axes)), np.tensordot(a, b, axes)
    )


def test_vectors() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 5, 9) + 1j * rng.integers(0, 5, 9)
    b = rng.integers(0, 5, 9) + 1j * rng.integers(0, 5, 9)
    x, y = tiled(a, 4), tiled(b, 2)
    for name in ("vdot", "inner", "dot", "vecdot"):
        assert getattr(np, name)(x, y).compute() == getattr(np, name)(a, b), name
    m = rng.integers(0, 5, (6, 9)) + 0j
    np.testing.assert_array_equal(np.asarray(np.matvec(tiled(m, 4), x)), np.matvec(m, a))
    np.testing.assert_array_equal(np.asarray(np.vecmat(y, tiled(m.T.copy(), 4))), np.vecmat(b, m.T))


def test_shapes_that_do_not_fit_are_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="5 columns against 4 rows"):
        tiled(np.ones((3, 5)), 2) @ tiled(np.ones((4, 3)), 2)
    with pytest.raises(ValueError, match="do not fit along axes"):
        np.tensordot(tiled(np.ones((3, 5)), 2), tiled(np.ones((4, 3)), 2), 1)


def test_a_product_with_few_tiles_is_split_along_the_sum() -> None:
    x = tiled(np.ones((1000, 4)), (50, 4))
    counts = {s.kernel: 0 for s in lowered([(x.T @ x).__node__])[0].bound.program.statements}
    assert counts.keys() == {"contract", "fold_join"}
    np.testing.assert_array_equal(np.asarray(x.T @ x), np.full((4, 4), 1000.0))


def test_the_middle_of_mttkrp_is_never_stored() -> None:
    x, b, c = tiled(np.ones((8, 9, 7)), 4), tiled(np.ones((9, 3)), 4), tiled(np.ones((7, 3)), 4)
    made = np.einsum("ijk,jr,kr->ir", x, b, c, optimize=["einsum_path", (0, 2), (0, 1)])
    assert [s.kernel for s in lowered([made.__node__])[0].bound.program.statements].count("contract") == 1
    np.testing.assert_array_equal(np.asarray(made), np.full((8, 3), 63.0))
