"""Kernels of LU and of triangles one by one: what moves where, and what is declared of it."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet import kernels
from linnet.kernels.linalg import lu, norms, triangular
from linnet.kernels.linalg.lu import (
    arrange,
    by_rows,
    corner,
    elect,
    nominate,
    panel,
    pick,
    ratio,
    top,
    update,
)

ALL = [
    name
    for name in kernels.names()
    if kernels.get(name).function.__module__ in {lu.__name__, norms.__name__, triangular.__name__}
]


@pytest.mark.parametrize("name", ALL)
def test_docstring_examples(name):
    function = kernels.get(name).function
    examples = doctest.DocTestFinder().find(function, name, globs=dict(function.__globals__))
    assert any(example.examples for example in examples)
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0


def cut(a, tile):
    return [a[i : i + tile] for i in range(0, len(a), tile)]


@settings(max_examples=40)
@given(st.integers(1, 20), st.integers(1, 5), st.integers(0, 99), st.booleans())
def test_one_step_brings_the_pivots_to_the_top(m, tile, seed, whole):
    """Every row is somewhere afterwards, once; tiles that are no part of the column move alike."""
    rng = np.random.default_rng(seed)
    tile = max(tile, 3) if m > 3 else m
    a, other = rng.standard_normal((m, min(3, m))), rng.standard_normal((m, 4))
    columns, others, rows = cut(a, tile), cut(other, tile), cut(np.arange(m), tile)
    if whole:
        _, below, first, rest, moves = panel(columns, rows)
        d = panel(columns, rows)[0][: a.shape[1]]
    else:
        nominated = [nominate(columns[i : i + 2], rows[i : i + 2]) for i in range(0, len(columns), 2)]
        d, first, rest, moves = elect([c for c, _ in nominated], [v for _, v in nominated], rows)
        below = [ratio(s, columns[0], w, d)[0] for s, w in zip(columns[1:], moves[1:], strict=True)]
    order = np.concatenate([first, *rest])
    assert sorted(order.tolist()) == list(range(m))
    k = len(d)
    lower, upper = np.tril(d, -1) + np.eye(k), np.triu(d)
    assert np.allclose(a[order[:k]], lower @ upper)
    diagonal, size = corner(columns[0], moves[0], d)
    assert size[0] >= 1.0
    assert np.allclose(diagonal[k:] @ upper, a[order[k : len(first)]])
    for numbers, each in zip(rest, below, strict=True):
        assert np.allclose(each @ upper, a[numbers])
    picked = [pick(s, w) for s, w in zip(others, moves, strict=True)]
    u = top(picked, moves, d)
    assert np.allclose(lower @ u, other[order[:k]])
    for numbers, s, w, l in zip(rest, others[1:], moves[1:], below, strict=True):
        assert np.allclose(update(s, others[0], w, l, u), other[numbers] - l @ u)


def test_arranged_rows_come_from_any_tile():
    a = np.arange(20.0).reshape(10, 2)
    numbers = np.random.default_rng(0).permutation(10) + 100
    wanted = numbers[[9, 0, 4]]
    assert np.array_equal(arrange(cut(a, 3), cut(numbers, 3), wanted), a[[9, 0, 4]])


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_operands_in_any_memory_order_are_left_alone(order, dtype):
    rng = np.random.default_rng(0)

    def tile(*shape):
        made = np.asarray(rng.standard_normal(shape).astype(dtype), order=order)
        made.flags.writeable = False
        return made

    s, l, u, t = tile(3, 4), tile(3, 2), tile(2, 4), tile(3, 3)
    near = {"rtol": 1e-4, "atol": 1e-4}
    assert np.allclose(update(s, s, np.zeros((0, 3), int), l, u), s - l @ u, **near)
    square = t + 4 * np.eye(3, dtype=dtype)
    for lower, half in ((True, np.tril(square)), (False, np.triu(square))):
        x = triangular.substitute(square, s, [l], [u], 0, lower=lower)
        assert np.allclose(half @ x, s - l @ u, **near)
        assert np.allclose(triangular.trmm(square, s, [l], [u], 0, lower=lower), half @ s + l @ u, **near)
    assert np.allclose(triangular.herk([l, t]), l @ l.conj().T + t @ t.conj().T, **near)
    hermitian = np.tril(t, -1) + np.tril(t, -1).conj().T + np.diag(t.diagonal().real)
    assert np.allclose(
        triangular.symm(t, s, [l], [u], [l.T], [u]), hermitian @ s + l @ u + l.conj() @ u, **near
    )


def test_declared_shapes_dtypes_and_work():
    a, b = np.ones((4, 3), "f4"), np.ones((4, 5))
    d, rows, move = np.eye(3), np.arange(4), np.array([[0, 0, -1], [1, 1, -1], [2, 2, -1]])
    calls = {
        "nominate": ([a, a], [rows, rows + 4]),
        "elect": ([a], [rows[:3]], [rows, rows + 4]),
        "panel": ([a, a], [rows, rows + 4]),
        "pick": (b, move),
        "top": ([b[:3]], [move], d),
        "update": (b, b, move, np.ones((4, 3)), np.ones((3, 5))),
        "ratio": (a, a, move, d),
        "corner": (a, move, d),
        "arrange": ([a, a], [rows, rows + 4], np.array([7, 1])),
        "substitute": (d, b[:3], [d], [b[:3]], 0),
        "trmm": (d, b[:3], [d], [b[:3]], 0),
        "symm": (d, b[:3], [d], [b[:3]], [d], [b[:3]]),
        "gram": ([a], [a]),
        "herk": ([a],),
    }
    for name, operands in calls.items():
        chosen = kernels.get(name)
        attributes = {"lower": True} if name in {"substitute", "trmm"} else {}
        result = chosen(*operands, **attributes)
        found = result if chosen.outputs > 1 else (result,)
        shapes = chosen.shape(*described(operands, "shape"), **attributes)
        dtypes = chosen.dtype(*described(operands, "dtype"))
        for each, shape, dtype in zip(
            found,
            shapes if chosen.outputs > 1 else (shapes,),
            dtypes if chosen.outputs > 1 else (dtypes,),
            strict=True,
        ):
            for tile, one in zip(each, shape, strict=True) if isinstance(each, list) else [(each, shape)]:
                assert tile.dtype == dtype, name
                # How many of a tile's rows are pivots depends on numbers: there it is a bound.
                assert all(x <= y for x, y in zip(tile.shape, one, strict=True)), name
                if tile.dtype != np.int64:
                    assert tile.shape == tuple(one), name
        assert chosen.flops(*described(operands, "shape"), **attributes) >= 0, name


def described(item, what):
    if isinstance(item, tuple | list):
        return [described(each, what) for each in item]
    return getattr(item, what) if isinstance(item, np.ndarray) else item


def test_tiles_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="update expects tiles for S - L·U, got 2×2, 2×3 and 2×2"):
        update(np.ones((2, 2)), np.ones((2, 2)), np.zeros((0, 3), int), np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(
        ValueError, match="ratio expects a square factor as wide as the tile, got 2×2 and 2×3"
    ):
        ratio(np.ones((2, 3)), np.ones((2, 3)), np.zeros((0, 3), int), np.eye(2))
    with pytest.raises(ValueError, match="corner expects a tile as wide as the factors and not lower"):
        corner(np.ones((1, 2)), np.zeros((0, 3), int), np.eye(2))
    with pytest.raises(ValueError, match="top expects 2 picked rows, as many as pivots; got 0"):
        top([np.ones((0, 2))], [np.zeros((0, 3), int)], np.eye(2))
    with pytest.raises(ValueError, match="substitute expects a square tile as high as the right side"):
        triangular.substitute(np.eye(2), np.ones((3, 1)), [], [], 0, lower=True)
    with pytest.raises(ValueError, match="trmm expects as many tiles left as right, got 1 and 0"):
        triangular.trmm(np.eye(2), np.ones((2, 1)), [np.eye(2)], [], 0, lower=True)
    with pytest.raises(ValueError, match="symm expects a square tile as high as the other"):
        triangular.symm(np.eye(2), np.ones((3, 1)), [], [], [], [])


@settings(max_examples=40)
@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 3), st.sampled_from("fdFD"), st.sampled_from("CF"),
    st.integers(0, 99),
)  # fmt: skip
def test_factors_are_used_as_they_lie(k, n, more, code, order, seed):
    """Rows by columns, or a factor with more rows than columns: the triangle that counts is the same."""
    rng = np.random.default_rng(seed)
    d = np.array(rng.standard_normal((k, k)) / 4 + np.eye(k), code, order=order)
    rows, places = rng.standard_normal((k, n)).astype(code), rng.permutation(k)
    moves = [np.column_stack([places, places, places])[i::2] for i in range(2)]
    solved = top([rows[0::2], rows[1::2]], moves, d)
    wanted = np.empty_like(rows)
    wanted[places] = rows
    near = 1e-4 if code in "fF" else 1e-10
    assert solved.dtype == code
    assert solved.flags.c_contiguous
    assert np.allclose((np.tril(d, -1) + np.eye(k)) @ solved, wanted, rtol=near, atol=near)
    s = rng.standard_normal((k + more, k)).astype(code)
    divided, _ = ratio(s, s, np.empty((0, 3), int), d)
    scale = np.abs(divided).max()
    assert np.allclose(divided @ np.triu(d), s, rtol=near, atol=near * max(1, scale))


def test_rows_are_copied_in_a_dtype_of_blas():
    tile = np.arange(6).reshape(2, 3).T
    found = by_rows(tile)
    assert found.flags.c_contiguous
    assert found.dtype == np.float64
    assert found.tolist() == tile.tolist()
    assert not np.shares_memory(found, tile)
