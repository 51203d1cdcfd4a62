"""Contractions of tiles against `np.einsum`: every dtype, every memory order, ranges, empty axes."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet import kernels
from linnet.kernels.arrays import contraction_tree, pair_products

BLAS = ["f4", "f8", "c8", "c16"]
DTYPES = [*BLAS, "f2", "g", "G", "?", "i1", "u1", "i2", "i4", "u4", "i8", "u8"]


def values(rng, shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.4
    if kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    found = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape) if kind == "c" else found).astype(dtype)


def lying(rng, array, how):
    """The same values in other memory: order of axes, gaps, negative steps, broken alignment, byte order."""
    order = list(rng.permutation(array.ndim))
    back = np.argsort(order)
    turned = np.array(array.transpose(order), order="C")
    if how == "gaps" and array.ndim:
        wide = np.zeros([2 * n for n in turned.shape], array.dtype)
        window = tuple(slice(0, 2 * n, 2) for n in turned.shape)
        wide[window] = turned
        turned = wide[window]
    elif how == "part" and array.ndim:
        wide = np.zeros([n + 2 for n in turned.shape], array.dtype)
        window = tuple(slice(1, n + 1) for n in turned.shape)
        wide[window] = turned
        turned = wide[window]
    elif how == "reversed" and array.ndim:
        turned = np.array(turned[::-1], order="C")[::-1]
    elif how == "unaligned":
        raw = np.zeros(turned.nbytes + 1, "u1")[1:].view(turned.dtype).reshape(turned.shape)
        raw[...] = turned
        turned = raw
    elif how == "swapped":
        turned = turned.astype(turned.dtype.newbyteorder("S"))
    return turned.transpose(back)


HOW = st.sampled_from(["dense", "dense", "gaps", "part", "reversed", "unaligned", "swapped"])


@st.composite
def specs(draw, operands=2, letters="abcdef", diagonals=True):
    inputs = []
    for _ in range(operands):
        axes = draw(st.lists(st.sampled_from(letters), max_size=4, unique=not diagonals))
        inputs.append("".join(axes))
    present = sorted(set("".join(inputs)))
    out = draw(st.permutations(present))[: draw(st.integers(0, len(present)))]
    lengths = {c: draw(st.sampled_from([1, 2, 3, 5, 0])) for c in letters}
    return f"{','.join(inputs)}->{''.join(out)}", lengths


def close(found, expected, dtype, depth=30):
    assert found.shape == expected.shape
    assert found.dtype == dtype
    if np.dtype(dtype).kind in "biu":
        np.testing.assert_array_equal(found, expected)
    else:
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found, expected, rtol=40 * depth * eps, atol=40 * depth * eps)


def expected_of(spec, tiles):
    dtype = np.result_type(*tiles).newbyteorder("=")
    exact = [tile.astype(np.result_type(tile, "f4")) if dtype.char == "e" else tile for tile in tiles]
    return np.einsum(spec, *exact).astype(dtype), dtype


@settings(max_examples=300)
@given(specs(), st.sampled_from(DTYPES), st.sampled_from(DTYPES), HOW, HOW, st.integers(0, 99))
def test_two_tiles(case, first, second, how_a, how_b, seed):
    spec, lengths = case
    rng = np.random.default_rng(seed)
    inputs = spec.split("->")[0].split(",")
    tiles = [
        lying(rng, values(rng, [lengths[c] for c in part], dtype), how)
        for part, dtype, how in zip(inputs, (first, second), (how_a, how_b), strict=True)
    ]
    before = [tile.copy() for tile in tiles]
    expected, dtype = expected_of(spec, tiles)
    found = kernels.contract(*tiles, spec=spec)
    close(found, expected, dtype)
    assert all(np.array_equal(x, y) for x, y in zip(tiles, before, strict=True))
    assert not any(np.may_share_memory(found, tile) for tile in tiles)
    assert kernels.contract.shape(*(tile.shape for tile in tiles), spec=spec) == expected.shape
    assert kernels.contract.dtype(*(tile.dtype for tile in tiles)) == dtype


@settings(max_examples=150)
@given(
    st.integers(1, 5).flatmap(lambda n: specs(n, "abcde")),
    st.sampled_from(["f8", "c8", "i8", "?", "f2"]),
    HOW,
    st.integers(0, 99),
    st.sampled_from([1, 200, 1 << 20]),
)
def test_any_number_of_tiles_in_pieces_of_any_size(case, dtype, how, seed, piece):
    spec, lengths = case
    rng = np.random.default_rng(seed)
    inputs = spec.split("->")[0].split(",")
    tiles = [lying(rng, values(rng, [lengths[c] for c in part], dtype), how) for part in inputs]
    expected, dtype = expected_of(spec, tiles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(kernels.contract.function.__globals__, "_PIECE", piece)
        found = kernels.contract(*tiles, spec=spec)
    close(found, expected, dtype, 3000)
    assert not any(np.may_share_memory(found, tile) for tile in tiles)


def cut_up(array, letters, cuts):
    """A nested list of the array's tiles along the letters in `cuts`, in the order of the axes."""

    def nested(part, axis):
        if axis == len(letters):
            return part
        if letters[axis] not in cuts:
            return nested(part, axis + 1)
        return [nested(piece, axis + 1) for piece in np.split(part, cuts[letters[axis]], axis)]

    return nested(array, 0)


@settings(max_examples=150)
@given(
    st.integers(1, 4).flatmap(lambda n: specs(n, "abcde", diagonals=False)),
    st.sampled_from(["f8", "c16", "i4", "?"]),
    st.data(),
)
def test_ranges_of_tiles(case, dtype, data):
    spec, lengths = case
    rng = np.random.default_rng(0)
    inputs, out = contraction_tree.split(spec)
    summed = sorted({c for part in inputs for c in part} - set(out))
    chosen = {
        c: sorted(data.draw(st.lists(st.integers(0, lengths[c]), max_size=3)))
        for c in summed
        if data.draw(st.booleans())
    }
    arrays = [values(rng, [lengths[c] for c in part], dtype) for part in inputs]
    over = tuple("".join(c for c in part if c in chosen) for part in inputs)
    ranges = [cut_up(array, part, chosen) for array, part in zip(arrays, inputs, strict=True)]
    expected, result = expected_of(spec, arrays)
    close(kernels.contract(*ranges, spec=spec, over=over), expected, result, 3000)
    if set(chosen) == set(summed):  # nothing needs to be named
        close(kernels.contract(*ranges, spec=spec), expected, result, 3000)


@given(
    st.sampled_from(["ki,kj->ij", "ik,jk->ij", "ik,kj->ij", "kab,kcd->abcd", "kli,klj->ji", "ik,il->kl"]),
    st.sampled_from([*BLAS, "i8", "f2"]),
    HOW,
    st.integers(0, 5),
    st.sampled_from([0, 1, 3, 70]),
    st.integers(1, 3),
)
def test_gram_products(spec, dtype, how, k, n, tiles):
    rng = np.random.default_rng(k)
    (first, second), out = contraction_tree.split(spec)
    lengths = {c: 2 if c in "abcd" else n if c in out else k for c in first + second}
    xs = [lying(rng, values(rng, [lengths[c] for c in first], dtype), how) for _ in range(tiles)]
    ys = [x.T if spec == "ik,kj->ij" else x for x in xs]
    expected = sum(expected_of(spec, [x, y])[0] for x, y in zip(xs, ys, strict=True))
    over = None if tiles == 1 else tuple(next(c for c in part if c not in out) for part in (first, second))
    found = kernels.contract(*((xs[0], ys[0]) if tiles == 1 else (xs, ys)), spec=spec, over=over)
    close(found, expected, np.dtype(dtype), 3000 if dtype == "f2" else 300)
    if dtype in BLAS and found.ndim == 2 and how not in ("unaligned", "swapped"):
        np.testing.assert_array_equal(found, found.T)


def test_pairs_that_are_gram_and_pairs_that_are_not_may_be_mixed():
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal((6, 5)) for _ in range(3))
    for pairs in itertools.permutations([(x, x), (y, z), (z, z)]):
        a, b = map(list, zip(*pairs, strict=True))
        found = kernels.contract(a, b, spec="ki,kj->ij")
        np.testing.assert_allclose(found, x.T @ x + y.T @ z + z.T @ z, atol=1e-12)


@pytest.mark.parametrize("spec", ["bik,bkj->bij", "bki,bjk->jbi", "ikb,kjb->ijb"])
def test_stacks_of_large_and_of_small_products(spec):
    rng = np.random.default_rng(0)
    for size in (3, 100):
        tiles = [
            rng.standard_normal([4 if c == "b" else size for c in part])
            for part in spec.split("->")[0].split(",")
        ]
        found = kernels.contract([tiles[0]] * 2, [tiles[1]] * 2, spec=spec)
        np.testing.assert_allclose(found, 2 * np.einsum(spec, *tiles), atol=1e-11)


def test_levels_run_in_step_where_letters_do_not_tell():
    a, b = np.arange(12.0).reshape(2, 2, 3), np.arange(18.0).reshape(2, 3, 3)
    found = kernels.contract([a, 2 * a], [b, b], spec="ikl,klj->ij")
    np.testing.assert_allclose(found, 3 * np.einsum("ikl,klj->ij", a, b))


def test_ranges_along_crossed_axes():
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0).reshape(4, 3, 2)
    cuts = {"k": [1], "l": [1, 3]}
    found = kernels.contract(cut_up(a, "ikl", cuts), cut_up(b, "lkj", cuts), spec="ikl,lkj->ij")
    np.testing.assert_allclose(found, np.einsum("ikl,lkj->ij", a, b))


def test_nothing_is_copied_that_blas_can_take(monkeypatch):
    """Transposes and merged axes, in whichever order they are named, reach BLAS as they lie."""
    seen = []
    original = pair_products._matrix
    monkeypatch.setattr(
        pair_products,
        "_matrix",
        lambda tile, *rest: seen.append((tile, original(tile, *rest))) or seen[-1][1],
    )
    x, y, z = np.ones((4, 5, 6)), np.ones((5, 6, 7)), np.ones((6, 5, 7))
    kernels.contract(x, y, spec="ikl,klj->ij")
    kernels.contract(x, y, spec="ikl,klj->ji")
    kernels.contract(x.transpose(2, 0, 1), y.transpose(2, 1, 0), spec="lik,jlk->ij")
    kernels.contract(x.transpose(1, 0, 2), y[0], spec="kil,lj->ikj")
    kernels.contract(x[1:3], y[:, :, 2:5], spec="ikl,klj->ij")
    assert all(np.shares_memory(tile, matrix) for tile, matrix in seen)
    seen.clear()
    kernels.contract(x, z, spec="ikl,lkj->ij")  # no order of k and l suits both: one is copied
    assert [np.shares_memory(tile, matrix) for tile, matrix in seen].count(False) == 1


def test_work_is_counted():
    flops = kernels.contract.flops
    assert flops((2, 3), (3, 4), spec="ik,kj->ij") == 2 * 2 * 3 * 4
    assert flops([(2, 3), (2, 5)], [(3, 4), (5, 4)], spec="ik,kj->ij") == 2 * 2 * 8 * 4
    # ijk,kr->ijr, then ijr,jr->ir
    assert flops((4, 6, 7), (6, 3), (7, 3), spec="ijk,jr,kr->ir") == 2 * 4 * 6 * 7 * 3 + 2 * 4 * 6 * 3
    ranges = [[(4, 6, 7)] * 2] * 5, [(6, 3)] * 5, [(7, 3)] * 2
    whole = 10 * 2 * 4 * 6 * 7 * 3 + 5 * 2 * 4 * 6 * 3
    assert flops(*ranges, spec="ijk,jr,kr->ir", over=("jk", "j", "k")) == whole
    # ij,jk->ik is complete before it is multiplied by kl
    chain = [[(2, 3)] * 5, [[(3, 2)]] * 5, [(2, 9)]]
    assert flops(*chain, spec="ij,jk,kl->il", over=("j", "jk", "k")) == 5 * 2 * 2 * 3 * 2 + 2 * 2 * 2 * 9


@pytest.mark.parametrize(
    ("tiles", "options", "words"),
    [
        ([np.ones((2, 3)), np.ones((4, 2))], {"spec": "ik,kj->ij"}, "the axis 'k' has length 3 in one tile and 4"),
        ([np.ones((2, 3))], {"spec": "ik,kj->ij"}, "expects 2 operands for 'ik,kj->ij', got 1"),
        ([np.ones((2, 3)), np.ones(3)], {"spec": "ik,kj->ij"}, "tiles of 2 axes for 'kj', got (3,)"),
        ([np.ones(2), np.ones(2)], {"spec": "i...,i->i"}, "of letters only; got 'i...,i->i'"),
        ([np.ones(2), np.ones(2)], {"spec": "i,i"}, 'a spec like "ik,kj->ij"'),
        ([np.ones(2), np.ones(2)], {"spec": "i,i->ii"}, "each letter of the result once"),
        ([np.ones(2), np.ones(2)], {"spec": "i,i->j"}, "and in an operand"),
        ([[], []], {"spec": "i,i->"}, "at least one tile in a range"),
        ([[np.ones(2)], [np.ones(2)] * 2], {"spec": "i,i->"}, "ranges of as many tiles over 'i' in every operand, got 1 and 2"),
        ([[np.ones((2, 2))], np.ones((2, 2))], {"spec": "ij,ij->"}, 'over=("jk", "j", "k")'),
        ([[np.ones((2, 2))], np.ones((2, 2))], {"spec": "ij,ij->i", "over": ("i", "")}, "over is ('i', '')"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(tiles, options, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        kernels.contract(*tiles, **options)


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="got tiles of object"):
        kernels.contract(np.array([1], object), np.array([1], object), spec="i,i->")
