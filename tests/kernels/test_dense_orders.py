"""Dense kernels in every memory order: equal results, lying as their operands, bits that do not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet import kernels
from linnet.errors import LinAlgError

DTYPES = st.sampled_from(["f4", "f8", "c8", "c16"])
ORDERS = st.sampled_from(["F", "C", "strided", "turned"])
SIZES = st.integers(0, 17)


def random(seed, rows, columns, dtype, order="F"):
    rng = np.random.default_rng(seed)
    shape = (2 * rows, 2 * columns) if order == "strided" else (rows, columns)
    full = rng.standard_normal(shape)
    full = (full + 1j * rng.standard_normal(shape) if dtype.startswith("c") else full).astype(dtype)
    if order == "strided":
        return full[::2, ::2]
    return np.array(full[::-1], order="C")[::-1] if order == "turned" else np.array(full, order=order)


def near(actual, expected, dtype, inner=20):
    scale = max(1.0, np.abs(expected).max(initial=0))
    assert actual.shape == expected.shape
    assert actual.dtype == dtype
    assert np.abs(actual - expected).max(initial=0) <= 60 * (inner + 1) * scale * np.finfo(dtype).eps


@given(SIZES, SIZES, st.lists(SIZES, max_size=3), DTYPES, ORDERS, ORDERS, ORDERS, st.booleans())
def test_downdate(m, n, inner, dtype, order_s, order_a, order_b, mine):
    s = random(0, m, n, dtype, order_s)
    a = [random(k, m, k, dtype, order_a) for k in inner]
    b = [random(k + 50, n, k, dtype, order_b) for k in inner]
    expected = s - sum((x @ y.conj().T for x, y in zip(a, b, strict=True)), np.zeros((m, n), dtype))
    before = [each.copy() for each in (s, *a, *b)]
    near(kernels.downdate(s, a, b), expected, dtype, sum(inner))
    assert all(np.array_equal(x, y) for x, y in zip((s, *a, *b), before, strict=True))
    if len(a) == 1:
        near(kernels.syrk(s, a[0], b[0]), expected, dtype, sum(inner))
    if mine:
        near(kernels.downdate(s, a, b, overwrite=(0,)), expected, dtype, sum(inner))


@given(SIZES, st.lists(SIZES, max_size=3), DTYPES, ORDERS, ORDERS)
def test_downdate_lower(n, inner, dtype, order_s, order_a):
    s = random(0, n, n, dtype, order_s)
    s = s + s.conj().T if order_s in ("F", "C") else s
    a = [random(k, n, k, dtype, order_a) for k in inner]
    whole = s - sum((x @ x.conj().T for x in a), np.zeros((n, n), dtype))
    found = kernels.downdate_lower(s, a)
    if a and dtype.startswith("c"):  # the diagonal of a Hermitian matrix is real
        np.fill_diagonal(whole, whole.diagonal().real)
    if not dtype.startswith("c") or order_s in ("F", "C"):
        near(np.tril(found), np.tril(whole), dtype, sum(inner))
    assert np.array_equal(np.triu(found, 1), np.triu(s, 1))


@given(SIZES, SIZES, DTYPES, ORDERS, ORDERS, st.booleans())
def test_trsm(m, n, dtype, order_l, order_s, mine):
    lower = np.tril(random(0, n, n, dtype)) + 4 * np.eye(n, dtype=dtype)
    expected = random(1, m, n, dtype)
    s = expected @ lower.conj().T
    lower = np.array(lower, order="C" if order_l in ("C", "turned") else "F")
    s = np.array(s, order="C" if order_s in ("C", "turned") else "F")
    before = s.copy()
    found = kernels.trsm(lower, s)
    near(found, expected, dtype, n)
    assert np.array_equal(s, before)
    if mine:
        near(kernels.trsm(lower, s, overwrite=(1,)), expected, dtype, n)


@given(SIZES, DTYPES, st.sampled_from("CF"), st.booleans())
def test_chol_lies_as_its_tile(n, dtype, order, mine):
    x = random(0, n, n, dtype)
    a = np.array(x @ x.conj().T + (n + 1) * np.eye(n), dtype=dtype, order=order)
    expected = np.linalg.cholesky(a)
    found = kernels.chol(a, overwrite=(0,) if mine else ())
    near(found, expected, dtype, n)
    assert not np.triu(found, 1).any()
    if n > 1:
        assert found.flags[f"{order}_CONTIGUOUS"]
        assert (found is a) == mine


@given(
    SIZES,
    SIZES,
    st.lists(SIZES, min_size=1, max_size=3),
    DTYPES,
    ORDERS,
    ORDERS,
    st.booleans(),
    st.booleans(),
)
def test_products(m, n, inner, dtype, order_a, order_b, turned_a, turned_b):
    a = [random(k, m, k, dtype, order_a) for k in inner]
    b = [random(k + 50, k, n, dtype, order_b) for k in inner]
    expected = sum((x @ y for x, y in zip(a, b, strict=True)), np.zeros((m, n), dtype))
    near(kernels.gemm(a, b), expected, dtype, sum(inner))
    first = kernels.gemm(a[0], b[0])
    near(first, a[0] @ b[0], dtype, inner[0])
    near(kernels.gemm_add(first, a[0], b[0]), 2 * (a[0] @ b[0]), dtype, inner[0])
    # Several tiles at once, of factors that are perhaps given by their transposes.
    turned = tuple(place for place, flag in enumerate((turned_a, turned_b)) if flag)
    left = [[x.T] for x in a] if turned_a else [a]
    right = [[y.T for y in b]] if turned_b else [[y] for y in b]
    ((found,),) = kernels.gemm_block(left, right, turned=turned)
    near(found, expected, dtype, sum(inner))


def test_rows_stay_rows():
    a = np.ones((4, 4))
    assert kernels.gemm(a, a).flags.c_contiguous
    assert kernels.gemm(a.T, a.T).flags.f_contiguous
    assert kernels.downdate(a, [a], [a]).flags.c_contiguous
    assert kernels.downdate(a.T, [a], [a]).flags.f_contiguous


def test_tiles_that_do_not_fit():
    a, b = np.ones((2, 3)), np.ones((3, 3))
    with pytest.raises(ValueError, match="downdate expects as many tiles left as right, got 1 and 0"):
        kernels.downdate(a, [a], [])
    with pytest.raises(ValueError, match=r"downdate expects tiles for S - A·Bᴴ, got 2×3, 2×3 and 2×3"):
        kernels.downdate(a, [a], [a])
    with pytest.raises(ValueError, match="downdate_lower expects a square tile, got one of 2×3"):
        kernels.downdate_lower(a, [])
    with pytest.raises(ValueError, match="downdate_lower expects tiles of 3 rows, got one of 2×3"):
        kernels.downdate_lower(b, [a])
    with pytest.raises(LinAlgError, match="leading minor of order 2 of the tile"):
        kernels.chol(np.array([[1.0, 0.0], [2.0, 1.0]]))


def test_no_blas_kernel_claims_bits_that_do_not_depend_on_threads():
    """Measured with OpenBLAS: one thread and two split the inner loop of a product differently."""
    assert not any(
        kernels.get(name).thread_invariant for name in ("gemm", "gemm_add", "downdate", "chol", "trsm")
    )
