"""Values where dtypes are narrow, masks and starts meet, axes are empty, and NaN lies in several tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same, tiles_only
from strategies import tiled

import linnet as ln
from linnet.arrays.functions import quantiles
from linnet.errors import KernelError

nan, inf = np.nan, np.inf
MASK = np.array([True, False, True, False, False])


@pytest.fixture(autouse=True, scope="module")
def _tiles_only() -> Iterator[None]:
    with tiles_only():
        yield


def numbers(values: Any, dtype: Any = None, chunks: Any = 2) -> Pair:
    return Pair(np.asarray(values, dtype), chunks)


# ---- reductions


@pytest.mark.parametrize("function", [np.sum, np.prod, np.nansum, np.nanprod, np.max, np.min, np.nanmax])
@pytest.mark.parametrize("axis", [None, 0, ()])
def test_a_start_counts_once_however_much_is_masked(function, axis):
    for dtype in ("f8", "i4", "u1"):
        same(function, numbers([1, 2, 3, 4, 5], dtype), axis=axis, initial=7, where=MASK)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.maximum, np.logical_or, np.bitwise_and, np.bitwise_xor, np.gcd]
)
def test_reduce_with_a_start_and_a_mask(ufunc):
    for dtype in ("i8", "u1", "?"):
        x = numbers([1, 2, 3, 4, 5], dtype)
        same(ufunc.reduce, x, initial=1, where=MASK)
        if ufunc.identity is not None:
            same(ufunc.reduce, x, where=MASK)


def test_a_mask_of_nothing():
    same(np.multiply.reduce, numbers([], "c8"), where=numbers([], "?"))


FAR = [
    [0, 1e200, 1e200],
    [1, 0, 1e200, 1e200, 5],
    [1e-300, 1e300, 1e300],
    [1e300, 1e-300, 1e-300, 5],
    [0, inf, 1],
    [1e200, nan, 0],
    [-2, 0.0, 3],
]


@pytest.mark.parametrize("function", [np.prod, np.cumprod, np.nanprod, np.nancumprod, np.multiply.reduce])
@pytest.mark.parametrize("values", FAR)
def test_products_stay_in_range_on_the_way(function, values):
    for chunks in (1, 2):
        for dtype in ("f8", "c16"):
            same(function, numbers(values, dtype, chunks), rtol=1e-14)
        columns = numbers(np.array([values, values[::-1]]).T[: len(values) // 2], None, (1, 1))
        same(function, columns, axis=0)


def test_products_of_one_number():
    for value in (0.0, inf, 1e-310, 2.5):
        for axis in (None, ()):
            same(np.prod, numbers(value, "f8", ()), axis=axis)


def test_what_a_running_product_has_lost_stays_lost():
    for values in ([1e-200, 1e-200, 1e200, 1e200, 3], [1e200, -1e200, 1e-200, 1e-200, 3]):
        same(np.cumprod, numbers(values, None, 1))


def test_products_of_long_lines():
    x = np.random.default_rng(0).normal(size=(3, 5000)) * 1.5
    for dtype in ("f4", "f8", "c8"):
        same(np.prod, Pair((x * 1.07).astype(dtype), (2, 700)), axis=1, rtol=1e-3)


def test_running_sums_go_on_from_those_before():
    same(np.cumsum, numbers([-1.5e308, 1.5e308, 1.5e308], None, (1,)))
    same(np.cumsum, tiles := numbers([-1.5e308, 1.5e308, 1.5e308], None, ((1, 2),)))
    assert tiles.ours.grid == (2,)


def test_sums_of_float16_are_kept_wider():
    x = np.full(64, 60000.0, "f2") * np.tile([1, -1], 32).astype("f2")
    assert np.isfinite(np.sum(tiled(np.sort(x), 16)).compute())
    same(np.sum, numbers(np.full(3000, 1.0), "f2", 7))


@pytest.mark.parametrize("function", [np.std, np.var, np.nanstd])
def test_a_real_dtype_for_complex_numbers(function):
    x = np.arange(7) + 1j * np.arange(7)[::-1]
    same(function, Pair(x, 3), dtype="f4", rtol=1e-5)
    same(function, Pair(x.reshape(1, 7), 3), dtype="f8", axis=1)


@pytest.mark.parametrize("function", [np.median, np.nanmedian])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_medians_of_complex_numbers(function, dtype, monkeypatch):
    many = np.array([1 + 2j, nan, 3, complex(2, nan), 0, 5j], dtype)
    none = np.array([3, 1j, 1, 2], dtype)
    for longest in (quantiles.LONGEST, 0.0):
        monkeypatch.setattr(quantiles, "LONGEST", longest)
        for x in (many, none):
            same(function, Pair(x, 2))
            same(function, Pair(np.stack([x, x[::-1]]), (1, 2)), axis=1)


def test_percentiles_of_integers_are_no_integers():
    x = numbers([1, 2, 4, 8], "i4", 3)
    for q in ([10, 90], np.array(50), 25, 0, [0, 100]):
        same(np.percentile, x, q)
        same(np.nanpercentile, x, q)


def test_quantiles_at_the_ends_of_integers():
    for q in (0, 1, [0, 1], 0.0):
        same(np.quantile, numbers([3, 1, 2], "i1"), q)
        same(np.quantile, numbers([2**62 + 1, 1], "i8", 1), q, method="averaged_inverted_cdf")


# ---- products


@pytest.mark.parametrize("spec", ["j,j,i->i", "i,i,i->i", "i,i,j->ij"])
@pytest.mark.parametrize("dtypes", [("i1", "i1", "i8"), ("f2", "f2", "f8"), ("u1", "u1", "f4"), ("f2",) * 3])
def test_products_of_mixed_dtypes(spec, dtypes):
    same(np.einsum, spec, *(numbers([100, 100], dtype, 1) for dtype in dtypes), rtol=1e-3)


def test_chains_of_mixed_dtypes():
    x = np.full((2, 2), 100)
    for dtypes in (("i1", "i1", "i8"), ("f2", "f2", "f4"), ("?", "i1", "i8")):
        same(np.einsum, "ij,jk,kl->il", *(Pair(x.astype(d), 1) for d in dtypes), rtol=1e-3)


def test_parts_of_a_sum_of_float16():
    signs = np.tile([1, -1], 40).astype("f2")
    x, y = np.sort(signs) * 200, np.full(80, 200, "f2")
    same(np.dot, Pair(x.astype("f2"), 5), Pair(y, 5))


def test_the_dtype_of_a_product_is_that_of_its_terms():
    x = numbers([[100, 100]], "i1", 1)
    same(np.matmul, x, numbers([[100], [100]], "i1", 1), dtype="i8")


def test_a_sum_of_nothing_is_zero():
    spec = "ab,bc,cd->ad"
    same(np.einsum, spec, numbers([[nan]], None, 1), numbers(np.ones((1, 0))), numbers(np.ones((0, 2))))


def test_einsum_converts_as_numpy_allows():
    same(np.einsum, "i,i->i", numbers([1j, 2]), numbers([1, 2]), dtype="f8")
    same(np.einsum, "i,i->i", numbers([100, 2], "i1"), numbers([100, 2], "i1"), dtype="f8")


# ---- sets


SETS = [np.intersect1d, np.setdiff1d, np.setxor1d, np.union1d]


@pytest.mark.slow
@pytest.mark.parametrize("function", SETS)
@pytest.mark.parametrize("chunks", [1, 2])
def test_sets_with_nan(function, chunks):
    one, other = [nan, 1, 2, nan, 3], [nan, 2, 5, nan]
    for dtype in ("f8", "c16"):
        for a, b in ((one, other), (one, [2.0, 5]), ([1.0], other), ([nan], [nan])):
            same(function, numbers(a, dtype, chunks), numbers(b, dtype, chunks))
    dates = [np.array(each, "M8[D]") for each in (["NaT", "2020-01-01", "NaT"], ["2020-01-01", "NaT"])]
    same(function, *(Pair(each, chunks) for each in dates))


@pytest.mark.parametrize("chunks", [1, 2])
def test_integers_are_compared_as_such(chunks):
    signed = np.array([-1, 2**62, 2**62 + 1, 7], "i8")
    unsigned = np.array([2**62, 2**63 + 1, 2**64 - 1, 7], "u8")
    found = np.setdiff1d(tiled(signed, chunks), tiled(unsigned, chunks)).compute()
    assert found.dtype == signed.dtype
    assert found.tolist() == [-1, 2**62 + 1]
    found = np.setdiff1d(tiled(unsigned, chunks), tiled(signed, chunks)).compute()
    assert found.dtype == unsigned.dtype
    assert found.tolist() == [2**63 + 1, 2**64 - 1]
    assert np.isin(tiled(signed, chunks), tiled(unsigned, chunks)).compute().tolist() == [0, 1, 0, 1]


# ---- histograms, clipping, lines


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sturges", "auto", "sqrt", "rice", "scott", "fd", "doane", "stone"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2"])
def test_bins_of_small_integers(rule, dtype):
    limits = np.iinfo(dtype)
    x = np.linspace(limits.min, limits.max, 40).astype(dtype)
    same(np.histogram, Pair(x, 7), bins=rule)
    same(np.histogram_bin_edges, Pair(x, 7), bins=rule)


def test_bins_of_booleans():
    x = numbers([True, False, True], None, 2)
    for bins in (4, "auto", [0, 0.5, 1]):
        same(np.histogram_bin_edges, x, bins=bins)
        same(np.histogram, x, bins=bins)


def test_edges_have_the_dtype_of_the_elements():
    for dtype in ("f2", "f4", "u1"):
        x, y = numbers([0, 1, 2, 1], dtype, 3), numbers([1, 0, 2, 1], "i2", 3)
        for bins in (3, [2, 3], [[0, 1, 2], [0, 1]], [0, 1, 3]):
            same(np.histogram2d, x, y, bins=bins)


def test_differences_of_booleans_are_refused():
    for function in (np.ediff1d, np.gradient):
        same(function, numbers([True, False, True]))


def test_bounds_of_another_kind_are_kept():
    x = np.array([0, 1, 2, 3, 4])
    for chunks in (2, -1):
        found = ln.clip(tiled(x, chunks), 1.5, 2.5).compute()
        assert found.dtype == np.float64
        assert found.tolist() == [1.5, 1.5, 2, 2.5, 2.5]
        same(np.clip, Pair(x, chunks), 1.5, 2.5)
    narrow = tiled(x.astype("i1"), 2)
    found = ln.clip(narrow, np.array(300), None)
    assert found.dtype == np.int8
    assert found.compute().tolist() == [127] * 5


@pytest.mark.parametrize("function", [np.sum, np.mean, lambda line: np.append(line, [1.0, 2.0])])
def test_lines_of_no_elements(function):
    for shape in ((3, 0), (0, 3)):
        axis = shape.index(0)
        same(np.apply_along_axis, function, axis, Pair(np.ones(shape), 2))


def test_padding_lines_of_no_elements():
    def seven(line, width, axis, keywords):
        line[:] = 7.0

    same(np.pad, Pair(np.ones((2, 0)), 2), ((0, 0), (1, 2)), seven)


def test_neighbours_need_results_of_the_same_shape():
    x = tiled(np.arange(10.0), 4)

    def valid(tile):
        return (tile[2:] + tile[1:-1] + tile[:-2]) / 3

    with pytest.raises(ValueError, match=r"valid returned shape \(1,\) for a tile of shape \(3,\)"):
        ln.map_overlap(valid, x, depth=1)
    with pytest.raises((ValueError, KernelError), match="expected the same shape"):
        ln.map_overlap(valid, x, depth=1, dtype="f8").compute()
    with pytest.raises((ValueError, KernelError), match="valid"):
        ln.map_overlap(valid, x, depth=1, dtype="f8", trim=False).compute()


# ---- dtypes


@pytest.mark.parametrize("order", [1, -1, inf, -inf, None, "fro"])
def test_norms_of_integers(order):
    same(np.linalg.norm, numbers([[-128, 1], [2, -128]], "i1", 1), order)


@pytest.mark.parametrize("order", [0, 1, 2, inf, -inf])
def test_vector_norms_of_integers(order):
    same(np.linalg.norm, numbers([-128, 1, 2], "i1"), order)


@pytest.mark.parametrize("dtype", ["u4", "u8", "?", "c8"])
def test_correlations_with_booleans(dtype):
    x = numbers([1, 0, 2, 3, 1], dtype)
    for mode in ("full", "same", "valid"):
        same(np.correlate, x, numbers([True, False], None, 2), mode)
        same(np.correlate, numbers([True, False], None, 2), x, mode)


def test_devices_come_in_a_tuple():
    assert ln.__array_namespace_info__().devices() == ("cpu",)
