"""The shipped kernels against NumPy and SciPy, over dtypes, memory orders and ragged shapes."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import scipy.linalg

from linnet import kernels
from linnet.errors import LinAlgError

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
ORDERS = ["F", "C", "strided"]


def random(rng, rows, columns, dtype, order="F"):
    real = rng.standard_normal((2 * rows, 2 * columns))
    full = real + 1j * rng.standard_normal(real.shape) if np.dtype(dtype).kind == "c" else real
    full = full.astype(dtype)
    if order == "strided":
        return full[::2, ::2]
    return np.array(full[:rows, :columns], order=order)


def near(actual, expected, dtype):
    size = max(1, *expected.shape)
    tolerance = 40 * size * np.finfo(dtype).eps * max(1.0, np.abs(expected).max(initial=0))
    assert actual.shape == expected.shape
    assert actual.dtype == dtype
    assert np.abs(actual - expected).max(initial=0) <= tolerance


def hermitian(rng, n, dtype, order):
    x = random(rng, n, n, np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    return np.array(
        (x @ x.conj().T + n * np.eye(n)).astype(dtype), order="C" if order == "strided" else order
    )


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 33])
def test_chol(rng, dtype, order, n):
    a = hermitian(rng, n, dtype, order)
    before = a.copy()
    factor = kernels.chol(a)
    near(factor, np.linalg.cholesky(before), dtype)
    assert np.array_equal(a, before)
    assert not np.triu(factor, 1).any()


def test_chol_reads_the_lower_triangle_only(rng):
    a = hermitian(rng, 6, np.float64, "F")
    assert np.array_equal(kernels.chol(np.tril(a)), kernels.chol(a))


def test_chol_names_the_leading_minor():
    with pytest.raises(LinAlgError, match="leading minor of order 3 of the tile is not positive definite"):
        kernels.chol(np.diag([1.0, 2.0, -1.0, 4.0]))
    with pytest.raises(np.linalg.LinAlgError):
        kernels.chol(-np.eye(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("rows", "n"), [(4, 4), (1, 5), (9, 3), (0, 3), (3, 0)])
def test_trsm(rng, dtype, order, rows, n):
    triangle = np.linalg.cholesky(hermitian(rng, n, dtype, "F"))
    s = random(rng, rows, n, dtype, order)
    solution = kernels.trsm(triangle, s)
    near(solution @ triangle.conj().T, np.array(s), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 4), (5, 3, 2), (1, 1, 7), (6, 1, 1), (3, 2, 0), (0, 4, 2)])
def test_products(rng, dtype, order, m, n, k):
    s = random(rng, m, n, dtype, order)
    a, b = random(rng, m, k, dtype, order), random(rng, k, n, dtype, order)
    bh = random(rng, n, k, dtype, order)
    near(kernels.syrk(s, a, bh), s - a @ bh.conj().T, dtype)
    near(kernels.gemm(a, b), a @ b, dtype)
    near(kernels.gemm_add(s, a, b), s + a @ b, dtype)
    near(kernels.gemm([a, s], [b, s.T @ s]), a @ b + s @ (s.T @ s), dtype)


def test_a_range_may_hold_more_tiles_than_numpy_takes_arguments(rng):
    tiles = [rng.standard_normal((2, 2)) for _ in range(100)]
    near(kernels.gemm(tiles, tiles), sum(x @ x for x in tiles), np.float64)
    near(kernels.sum_tiles(tiles), sum(tiles), np.float64)


def test_overwrite_is_in_place_and_only_then(rng):
    s, a = random(rng, 4, 4, np.float64), random(rng, 4, 4, np.float64)
    expected = s - a @ a.T
    result = kernels.syrk(s, a, a, overwrite=(0,))
    assert result is s
    near(s, expected, np.float64)
    read_only = random(rng, 4, 4, np.float64)
    read_only.flags.writeable = False
    assert kernels.syrk(read_only, a, a, overwrite=(0,)) is not read_only
    assert kernels.copy(a, overwrite=(0,)) is a
    assert not np.shares_memory(kernels.copy(a), a)


def test_dtypes_are_promoted_and_others_refused(rng):
    assert kernels.gemm(np.eye(2, dtype="f4"), np.eye(2)).dtype == np.float64
    assert kernels.chol(np.eye(2, dtype="i4")).dtype == np.float64
    assert kernels.add(np.arange(2), np.arange(2), overwrite=(0,)).dtype == np.int64
    with pytest.raises(
        TypeError, match="tiles of dtype object cannot go to BLAS; convert the array to float32"
    ):
        kernels.gemm(np.eye(2, dtype=object), np.eye(2))


def test_byte_order_is_not_taken_for_granted(rng):
    a = random(rng, 3, 3, np.float64)
    near(kernels.gemm(a.astype(">f8"), a), a @ a, np.float64)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kernels.chol(np.ones((2, 3))), "chol expects a square tile, got one of 2×3"),
        (lambda: kernels.trsm(np.eye(2), np.ones((2, 3))), "as wide as the tile, got 2×2 and 2×3"),
        (lambda: kernels.syrk(np.eye(2), np.eye(3), np.eye(3)), "got 2×2, 3×3 and 3×3"),
        (lambda: kernels.gemm(np.eye(2), np.eye(3)), "got 2×2 and 3×3"),
        (lambda: kernels.gemm([], []), "at least one; got 0 and 0"),
        (lambda: kernels.gemm_add(np.eye(2), np.eye(3), np.eye(3)), "got 2×2, 3×3 and 3×3"),
        (lambda: kernels.tpqrt(np.ones((2, 3)), np.ones((4, 3))), "at least as many rows as columns"),
        (lambda: kernels.geqrt(np.eye(3), 0), "inner block size of at least 1, got 0"),
        (lambda: kernels.gemqrt(np.eye(3), np.eye(3), np.eye(2)), "as many rows as V has"),
        (lambda: kernels.add(np.ones(2), np.ones(3)), "two tiles of one shape"),
        (lambda: kernels.sum_tiles([]), "at least one; got none"),
    ],
)
def test_tiles_that_do_not_fit_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["F", "C"])
@pytest.mark.parametrize(("m", "n"), [(5, 5), (9, 4), (3, 7), (1, 1), (40, 37), (0, 3), (3, 0)])
@pytest.mark.parametrize("ib", [1, 3, 32])
def test_qr_of_a_tile(rng, dtype, order, m, n, ib):
    a = random(rng, m, n, dtype, order)
    v, t, r = kernels.geqrt(a, ib)
    k = min(m, n)
    assert (v.shape, t.shape, r.shape) == kernels.geqrt.shape((m, n), ib)
    assert not np.tril(r, -1).any()
    near(kernels.gemqrt(v, t, a), np.vstack([r, np.zeros((m - k, n))]).astype(dtype), dtype)
    near(kernels.gemqrt(v, t, kernels.gemqrt(v, t, a), adjoint=False), a, dtype)
    v, t, left = kernels.gelqt(a, ib)
    assert (v.shape, t.shape, left.shape) == kernels.gelqt.shape((m, n), ib)
    near(kernels.gemlqt(v, t, a), np.hstack([left, np.zeros((m, n - k))]).astype(dtype), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("triangular", [False, True])
@pytest.mark.parametrize(("m", "n"), [(5, 5), (9, 4), (3, 7), (1, 1), (0, 3)])
def test_qr_of_a_triangle_on_a_tile(rng, dtype, triangular, m, n):
    top = np.triu(random(rng, n, n, dtype))
    below = random(rng, m, n, dtype)
    if triangular:
        below = np.triu(below)[: min(m, n)]
    v, t, r = kernels.tpqrt(top, below, 2, triangular=triangular)
    assert (v.shape, t.shape, r.shape) == kernels.tpqrt.shape(top.shape, below.shape, 2)
    c0, c1 = kernels.tpmqrt(v, t, top, below, triangular=triangular)
    near(c0, r, dtype)
    near(c1, np.zeros_like(below), dtype)
    back0, back1 = kernels.tpmqrt(v, t, c0, c1, adjoint=False, triangular=triangular)
    near(back0, top, dtype)
    near(back1, below, dtype)
    full = scipy.linalg.qr(np.vstack([top, below]), mode="r")[0][:n]
    near(np.abs(np.diag(r))[:, None], np.abs(np.diag(full))[:, None], np.zeros(0, dtype).real.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(5, 5), (4, 9), (7, 3), (1, 1), (3, 0)])
def test_lq_of_a_triangle_beside_a_tile(rng, dtype, m, n):
    left = np.tril(random(rng, m, m, dtype))
    right = random(rng, m, n, dtype)
    v, t, lower = kernels.tplqt(left, right, 2)
    assert (v.shape, t.shape, lower.shape) == kernels.tplqt.shape(left.shape, right.shape, 2)
    c0, c1 = kernels.tpmlqt(v, t, left, right)
    near(c0, lower, dtype)
    near(c1, np.zeros_like(right), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_declared_dtypes_are_the_real_ones(rng, dtype):
    a = random(rng, 4, 4, dtype)
    spd = hermitian(rng, 4, dtype, "F")
    v, t, r = kernels.geqrt(a)
    operands = {
        "chol": (spd,), "trsm": (spd, a), "syrk": (a, a, a), "gemm": (a, a), "gemm_add": (a, a, a),
        "geqrt": (a,), "gemqrt": (v, t, a), "tpqrt": (r, a), "tpmqrt": (v, t, a, a),
        "gelqt": (a,), "gemlqt": (v, t, a), "tplqt": (r, a), "tpmlqt": (v, t, a, a), "copy": (a,),
    }  # fmt: skip
    for name, tiles in operands.items():
        chosen = kernels.get(name)
        results = chosen(*tiles)
        results = results if chosen.outputs > 1 else (results,)
        shapes = chosen.shape(*(tile.shape for tile in tiles))
        dtypes = chosen.dtype(*(tile.dtype for tile in tiles))
        assert [x.shape for x in results] == list(shapes if chosen.outputs > 1 else [shapes]), name
        assert [x.dtype for x in results] == list(dtypes if chosen.outputs > 1 else [dtypes]), name
        assert chosen.flops(*(tile.shape for tile in tiles)) >= 0, name


SHIPPED = [
    name for name in kernels.names() if kernels.get(name).function.__module__.startswith("linnet.kernels.")
]


@pytest.mark.parametrize("name", SHIPPED)
def test_docstring_examples(name):
    """doctest does not look inside kernels, so this does."""
    function = kernels.get(name).function
    examples = doctest.DocTestFinder().find(function, name, globs=dict(function.__globals__))
    # Kernels on files, and on matrices that LAPACK takes whole, take what functions on files and of linear
    # algebra give them: those have the examples.
    elsewhere = function.__module__ in ("linnet.kernels.arrays.files", "linnet.kernels.linalg.whole_matrices")
    assert elsewhere or any(example.examples for example in examples), f"kernel {name} has no example"
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0
