"""Arrays made of other objects, of one value, of even steps: against NumPy, in memory and in tiles."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arrays.strategies import DATES, NUMBERS, REAL, pairs, tiled

from linnet.arrays import Array
from linnet.arrays.elements import creation, filled
from linnet.arrays.expression import chunking
from linnet.arrays.functions import (
    dtypes,
    namespace_info,
    positions_in_grids,
    spaced_numbers,
    triangle_indices,
)


@pytest.fixture(params=["small", "tiles"])
def _paths(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "tiles":
        monkeypatch.setattr(chunking, "SMALL", -1)
        monkeypatch.setattr(chunking, "TARGET", 64)
    yield


def same(ours: Any, theirs: Any) -> None:
    """Equal in shape, dtype and every element, NaN and the sign of zero included."""
    assert isinstance(ours, Array)
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    got = np.asarray(ours.compute())
    assert got.shape == theirs.shape
    assert got.dtype == theirs.dtype
    np.testing.assert_array_equal(got, theirs)
    if theirs.dtype.kind in "fc":
        np.testing.assert_array_equal(np.signbit(got.real), np.signbit(theirs.real))


# ---- even steps


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        ((50,), None),
        ((3, 50), None),
        ((3, 50, 7), None),
        ((50, 3, -7), None),
        ((5, 5), None),
        ((5, 3), None),
        ((0.5, 9), None),
        ((0.1, 3, 0.1), None),
        ((0.3, 3.1, 0.7), "f4"),
        ((0.3, 30, 0.7), "f2"),
        ((-3, 3), "i1"),
        ((0, 300), "u1"),
        ((2**63, 2**63 + 40, 3), "u8"),
        ((np.float32(7),), None),
        ((np.datetime64("2020-01-01"), np.datetime64("2020-03-01")), None),
        ((np.datetime64("2020-01-01"), np.datetime64("2020-01-03"), np.timedelta64(90, "m")), None),
        ((np.timedelta64(3, "s"), np.timedelta64(30, "s"), 5), None),
    ],
)
def test_arange(args: Any, dtype: Any) -> None:
    same(spaced_numbers.arange(*args, dtype=dtype), np.arange(*args, dtype=dtype))


def test_arange_errors() -> None:
    with pytest.raises(ZeroDivisionError):
        spaced_numbers.arange(0, 3, 0)
    with pytest.raises(TypeError, match="requires stop"):
        spaced_numbers.arange()
    with pytest.raises(ValueError, match='the only device is "cpu"'):
        spaced_numbers.arange(3, device="gpu")


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("num", [0, 1, 2, 37])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(
    ("start", "stop", "dtype"),
    [
        (0, 1, None),
        (2.5, -7.3, None),
        (1, 1, None),
        (0, 10, int),
        (1j, 3, None),
        (0, 1, "f4"),
        (0, 5e-324, None),
    ],
)
def test_linspace(num: int, endpoint: bool, start: Any, stop: Any, dtype: Any) -> None:
    ours, step = spaced_numbers.linspace(start, stop, num, endpoint, True, dtype)
    theirs, their_step = np.linspace(start, stop, num, endpoint, True, dtype)
    same(ours, theirs)
    np.testing.assert_array_equal(np.asarray(step), their_step)


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_linspace_of_arrays(axis: int) -> None:
    a, b = np.array([0.0, 1.0, 2.0]), np.array([4.0, 1.0, -9.0])
    ours = spaced_numbers.linspace(tiled(a, 2), b, 21, axis=axis)
    np.testing.assert_array_equal(ours.compute(), np.linspace(a, b, 21, axis=axis))
    assert np.linspace(tiled(a, 2), b, 21).shape == (21, 3)


@pytest.mark.usefixtures("_paths")
def test_logspace_geomspace() -> None:
    np.testing.assert_allclose(spaced_numbers.logspace(0, 3, 40).compute(), np.logspace(0, 3, 40), rtol=1e-14)
    np.testing.assert_allclose(
        spaced_numbers.logspace(0, 3, 40, base=2).compute(), np.logspace(0, 3, 40, base=2)
    )
    for ends in ((1, 1000), (-1, -1000), (1j, 1000j), (1, -1 + 0j)):
        for endpoint in (True, False):
            theirs = np.geomspace(*ends, 30, endpoint)
            ours = spaced_numbers.geomspace(*ends, 30, endpoint)
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours.compute(), theirs, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="cannot include zero"):
        spaced_numbers.geomspace(0, 1)


# ---- one value


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("dtype", [*NUMBERS, *DATES])
@pytest.mark.parametrize("shape", [(), 7, (3, 5), (0, 4), [2, 3, 2]])
def test_constants(dtype: str, shape: Any) -> None:
    same(filled.zeros(shape, dtype), np.zeros(shape, dtype))
    assert filled.empty(shape, dtype).dtype == dtype
    if dtype not in DATES:
        same(filled.ones(shape, dtype), np.ones(shape, dtype))
        same(filled.full(shape, 1, dtype), np.full(shape, 1, dtype))


@pytest.mark.usefixtures("_paths")
def test_full_of_many_kinds() -> None:
    same(filled.full((3, 4), np.arange(4)), np.full((3, 4), np.arange(4)))
    same(filled.full((3, 4), tiled(np.arange(4.0), 2), "i4"), np.full((3, 4), np.arange(4), "i4"))
    same(filled.full(30, True), np.full(30, True))
    same(filled.full(30, 2.5 + 1j), np.full(30, 2.5 + 1j))
    assert filled.zeros((10, 10), chunks=(5, -1)).chunks == ((5, 5), (10,))
    with pytest.raises(ValueError, match="negative dimensions"):
        filled.zeros((3, -1))
    with pytest.raises(TypeError, match="arrays of objects"):
        filled.zeros(3, object)


@given(pairs((*NUMBERS, *DATES)))
def test_like(pair: Any) -> None:
    a, x = pair
    same(np.zeros_like(x), np.zeros_like(a))
    same(filled.zeros_like(x), np.zeros_like(a))
    if a.dtype.kind not in "mM":
        same(np.ones_like(x, dtype="f4"), np.ones_like(a, dtype="f4"))
        same(np.full_like(x, 1), np.full_like(a, 1))
    assert filled.empty_like(x).chunks == x.chunks
    same(np.zeros((2, 3), like=x), np.zeros((2, 3)))


# ---- other objects


def test_asarray_shares_memory() -> None:
    a = np.arange(5.0)
    shared, copied = creation.asarray(a), creation.asarray(a, copy=True)
    a[0] = 9
    assert shared.compute()[0] == 9
    assert copied.compute()[0] == 0
    assert creation.copy(shared).compute()[0] == 9
    with pytest.raises(ValueError, match="copy"):
        creation.asarray(creation.asarray(a), dtype="i4", copy=False)
    with pytest.raises(ValueError, match="copy"):
        creation.asarray([1, 2], copy=False)


def test_asarray_of_many_things() -> None:
    x = tiled(np.arange(4), 2)
    same(creation.asarray([x, x + 1]), np.stack([np.arange(4), np.arange(4) + 1]))
    same(creation.asarray([[x, x], [x, x * 2.5]]), np.array([[range(4)] * 2, [range(4), np.arange(4) * 2.5]]))
    same(creation.asarray([creation.asarray(1), 2.5]), np.array([1, 2.5]))
    same(creation.asarray(x, "f4"), np.arange(4, dtype="f4"))
    same(creation.asarray(memoryview(b"abc")), np.asarray(memoryview(b"abc")))
    same(creation.from_dlpack(np.arange(3)), np.arange(3))
    same(creation.array(7, ndmin=2), np.array(7, ndmin=2))
    same(creation.ascontiguousarray(7), np.ascontiguousarray(7))
    same(creation.frombuffer(b"abcd", "u1"), np.frombuffer(b"abcd", "u1"))
    same(creation.fromiter(range(4), int), np.arange(4))
    assert creation.asarray(np.arange(6), chunks=4).chunks == ((4, 2),)
    for refused in (["a"], [object()], np.zeros(2, "i4,f8")):
        with pytest.raises(TypeError, match="not supported"):
            creation.asarray(refused)
    with pytest.raises(ValueError, match="infs or NaNs"):
        creation.asarray_chkfinite(tiled(np.array([1.0, np.nan]), 1))


# ---- positions


@pytest.mark.usefixtures("_paths")
@pytest.mark.parametrize("k", [-7, -2, 0, 1, 6])
@pytest.mark.parametrize("dtype", [float, bool, "c8", "i2"])
def test_eye_and_tri(k: int, dtype: Any) -> None:
    same(positions_in_grids.eye(5, 7, k=k, dtype=dtype), np.eye(5, 7, k, dtype))
    same(positions_in_grids.eye(6, k=k, dtype=dtype, chunks=2), np.eye(6, k=k, dtype=dtype))
    same(positions_in_grids.tri(5, 7, k, dtype), np.tri(5, 7, k, dtype))
    same(positions_in_grids.identity(4), np.identity(4))


@given(pairs((*REAL, "c16"), min_dims=1), st.integers(-4, 4))
def test_triangles(pair: Any, k: int) -> None:
    a, x = pair
    same(np.tril(x, k), np.tril(a, k))
    same(positions_in_grids.triu(x, k=k), np.triu(a, k))


@given(pairs((*REAL, "c16", *DATES), min_dims=1, max_dims=1), st.integers(-3, 3))
def test_diag_of_vectors(pair: Any, k: int) -> None:
    a, x = pair
    same(np.diag(x, k), np.diag(a, k))
    same(positions_in_grids.diagflat(x, k), np.diagflat(a, k))


@given(
    pairs(("i1", "f4", "f8", "c16"), min_dims=1, max_dims=1), st.sampled_from([None, 0, 1, 4]), st.booleans()
)
def test_vander(pair: Any, n: Any, increasing: bool) -> None:
    a, x = pair
    with np.errstate(all="ignore"):
        same(np.vander(x, n, increasing), np.vander(a, n, increasing))


@given(pairs(max_dims=1), pairs(max_dims=1), st.booleans(), st.sampled_from(["xy", "ij"]))
def test_meshgrid(one: Any, other: Any, sparse: bool, indexing: Any) -> None:
    ours = np.meshgrid(one[1], other[1], sparse=sparse, indexing=indexing)
    theirs = np.meshgrid(one[0], other[0], sparse=sparse, indexing=indexing)
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs, strict=True):
        same(mine, its)


@pytest.mark.usefixtures("_paths")
def test_coordinates() -> None:
    for shape in ((), (4,), (3, 5), (2, 0, 3)):
        same(positions_in_grids.indices(shape), np.indices(shape))
        for ours, theirs in zip(
            positions_in_grids.indices(shape, sparse=True), np.indices(shape, sparse=True), strict=True
        ):
            same(ours, theirs)
    same(
        positions_in_grids.fromfunction(lambda i, j: i * 2 + j, (4, 3)),
        np.fromfunction(lambda i, j: i * 2 + j, (4, 3)),
    )
    assert [d.compute().tolist() for d in triangle_indices.diag_indices(4)] == [[0, 1, 2, 3]] * 2


@pytest.mark.usefixtures("_paths")
def test_indices_of_triangles() -> None:
    for name in ("tril_indices", "triu_indices"):
        for args in ((4,), (4, 1), (4, -1, 6)):
            for ours, theirs in zip(
                getattr(triangle_indices, name)(*args), getattr(np, name)(*args), strict=True
            ):
                np.testing.assert_array_equal(ours.compute(), theirs)
    x = tiled(np.ones((3, 4)), 2)
    for ours, theirs in zip(np.tril_indices_from(x), np.tril_indices_from(np.ones((3, 4))), strict=True):
        np.testing.assert_array_equal(ours.compute(), theirs)
    for ours, theirs in zip(
        triangle_indices.mask_indices(3, np.triu, 1), np.mask_indices(3, np.triu, 1), strict=True
    ):
        np.testing.assert_array_equal(ours.compute(), theirs)


# ---- dtypes


@given(pairs((*NUMBERS, *DATES)), st.sampled_from(["f4", "c16", "i8", "?", "u1"]))
def test_astype(pair: Any, dtype: str) -> None:
    a, x = pair
    if a.dtype.kind in "mM" and np.dtype(dtype).kind not in "i":
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            ours, theirs = dtypes.astype(x, dtype).compute(), a.astype(dtype)
    finite = (
        np.isfinite(a) if a.dtype.kind in "fc" and np.dtype(dtype).kind in "iu" else np.ones(a.shape, bool)
    )
    assert ours.dtype == dtype
    np.testing.assert_array_equal(np.asarray(ours)[finite], theirs[finite])


def test_inspection() -> None:
    x = tiled(np.arange(6, dtype="i2").reshape(2, 3), 2)
    assert np.shape(x) == (2, 3)
    assert np.ndim(x) == 2
    assert np.size(x, 1) == 3
    assert np.result_type(x, np.float32) == np.result_type(np.int16, np.float32)
    assert dtypes.result_type(x, 1.0) == np.float64
    assert dtypes.can_cast(x, "i1") is False
    assert dtypes.finfo(x.astype("f4")).bits == 32
    assert dtypes.iinfo(x).max == 32767
    assert not np.iscomplexobj(x)
    assert np.common_type(x) is np.float64
    info = namespace_info.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == np.int64
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    with pytest.raises(ValueError, match="is not known"):
        info.dtypes(kind="whole")


@given(pairs(("i4", "f4", "f8", "c8", "c16")))
def test_parts_and_tests_of_numbers(pair: Any) -> None:
    a, x = pair
    same(x.real, a.real)
    same(x.imag, a.imag)
    same(np.iscomplex(x), np.iscomplex(a))
    same(np.isreal(x), np.isreal(a))
    if a.dtype.kind != "c":
        same(np.isposinf(x), np.isposinf(a))
        same(np.isneginf(x), np.isneginf(a))
    same(np.real_if_close(x), np.real_if_close(a))


def test_methods() -> None:
    a = np.arange(6, dtype="f4").reshape(2, 3)
    x = tiled(a, 2)
    same(x.view("u4"), a.view("u4"))
    same(x.copy(), a)
    y = x + 1
    x.fill(7)
    same(x, np.full_like(a, 7))
    same(y, a + 1)
    np.copyto(x, np.arange(3), where=np.array([True, False, True]))
    same(x, np.array([[0, 7, 2]] * 2, "f4"))
    with pytest.raises(ValueError, match="its size must be a divisor of the total size in bytes"):
        x.view("f8")
    with pytest.raises(TypeError, match="byteswap"):
        x.byteswap()
    with pytest.raises(TypeError, match="according to the rule"):
        x.astype("i4", casting="safe")
