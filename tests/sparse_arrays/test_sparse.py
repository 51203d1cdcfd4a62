"""Sparse arrays against NumPy on the same elements."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import linnet as ln
from linnet.errors import DamagedTileError, InputError
from linnet.sparse_arrays.array import form_of
from linnet.tiles.sparse_tile import SparseTile

DTYPES = ["float64", "float32", "int64", "int8", "uint16", "bool", "complex128", "float16"]
FILLS = {"f": [0.0, 1.0, np.inf, np.nan], "i": [0, 3], "u": [0, 2], "b": [False, True], "c": [0, 1j]}


@st.composite
def arrays(draw: Any, ndim: int | None = None, shape: tuple[int, ...] | None = None) -> tuple[Any, Any]:
    """A NumPy array, and the same as a sparse one."""
    count = draw(st.integers(1, 3)) if ndim is None else ndim
    shape = (
        tuple(draw(st.integers(0 if ndim is None else 1, 7)) for _ in range(count))
        if shape is None
        else shape
    )
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    fill = dtype.type(draw(st.sampled_from(FILLS[dtype.kind])))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    dense = rng.integers(0, 5, shape).astype(dtype)
    dense[rng.random(shape) < draw(st.sampled_from([0.3, 0.8, 1.0]))] = fill
    chunks = tuple(draw(st.integers(1, max(1, length))) for length in shape)
    return dense, ln.sparse(dense, chunks=chunks, fill=fill)


def same(made: Any, wanted: Any) -> None:
    """Equal values and dtypes."""
    made, wanted = np.asarray(made), np.asarray(wanted)
    assert made.dtype == wanted.dtype
    exact = wanted.dtype.kind in "biu"
    (np.testing.assert_array_equal if exact else lambda a, b: np.testing.assert_allclose(a, b, 1e-3))(
        made, wanted
    )


@given(arrays())
@settings(max_examples=15, deadline=None)
def test_elements_there_and_back(pair: tuple[Any, Any]) -> None:
    dense, x = pair
    assert x.shape == dense.shape
    assert x.dtype == dense.dtype
    assert x.storage.startswith("sparse")
    np.testing.assert_array_equal(x.compute(), dense)
    values, places = x.coo()
    again = np.full(dense.shape, x.fill, dense.dtype)
    again[places] = values
    np.testing.assert_array_equal(again, dense)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).compute(), dense)
    np.testing.assert_array_equal(ln.sparse(ln.asarray(dense, chunks=2), fill=x.fill).compute(), dense)


@pytest.mark.slow
@given(arrays(), st.data())
@settings(max_examples=15, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_parts_and_axes(pair: tuple[Any, Any], data: Any) -> None:
    dense, x = pair
    key: list[Any] = []
    for length in dense.shape:
        number = st.integers(-length, length - 1) if length else st.nothing()
        bound = st.none() | st.integers(-9, 9)
        sliced = st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, 3, -1, -2]))
        key.append(data.draw(number | sliced if length else sliced))
    if data.draw(st.booleans()):
        key.insert(data.draw(st.integers(0, len(key))), None)
    same(x[tuple(key)], dense[tuple(key)])
    order = data.draw(st.permutations(range(dense.ndim)))
    same(ln.transpose(x, order), dense.transpose(order))
    same(x.T, dense.T)
    chunks = tuple(data.draw(st.integers(1, max(1, length))) for length in dense.shape)
    same(x.rechunk(chunks), dense)


@given(
    arrays(), st.sampled_from(["sum", "prod", "min", "max", "any", "all", "mean", "count_nonzero"]), st.data()
)
@settings(max_examples=15, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_reductions(pair: tuple[Any, Any], name: str, data: Any) -> None:
    dense, x = pair
    axis = data.draw(st.none() | st.integers(0, dense.ndim - 1))
    reduced = dense.shape if axis is None else (dense.shape[axis],)
    if 0 in dense.shape and (name == "mean" or (name in ("min", "max") and 0 in reduced)):
        return
    if name in ("min", "max", "mean", "prod") and dense.dtype.char in "De":
        return  # refused, or rounded differently
    keywords = {"keepdims": True} if data.draw(st.booleans()) else {}
    same(getattr(ln, name)(x, axis=axis, **keywords), getattr(np, name)(dense, axis=axis, **keywords))


@pytest.mark.slow
@given(arrays(), st.data())
@settings(max_examples=15, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_element_by_element(pair: tuple[Any, Any], data: Any) -> None:
    dense, x = pair
    for ufunc in (np.add, np.multiply, np.not_equal, np.maximum):
        other = data.draw(st.sampled_from([2, 0, np.float64(1.5)]))
        same(ufunc(x, other), ufunc(dense, other))
        same(ufunc(other, x), ufunc(other, dense))
    same(abs(x) if dense.dtype.kind != "b" else ~x, abs(dense) if dense.dtype.kind != "b" else ~dense)
    beside, y = data.draw(arrays(shape=dense.shape))
    for ufunc in (np.add, np.multiply, np.equal):
        if not (np.isfinite(np.asarray(dense)).all() and np.isfinite(beside).all()):
            continue
        same(ufunc(x, y), ufunc(dense, beside))
    if x.fill == 0:
        row = np.arange(dense.shape[-1])
        same(x * row, dense * row)
        same(row * x, row * dense)


@pytest.mark.slow
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 7), st.integers(0, 99), st.sampled_from(DTYPES))
@settings(max_examples=15, deadline=None)
def test_products(m: int, k: int, n: int, seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
    a[rng.random((m, k)) < 0.6] = 0
    b[rng.random((k, n)) < 0.6] = 0
    x = ln.sparse(a, chunks=tuple(rng.integers(1, 4, 2).tolist()))
    y = ln.sparse(b, chunks=tuple(rng.integers(1, 4, 2).tolist()))
    same(x @ y, a @ b)
    assert (x @ y).storage.startswith("sparse")
    same(x @ b, a @ b)
    same(a @ y, a @ b)
    same(x @ ln.asarray(b, chunks=2), a @ b)
    same(x @ b[:, 0], a @ b[:, 0])
    same(a[0] @ y, a[0] @ b)
    if dtype != "bool":
        same(ln.einsum("ij,kj->ki", x, b.T), np.einsum("ij,kj->ki", a, b.T))
        same(ln.einsum("ij,j->ij", x, b[:, 0]), np.einsum("ij,j->ij", a, b[:, 0]))


def test_absent_blocks_make_no_tasks() -> None:
    n = 64
    x = ln.sparse(np.diag(np.arange(1.0, n + 1)), chunks=8)
    assert len(form_of(x).places) == 8
    assert len(form_of(x @ x).places) == 8
    assert len(form_of(x * x).places) == 8
    assert len(form_of(x[:16]).places) == 2
    plan = ln.plan((x @ x @ x).sum(axis=1))
    assert plan.tasks <= 8 * 4 + 8


def test_other_libraries_and_files(tmp_path: Path) -> None:
    pydata = pytest.importorskip("sparse")
    a = scipy.sparse.random_array((30, 20), density=0.1, rng=np.random.default_rng(1))
    for given_as in (a, a.tocsr(), a.tocsc(), pydata.COO(a)):
        x = ln.sparse(given_as, chunks=8)
        np.testing.assert_array_equal(x.compute(), a.toarray())
    back = x.to_scipy()
    assert scipy.sparse.issparse(back)
    assert (back != a.tocsr()).nnz == 0
    scipy.sparse.save_npz(tmp_path / "a.npz", a.tocsr())
    np.testing.assert_array_equal(ln.sparse(tmp_path / "a.npz").compute(), a.toarray())
    np.save(tmp_path / "a.npy", a.toarray())
    np.testing.assert_array_equal(ln.sparse(str(tmp_path / "a.npy")).compute(), a.toarray())
    three = ln.sparse(([1, 2, 3], ([0, 0, 1], [1, 1, 2], [0, 0, 4])), shape=(2, 3, 5))
    assert three[0, 1, 0].compute() == 3
    assert three.nnz == 2


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda x: ln.sort(x), "sort does not take sparse arrays"),
        (lambda x: ln.linalg.svd(x), "svd does not take sparse arrays"),
        (lambda x: np.concatenate([x, x]), "concatenate does not take sparse arrays"),
        (lambda x: x + np.ones(4), "is dense: absent elements"),
        (lambda x: x[[0, 1]], "indexed by numbers and slices"),
        (lambda x: (x + 1) @ np.ones(4), "absent elements that are 0"),
        (lambda x: x.__setitem__(0, 1), "cannot be assigned"),
        (lambda x: (x + 1).to_scipy(), r"use x.coo\(\)"),
        (lambda x: ln.sparse(([1], ([5],)), shape=(4,)), "position 5 along axis 0"),
        (lambda x: ln.sparse(([1, 2], ([1, 1],)), shape=(4,), fill=7), "given twice"),
        (lambda x: ln.sparse(([1], ([1],))), "give shape="),
        (lambda x: ln.sparse(np.ones(3, int), fill=0.5), "no number that int64 can hold"),
        (lambda x: ln.sparse(np.array("a")), "not <U1"),
        (lambda x: ln.sparse("a.txt"), "read from .npz"),
    ],
)
def test_refusals(made: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made(ln.sparse(np.eye(4), chunks=2))


def test_damaged_tiles_are_refused() -> None:
    packed = SparseTile.of(np.eye(4), 0).packed()
    for place, value in ((0, 0), (6, 200), (7, 3), (8, 255), (16, 79), (130, 9), (100, 200)):
        broken = packed.copy()
        broken[place] = value
        with pytest.raises(DamagedTileError):
            SparseTile.unpacked(broken)
    for length in (0, 20, 60, 100, len(packed) - 40):
        with pytest.raises(DamagedTileError):
            SparseTile.unpacked(packed[:length])
