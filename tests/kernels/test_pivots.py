"""Kernels around pivots one by one, against NumPy and brute force."""

from __future__ import annotations

import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet import kernels
from linnet.errors import MatrixError
from linnet.kernels.linalg import pivots
from linnet.kernels.linalg.norms import squares
from linnet.kernels.linalg.pivots import (
    check_pivots,
    columns_of,
    condition_of,
    determinant,
    diagonal_of,
    doubtful,
    exchanged,
    is_odd,
    judge_pivots,
    log_determinant,
    order_of,
    product,
    row_numbers,
    rows_beside,
    whole_tile,
)
from linnet.kernels.linalg.whole_matrices import probes

ALL = [name for name in kernels.names() if kernels.get(name).function.__module__ == pivots.__name__]


@pytest.mark.parametrize("name", ALL)
def test_docstring_examples(name):
    function = kernels.get(name).function
    examples = doctest.DocTestFinder().find(function, name, globs=dict(function.__globals__))
    assert any(example.examples for example in examples)
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0


def cut(a, tile):
    return [a[i : i + tile] for i in range(0, len(a), tile)]


# ---- rows


@settings(max_examples=60)
@given(st.integers(1, 12).flatmap(lambda m: st.permutations(range(m))), st.integers(1, 5), st.data())
def test_exchanges_lead_to_the_order_they_were_made_from(order, tile, data):
    order = np.array(order)
    count = data.draw(st.integers(0, len(order)))
    reached, piv = exchanged(cut(order, tile), count)
    rows = list(range(len(order)))
    for i, j in enumerate(piv):  # as LAPACK does it
        rows[i], rows[j] = rows[j], rows[i]
    assert np.array_equal(np.concatenate(reached), rows)
    assert rows[:count] == order[:count].tolist()
    assert all(j >= i for i, j in enumerate(piv))
    there = order_of(piv, reached, 0)
    assert [len(each) for each in there] == [len(each) for each in reached]
    assert np.array_equal(np.concatenate(there), rows)
    back = np.concatenate(order_of(piv, reached, 1))
    assert np.array_equal(np.array(rows)[back], np.arange(len(order)))


@pytest.mark.parametrize("m", range(1, 6))
def test_odd_permutations_by_brute_force(m):
    for order in itertools.permutations(range(m)):
        inversions = sum(order[i] > order[j] for i in range(m) for j in range(i + 1, m))
        given_ = np.array(order)
        assert is_odd(given_) is (inversions % 2 == 1)
        assert np.array_equal(given_, order)


def test_numbers_of_rows():
    assert row_numbers(4, 3).tolist() == [4, 5, 6]
    assert row_numbers.shape(4, 3) == (3,)
    assert row_numbers(4, 0).shape == (0,)


# ---- refusals


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([0.0, 1.0, -2.0, np.nan]), min_size=1, max_size=12),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_first_zero_is_named(values, tile, exchanges):
    pieces = cut(np.array(values), tile)
    if 0.0 not in values:
        assert check_pivots(pieces).tolist() == judge_pivots(pieces, 1, np.zeros(1)).tolist() == [0.0]
        return
    first = values.index(0.0)
    assert (
        judge_pivots(pieces, 0, np.zeros(1)).tolist() == judge_pivots(pieces, 1, np.ones(1)).tolist() == [1.0]
    )
    with pytest.raises(MatrixError) as caught:
        check_pivots(pieces, exchanges=exchanges, stack=(3, 1))
    assert str(caught.value) == (
        f"matrix (3, 1) of the stack: the matrix is singular: {'after row exchanges, ' if exchanges else ''}"
        f"its leading minor of order {first + 1} is zero (row {first % tile} of tile ({first // tile}, "
        f"{first // tile}))"
    )


def test_pivots_in_doubt():
    assert doubtful([np.array([16.0]), np.array([1.0])], 16).tolist() == [0.0]
    assert doubtful([np.array([16.5])], 16).tolist() == [1.0]
    assert doubtful([np.array([np.inf])], 16).tolist() == [1.0]
    assert doubtful([], 16).tolist() == [0.0]


# ---- condition


@settings(max_examples=40)
@given(
    st.integers(2, 20), st.integers(1, 7), st.sampled_from(["f4", "f8", "c8", "c16"]), st.integers(-100, 100),
    st.integers(0, 99),
)  # fmt: skip
def test_the_condition_is_told_where_no_digit_is_right(n, tile, dtype, exponent, seed):
    rng = np.random.default_rng(seed)
    scale = 2.0 ** (exponent if dtype in ("f8", "c16") else exponent // 4)
    values = np.ones(n)
    digits = -np.log10(float(np.finfo(dtype).eps))
    for lost, told in ((digits - 3, False), (digits + 3, True)):
        values[-1] = 10.0**-lost
        a = np.diag(scale * rng.permutation(values)).astype(dtype)
        wide = np.result_type(dtype, "f8")
        solved = cut(np.linalg.solve(a.astype(wide), probes(n, np.dtype(dtype))).astype(dtype), tile)
        sizes = [[squares(each[:, i : i + tile]) for i in range(0, n, tile)] for each in cut(a, tile)]
        found = condition_of(cut(a.diagonal(), tile), solved, sizes, np.zeros(1))[0]
        assert (found != 0) is np.bool_(told)
        if told:  # about: an estimate
            assert 1e-3 <= found / 10.0**lost <= 1e3


def test_a_singular_matrix_has_an_infinite_condition_and_nonsense_has_none():
    one = [[squares(np.eye(2))]]
    assert condition_of([np.ones(2)], [np.ones((2, 2))], one, np.ones(1)).tolist() == [np.inf]
    nonsense = [[squares(np.full((2, 2), np.nan))]]
    found = condition_of([np.full(2, np.nan)], [np.full((2, 2), np.nan)], nonsense, np.zeros(1))
    assert found.tolist() == [0.0]


# ---- tiles


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 4), st.sampled_from("CF"))
def test_tiles_side_by_side_and_apart_again(rows, columns, more, order):
    rng = np.random.default_rng(rows)
    a, b = np.array(rng.standard_normal((rows, columns)), order=order), rng.standard_normal((rows, more + 1))
    both = rows_beside(a, b)
    assert both.flags.c_contiguous
    assert np.array_equal(both, np.hstack([a, b]))
    assert rows_beside.shape(a.shape, b.shape) == both.shape
    left, right = columns_of(both, 0, -(more + 1)), columns_of(both, -(more + 1), 0)
    assert np.array_equal(left, a)
    assert np.array_equal(right, b)
    assert columns_of.shape(both.shape, 0, -(more + 1)) == left.shape
    assert columns_of.shape(both.shape, -(more + 1), 0) == right.shape
    place = np.empty(left.shape)
    assert columns_of(both, 0, -(more + 1), into=place) is place
    assert np.array_equal(place, a)


@settings(max_examples=30)
@given(st.integers(1, 6), st.sampled_from(["f4", "f8", "c8", "c16"]))
def test_a_hermitian_tile_from_its_lower_triangle(n, dtype):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype.startswith("c") else 0)
    whole = (x + x.conj().T).astype(dtype)
    spoiled = whole.copy()
    spoiled[np.triu_indices(n, 1)] = np.nan
    found = whole_tile(spoiled)
    assert found.dtype == dtype
    assert np.array_equal(found, whole)
    if np.dtype(dtype).kind == "c":  # what a diagonal has besides real numbers is not read
        spoiled[np.diag_indices(n)] += 1j
        assert np.array_equal(whole_tile(spoiled), whole)


# ---- determinants


@settings(max_examples=40)
@given(
    st.integers(1, 9).flatmap(lambda m: st.permutations(range(m))),
    st.integers(1, 4),
    st.sampled_from(["f4", "f8", "c8", "c16"]),
    st.integers(0, 99),
)
def test_determinants_of_triangles_with_exchanged_rows(order, tile, dtype, seed):
    rng = np.random.default_rng(seed)
    n = len(order)
    real = rng.uniform(0.5, 2, n) * rng.choice([-1, 1], n)
    diagonal = (real * np.exp(1j * rng.uniform(0, 6, n)) if dtype.startswith("c") else real).astype(dtype)
    upper = np.diag(diagonal) + np.triu(rng.standard_normal((n, n)), 1)
    a = np.empty((n, n), upper.dtype)
    a[list(order)] = upper  # so that a[order] is the triangle
    pieces, orders = cut(np.diagonal(upper).astype(dtype), tile), cut(np.array(order), tile)
    near = 100 * n * float(np.finfo(dtype).eps)
    found = determinant(pieces, orders)
    assert (found.shape, found.dtype) == ((1,), np.dtype(dtype))
    assert np.allclose(found[0], np.linalg.det(a), rtol=near)
    sign, size = log_determinant(pieces, orders)
    expected = np.linalg.slogdet(a)
    assert np.allclose(sign[0], expected.sign, rtol=near, atol=near)
    assert np.allclose(size[0], expected.logabsdet, rtol=near, atol=near)
    assert size.dtype == np.zeros(0, dtype).real.dtype


def test_determinants_of_singular_and_of_scaled_pivots():
    order = [np.arange(3)]
    assert determinant([np.array([1.0, 0.0, 2.0])], order).tolist() == [0.0]
    sign, size = log_determinant([np.array([1.0, 0.0, 2.0])], order)
    assert (sign[0], size[0]) == (0.0, -np.inf)
    assert np.isclose(determinant([np.array([1e200, 1e200]), np.array([1e-300])], order)[0], 1e100)
    assert np.isinf(determinant([np.array([1e200, 1e200]), np.array([1.0])], order)[0])
    assert np.isnan(determinant([np.array([1.0, np.nan, 2.0])], order)[0])
    assert np.isclose(product(np.array([1e200j, 1e200j, 1e-200, 1e-200])), -1.0)


def test_diagonals_are_of_their_own():
    tile = np.arange(6.0).reshape(2, 3)
    found = diagonal_of(tile)
    assert found.tolist() == [0.0, 4.0]
    assert not np.shares_memory(found, tile)
    assert diagonal_of.shape((2, 3)) == (2,)
