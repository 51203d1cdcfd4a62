"""Folds, their joins, and the positions of extremes, against NumPy on the whole array."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linnet import kernels
from linnet.kernels.arrays.folds import FOLDS, Pairwise, fold

DTYPES = ("float64", "float32", "float16", "complex64", "complex128", "int32", "uint8", "bool")


@st.composite
def cut_arrays(draw, dtypes=DTYPES, extremes=False):
    """An array of up to three axes, and where it is cut along each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind in "mM":
        x = rng.integers(-5, 5, shape).astype(dtype)
        x[rng.random(shape) < (0.1 if extremes else 0)] = "NaT"
    else:
        x = rng.integers(0, 6, shape).astype(dtype)
        if dtype.kind == "c":
            x += np.asarray(1j * rng.integers(0, 6, shape), dtype)
        if extremes and dtype.kind in "fc":
            x[rng.random(shape) < 0.1] = draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.0]))
    cuts = [sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=3))}) for length in shape]
    return x, cuts


def nested(x, cuts, take):
    """`take(tile, starts)` of every tile, nested by axes."""

    def level(axis, index, starts):
        if axis == x.ndim:
            return take(x[index], starts)
        return [
            level(axis + 1, (*index, slice(low, high)), (*starts, low))
            for low, high in zip(cuts[axis], cuts[axis][1:], strict=False)
        ]

    return level(0, (), ())


def joined(x, cuts, kind, axes, **how):
    """Fold every tile, join along the folded axes, put the others side by side."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    final = how.get("final", False)
    out = None
    places = [list(zip(cuts[axis], cuts[axis][1:], strict=False)) for axis in kept]
    grid = np.ndindex(*[len(each) for each in places])
    for position in grid:
        where = {axis: places[k][position[k]] for k, axis in enumerate(kept)}

        def level(left, index):
            if not left:
                cut = tuple(slice(*index[axis]) for axis in range(x.ndim))
                return fold(kind).fold(x[cut], axes, None)
            return [
                level(left[1:], {**index, left[0]: bounds})
                for bounds in zip(cuts[left[0]], cuts[left[0]][1:], strict=False)
            ]

        state = kernels.fold_join(level(axes, where), kind=kind, axes=axes, **how)
        if out is None:
            front = () if final else fold(kind).leading
            whole = tuple(1 if axis in axes else length for axis, length in enumerate(x.shape))
            out = np.empty(front + whole, state.dtype)
        spot = tuple(slice(*where[axis]) if axis in where else slice(None) for axis in range(x.ndim))
        out[(..., *spot)] = state
    return out


def some_axes(data, x):
    return tuple(sorted(data.draw(st.lists(st.integers(0, x.ndim - 1), unique=True))))


PLAIN = {
    "sum": np.sum,
    "prod": np.prod,
    "any": np.any,
    "all": np.all,
    "count": lambda x, axis, keepdims: np.sum(x.astype(bool), axis=axis, keepdims=keepdims, dtype=np.intp),
}


@given(cut_arrays(), st.sampled_from(sorted(PLAIN)), st.data())
def test_tiles_joined_are_the_whole(cut, kind, data):
    x, cuts = cut
    axes = some_axes(data, x)
    with np.errstate(all="ignore"):
        expected = PLAIN[kind](x, axis=axes, keepdims=True)
    actual = joined(x, cuts, kind, axes)
    assert actual.dtype == expected.dtype
    tolerance = 0.02 if x.dtype == np.float16 else 1e-4 if x.dtype.char in "fF" else 1e-12
    assert_allclose(actual, expected, rtol=tolerance)


@given(
    cut_arrays(
        ("float64", "float16", "complex128", "int16", "datetime64[s]", "timedelta64[D]"), extremes=True
    ),
    st.sampled_from(["max", "min"]),
    st.data(),
)
def test_extremes_spread_nan(cut, kind, data):
    x, cuts = cut
    axes = some_axes(data, x)
    expected = getattr(np, kind)(x, axis=axes, keepdims=True)
    assert_array_equal(joined(x, cuts, kind, axes), expected)


@given(cut_arrays(), st.sampled_from([0.0, 1.0]), st.booleans(), st.data())
def test_mean_and_variance(cut, ddof, root, data):
    x, cuts = cut
    axes = some_axes(data, x)
    wide = x.astype(complex if x.dtype.kind == "c" else float)
    eps = 1e-2 if x.dtype == np.float16 else 1e-5 if x.dtype.char in "fF" else 1e-12
    assert_allclose(
        joined(x, cuts, "mean", axes, final=True), wide.mean(axes, keepdims=True), rtol=eps, atol=eps
    )
    actual = joined(x, cuts, "moments", axes, final=True, ddof=ddof, root=root)
    assert actual.dtype == np.float64
    if math.prod(x.shape[axis] for axis in axes) > ddof:
        expected = (np.std if root else np.var)(wide, axis=axes, ddof=ddof, keepdims=True)
        assert_allclose(actual, expected, rtol=eps, atol=10 * np.sqrt(eps) if root else 10 * eps)
    else:
        assert np.isnan(actual).all()


@pytest.mark.parametrize("kind", sorted(set(FOLDS) - {"mean", "moments"}))
def test_every_kind_joins_as_it_folds(kind):
    x = np.arange(1, 25).reshape(4, 6)
    if kind in ("logaddexp", "logaddexp2", "hypot"):
        x = x / 8
    made = fold(kind)
    whole = made.fold(x, (0, 1), None)
    parts = [[made.fold(x[i : i + 2, j : j + 3], (0, 1), None) for j in (0, 3)] for i in (0, 2)]
    assert_allclose(kernels.fold_join(parts, kind=kind, axes=(0, 1)), whole, rtol=1e-14)
    tree = Pairwise(made)
    for row in x:
        tree.push(made.fold(row[None], (0, 1), None))
    assert_allclose(tree.total(), whole, rtol=1e-14)


def test_the_mean_can_be_taken_of_moments():
    parts = [fold("moments").fold(np.arange(start, start + 5.0), (0,), None) for start in (0, 5)]
    assert kernels.fold_join(parts, kind="mean", axes=(0,), final=True, drop=(0,)) == 4.5


def test_means_of_infinities_are_numpys():
    with np.errstate(invalid="ignore"):
        parts = [fold("moments").fold(np.array(x), (0,), None) for x in ([1.0, np.inf], [2.0, 3.0])]
    assert kernels.fold_join(parts, kind="mean", axes=(0,), final=True, drop=(0,)) == np.inf
    assert np.isnan(kernels.fold_join(parts, kind="moments", axes=(0,), final=True, drop=(0,)))


def test_moments_far_from_zero_keep_their_digits():
    x = np.random.default_rng(0).standard_normal(10_000) + 1e9
    parts = [fold("moments").fold(each, (0,), None) for each in np.array_split(x, 37)]
    variance = kernels.fold_join(parts, kind="moments", axes=(0,), final=True, drop=(0,))
    assert_allclose(variance, x.var(), rtol=1e-9)


def test_empty_tiles_count_for_nothing():
    parts = [fold("moments").fold(np.array(x), (0,), None) for x in ([], [1.0, 3.0], [])]
    assert kernels.fold_join(parts, kind="moments", axes=(0,), final=True, drop=(0,)) == 1.0
    nothing = fold("mean").fold(np.ones((0, 2)), (0,), None)
    assert np.isnan(kernels.fold_join(nothing, kind="mean", final=True)).all()


@pytest.mark.slow
def test_sums_of_many_tiles_are_pairwise():
    states = [np.array([0.1], np.float32)] * 2**20
    assert_allclose(kernels.fold_join(states, kind="sum", axes=(0,)), 2**20 * 0.1, rtol=1e-6)


def test_joining_reads_its_operands_only():
    states = [np.ones(3) for _ in range(5)]
    for state in states:
        state.flags.writeable = False
    assert_array_equal(kernels.fold_join(states, kind="sum", axes=(0,)), np.full(3, 5.0))
    alone = kernels.fold_join(states[:1], kind="sum", axes=(0,), final=True)
    assert not np.may_share_memory(alone, states[0])


def test_the_end_of_a_join():
    states = [np.ones((1, 3, 1)), np.ones((1, 3, 1))]
    result = kernels.fold_join(states, kind="sum", axes=(0,), final=True, drop=(0, -1), dtype="int8")
    assert result.dtype == np.int8
    assert_array_equal(result, [2, 2, 2])
    declared = kernels.get("fold_join")
    how = {"kind": "sum", "axes": (0,), "final": True, "drop": (0, -1), "dtype": "int8"}
    assert declared.shape([(1, 3, 1)] * 2, **how) == (3,)
    assert declared.dtype([np.dtype(float)] * 2, **how) == np.int8
    assert declared.flops([(1, 3, 1)] * 2, **how) == 3


def test_what_cannot_be_joined_is_said():
    with pytest.raises(ValueError, match=r"axes \(1,\) of a state of shape \(1, 3\) cannot be dropped"):
        kernels.fold_join(np.ones((1, 3)), kind="sum", final=True, drop=(1,))
    with pytest.raises(ValueError, match="fold_join got tiles nested 1 deep for 2 axes"):
        kernels.fold_join([np.ones(1)], kind="sum", axes=(0, 1))
    with pytest.raises(ValueError, match="fold_join got an empty range of tiles"):
        kernels.fold_join([], kind="sum", axes=(0,))
    with pytest.raises(TypeError, match=r"a mean or variance of timedelta64\[s\] has no state; fold its sum"):
        fold("mean").fold(np.ones(2, "timedelta64[s]"), (0,), None)


# ---- positions

POSITIONS = (*DTYPES, "datetime64[s]", "timedelta64[D]")


@given(cut_arrays(POSITIONS, extremes=True), st.sampled_from(["max", "min"]), st.data())
def test_positions_along_an_axis(cut, kind, data):
    x, cuts = cut
    axis = data.draw(st.integers(0, x.ndim - 1))
    bounds = list(zip(cuts[axis], cuts[axis][1:], strict=False))
    tiles = [
        kernels.arg_tile(np.take(x, range(low, high), axis), low, x.shape[axis], kind=kind, axis=axis)
        for low, high in bounds
    ]
    order = data.draw(st.permutations(range(len(tiles))))
    values, indices = [tiles[k][0] for k in order], [tiles[k][1] for k in order]
    found = kernels.arg_join(values, indices, kind=kind, axis=axis, drop=(axis,))
    assert_array_equal(found, getattr(np, f"arg{kind}")(x, axis=axis))
    assert found.dtype == np.intp


@given(cut_arrays(POSITIONS, extremes=True), st.sampled_from(["max", "min"]))
def test_positions_in_the_whole_array(cut, kind):
    x, cuts = cut
    nest = nested(x, cuts, lambda tile, starts: kernels.arg_tile(tile, *starts, kind=kind, shape=x.shape))

    def pick(nest, which):
        return nest[which] if isinstance(nest[0], np.ndarray) else [pick(each, which) for each in nest]

    drop = tuple(range(x.ndim))
    found = kernels.arg_join(pick(nest, 0), pick(nest, 1), kind=kind, drop=drop)
    assert found.shape == ()
    assert found == getattr(np, f"arg{kind}")(x)


def test_not_a_number_twice_is_no_warning():
    x = np.array([np.nan + 0j, np.nan + 1j], np.complex64)
    tiles = [kernels.arg_tile(x[at : at + 1], at, kind="max", axis=0) for at in (0, 1)]
    values, indices = map(list, zip(*tiles, strict=True))
    assert kernels.arg_join(values, indices, kind="max", axis=0) == [0]


def test_what_positions_declare():
    tile, join = kernels.get("arg_tile"), kernels.get("arg_join")
    assert tile.shape((3, 4), 0, kind="max", axis=1) == [(3, 1), (3, 1)]
    assert tile.dtype(np.dtype("f4"), 0, kind="max", axis=1) == [np.float32, np.intp]
    assert join.shape([(3, 1)] * 2, [(3, 1)] * 2, kind="max", axis=1, drop=(1,)) == (3,)


def test_what_positions_cannot_do_is_said():
    with pytest.raises(ValueError, match="kind='median' is not known; expected 'max' or 'min'"):
        kernels.arg_tile(np.ones(2), 0, kind="median", axis=0)
    with pytest.raises(ValueError, match="expects a start for each of the 2 axes and the shape"):
        kernels.arg_tile(np.ones((2, 2)), 0, kind="max")
    with pytest.raises(ValueError, match=r"along axis 0 expects where the tile starts there, got \(\)"):
        kernels.arg_tile(np.ones(2), kind="max", axis=0)
    with pytest.raises(ValueError, match="arg_join got an empty range"):
        kernels.arg_join([], [], kind="max")
