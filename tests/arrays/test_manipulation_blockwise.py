"""Functions of the user's on tiles."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrays.strategies import NUMBERS, pairs, tiled

from linnet.arrays.functions import gufuncs, map_blocks, map_overlap
from linnet.arrays.lowering import kept_programs
from linnet.errors import InputError
from linnet.kernels.arrays import user_functions

few = settings(max_examples=max(5, settings().max_examples // 4))


@few
@given(pairs(NUMBERS, special=False))
def test_map_blocks_of_an_elementwise_function(pair: Any) -> None:
    a, x = pair
    ours = map_blocks.map_blocks(lambda t, n, k=0: t * n + k, x, 2, k=1)
    assert ours.chunks == x.chunks
    np.testing.assert_array_equal(ours.compute(), a * 2 + 1)


def test_map_blocks_broadcasts_and_changes_shapes() -> None:
    a = np.arange(24.0).reshape(4, 6)
    x = tiled(a, (2, 3))
    row = tiled(np.arange(6.0), 2)
    np.testing.assert_array_equal(map_blocks.map_blocks(np.add, x, row).compute(), a + np.arange(6.0))
    sums = map_blocks.map_blocks(lambda t: t.sum(keepdims=True), x, chunks=(1, 1))
    np.testing.assert_array_equal(sums.compute(), a.reshape(2, 2, 2, 3).sum((1, 3)))
    whole = x.rechunk({1: -1, 0: 2})
    np.testing.assert_array_equal(whole.map_blocks(lambda t: t.sum(1), drop_axis=1).compute(), a.sum(1))
    deep = map_blocks.map_blocks(lambda t: np.stack([t, -t]), x, new_axis=0, chunks=(2, 2, 3))
    np.testing.assert_array_equal(deep.compute(), np.stack([a, -a]))
    ids = map_blocks.map_blocks(lambda t, block_id: t * 0 + block_id[0] * 10 + block_id[1], x)
    np.testing.assert_array_equal(ids.compute()[::2, ::3], [[0, 1], [10, 11]])


def test_map_blocks_errors() -> None:
    x = tiled(np.arange(6.0), 2)
    with pytest.raises(InputError, match="at least one array"):
        map_blocks.map_blocks(np.sin, 3)
    with pytest.raises(TypeError, match="give dtype= instead"):
        map_blocks.map_blocks(lambda t: t[5], x)
    with pytest.raises(InputError, match="rechunk"):
        map_blocks.map_blocks(np.sum, x, drop_axis=0)
    with pytest.raises(InputError, match="3 tiles"):
        map_blocks.map_blocks(np.sin, x, chunks=((1, 1),))
    with pytest.raises(Exception, match="returned shape"):
        map_blocks.map_blocks(lambda t: t[:1], x, dtype=float).compute()


@pytest.mark.slow
@pytest.mark.threads
def test_functions_are_let_go_of() -> None:
    def double(t: Any) -> Any:
        return 2 * t

    x = map_blocks.map_blocks(double, tiled(np.arange(4), 2))
    np.testing.assert_array_equal(x.compute(), [0, 2, 4, 6])
    name = str(user_functions.held(double))
    assert name in user_functions._names
    del x
    kept_programs._programs.clear()
    kept_programs._trees.clear()
    gc.collect()
    assert name not in user_functions._names


@few
@given(pairs(("i8", "f8"), min_dims=1, max_dims=2, min_side=1, special=False), st.data())
def test_map_overlap(pair: Any, data: Any) -> None:
    a, x = pair
    depth = data.draw(st.integers(0, 3))
    boundary = data.draw(st.sampled_from(["reflect", "periodic", "nearest", 7]))
    mode = {"reflect": "symmetric", "periodic": "wrap", "nearest": "edge"}.get(boundary, "constant")
    keywords = {"constant_values": 7} if mode == "constant" else {}
    wide = np.pad(a, depth, mode, **keywords)

    def smoothed(t: Any) -> Any:
        return sum(np.roll(t, k, 0) for k in range(-depth, depth + 1))

    inner = tuple(slice(depth, depth + n) for n in a.shape)
    ours = map_overlap.map_overlap(smoothed, x, depth, boundary)
    assert ours.chunks == x.chunks
    np.testing.assert_allclose(ours.compute(), smoothed(wide)[inner])


def test_map_overlap_without_neighbours_at_the_ends() -> None:
    x = tiled(np.arange(10), 4)
    sizes = x.map_overlap(lambda t: t * 0 + len(t), 2, "none", trim=False)
    assert sizes.chunks == ((6, 8, 4),)
    np.testing.assert_array_equal(sizes.compute(), [6] * 6 + [8] * 8 + [4] * 4)
    kept = x.map_overlap(lambda t: t * 0 + len(t), {0: 2}, {0: "none"})
    np.testing.assert_array_equal(kept.compute(), [6] * 4 + [8] * 4 + [4] * 2)
    with pytest.raises(InputError, match="boundary='mirror' is not known"):
        x.map_overlap(np.sin, 1, "mirror")


@pytest.mark.slow
@few
@given(pairs(("i8", "f8"), min_dims=1, min_side=1, special=False), st.data())
def test_apply_along_axis(pair: Any, data: Any) -> None:
    a, x = pair
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    for function in (np.sum, lambda v: v[::-1], lambda v: np.array([[v[0], v[-1]]]), lambda v, k: v[0] + k):
        extra = (3,) if getattr(function, "__code__", None) and function.__code__.co_argcount == 2 else ()
        expected = np.apply_along_axis(function, axis, a, *extra)
        ours = np.apply_along_axis(function, axis, x, *extra)
        assert ours.shape == expected.shape
        np.testing.assert_array_equal(ours.compute(), expected)


def test_apply_over_axes() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(
        np.apply_over_axes(np.sum, tiled(a, 2), [0, 2]).compute(), np.apply_over_axes(np.sum, a, [0, 2])
    )


def test_blocks() -> None:
    a = np.arange(30).reshape(5, 6)
    x = tiled(a, (2, 3))
    assert x.blocks.shape == (3, 2)
    assert x.blocks.size == 6
    np.testing.assert_array_equal(x.blocks[1, 0].compute(), a[2:4, :3])
    np.testing.assert_array_equal(x.blocks[-1].compute(), a[4:])
    np.testing.assert_array_equal(x.blocks[..., 1].compute(), a[:, 3:])
    np.testing.assert_array_equal(x.blocks[[2, 0]].compute(), a[[4, 0, 1]])
    assert len(x.blocks.ravel()) == 6
    with pytest.raises(IndexError):
        x.blocks[3]
    with pytest.raises(IndexError, match="3 indices"):
        x.blocks[0, 0, 0]


# ---- generalised functions


def test_apply_gufunc() -> None:
    a = np.arange(60.0).reshape(5, 3, 4)
    x = tiled(a, (2, 2, 3))
    means = blockwise_gufunc("(i)->()", lambda t: t.mean(-1), x)
    np.testing.assert_array_equal(means.compute(), a.mean(-1))
    vector = tiled(np.arange(4.0), 2)
    product = blockwise_gufunc("(i,j),(j)->(i)", np.matvec, x, vector)
    np.testing.assert_allclose(product.compute(), a @ np.arange(4.0))
    low, order = blockwise_gufunc("(i)->(),(i)", lambda t: (t.min(-1), np.argsort(-t, -1)), x)
    assert order.dtype == np.intp
    np.testing.assert_array_equal(low.compute(), a.min(-1))
    np.testing.assert_array_equal(order.compute(), np.argsort(-a, -1))
    pairs_of = gufuncs.apply_gufunc(
        lambda v: np.array([v.min(), v.max()]), "(i)->(k)", x, output_sizes={"k": 2}, vectorize=True
    )
    np.testing.assert_array_equal(pairs_of.compute(), np.stack([a.min(-1), a.max(-1)], -1))
    broadcast = blockwise_gufunc("(),()->()", np.add, x, vector)
    np.testing.assert_array_equal(broadcast.compute(), a + np.arange(4.0))


def blockwise_gufunc(signature: str, function: Any, *args: Any) -> Any:
    return gufuncs.apply_gufunc(function, signature, *args)


def test_apply_gufunc_errors() -> None:
    x = tiled(np.arange(6.0), 2)
    with pytest.raises(ValueError, match="not of the form"):
        gufuncs.apply_gufunc(np.sum, "i->j", x)
    with pytest.raises(ValueError, match="takes 1 arrays, got 2"):
        gufuncs.apply_gufunc(np.sum, "(i)->()", x, x)
    with pytest.raises(ValueError, match="has lengths 6 and 3"):
        gufuncs.apply_gufunc(np.add, "(i),(i)->(i)", x, np.arange(3))
    with pytest.raises(ValueError, match="give output_sizes="):
        gufuncs.apply_gufunc(lambda t: t[..., :2], "(i)->(k)", x)


def test_vectorize() -> None:
    a = np.arange(6).reshape(2, 3)
    function = gufuncs.vectorize(lambda v, w: v if v > w else w, otypes=[float])
    same = function(tiled(a, 2), 3)
    assert same.dtype == float
    np.testing.assert_array_equal(same.compute(), np.maximum(a, 3))
    for other in (a[::-1], a[0].tolist()):
        np.testing.assert_array_equal(function(tiled(a, 2), other).compute(), np.maximum(a, other))
    sums = gufuncs.vectorize(np.sum, signature="(i)->()")(tiled(a, 2))
    np.testing.assert_array_equal(sums.compute(), a.sum(-1))
