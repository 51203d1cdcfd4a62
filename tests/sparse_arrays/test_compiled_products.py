"""Compiled products of sparse tiles: those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import linnet as ln
from linnet.kernels.sparse import compiled_products, products
from linnet.kernels.sparse.elements import unpacked
from linnet.tiles.sparse_tile import SparseTile, scalar_text

RNG = np.random.default_rng(3)


def matrix(shape, density, dtype):
    made = np.where(RNG.random(shape) < density, RNG.integers(-4, 5, shape), 0)
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("density", [0.0, 0.004, 0.05, 0.7, 1.0])
@pytest.mark.parametrize("columns", [1000, 40_000])
def test_products_of_tiles(dtype, density, columns):
    """Wide rows are read off in another way; zeros that come out are dropped."""
    shapes = [((13, 40), (40, columns)), ((13, 7), (7, columns))]
    whole = [[matrix(shape, density, dtype) for shape in pair] for pair in shapes]
    pairs = [tuple(SparseTile.of(each, 0) for each in pair) for pair in whole]
    made = compiled_products.compiled_product(pairs, (13, columns), (26, 0), dtype(0))
    assert made is not None
    expected = SparseTile.of(sum(one @ other for one, other in whole), 0, (26, 0))
    again = unpacked(made)
    assert made.tobytes() == again.packed().tobytes()
    for name in ("pointers", "indices", "values"):
        assert np.array_equal(getattr(again, name), getattr(expected, name))
    assert again.origin == (26, 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.complex128, bool])
@pytest.mark.parametrize("density", [0.0, 0.05, 0.9])
def test_all_elements_of_a_product_at_once(dtype, density):
    """Rows and columns of tiles that are absent, tiles of 1, an infinity that only stored elements meet."""
    one, other = matrix((23, 31), density, dtype), matrix((31, 17), density, dtype)
    one[8:16] = 0
    other[:, 12:] = 0
    if dtype is np.float64 and density:
        one[0, 3], other[3, 2], other[3, 4] = np.inf, 1, -1
    for chunks in (8, (1, 31), (23, 5)):
        made = ln.sparse(one, chunks=chunks) @ ln.sparse(
            other, chunks=chunks[::-1] if chunks == (1, 31) else chunks
        )
        expected = (csr_array(one) @ csr_array(other)).toarray()
        assert made.todense().dtype == expected.dtype
        np.testing.assert_array_equal(made.todense(), expected)
        np.testing.assert_array_equal(made.persist().todense(), expected)
        np.testing.assert_array_equal((made + 0)[2:9, ::3].todense(), expected[2:9, ::3])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.complex128])
@pytest.mark.parametrize("columns", [1, 3])
def test_times_a_vector(dtype, columns):
    one, other = matrix((9, 20), 0.3, dtype), matrix((20, columns), 1.0, dtype)
    tile = SparseTile.of(one, 0).packed()
    made = products.sparse_times_dense(
        [tile], [other], 0, 9, plus="add", times="multiply", fill=scalar_text(dtype(0))
    )
    assert made.dtype == dtype
    assert np.array_equal(made, one @ other)


def test_without_a_compiler(monkeypatch):
    one = matrix((30, 30), 0.1, float)
    with_c = (ln.sparse(one, chunks=8) @ ln.sparse(one, chunks=8)).compute()
    monkeypatch.setattr(compiled_products, "_library", lambda: None)
    assert np.array_equal(with_c, (ln.sparse(one, chunks=8) @ ln.sparse(one, chunks=8)).compute())
    assert np.array_equal(with_c, one @ one)
