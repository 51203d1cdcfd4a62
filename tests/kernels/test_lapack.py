"""Kernels on whole matrices and stacks of them: NumPy's results, what is declared of them, what errors name."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet import kernels
from linnet.errors import LinAlgError, MatrixError
from linnet.kernels.linalg.pivots import order_of
from linnet.kernels.linalg.whole_matrices import probes

DTYPES = ["f4", "f8", "c8", "c16", "i8", "?"]
lapack = SimpleNamespace(
    **{name[7:]: kernels.get(name) for name in kernels.names() if name.startswith("lapack.")}
)
OPTIONS = {
    "solve_triangular": {"lower": True, "unit": False},
    "power": {"n": 3},
    "pinv": {"relative": 1e-5, "hermitian": False},
    "rank": {"tol": None, "relative": 1e-5, "hermitian": False},
    "cond": {"smallest": False},
    "lstsq": {"relative": 1e-5},
}
ANY_SHAPE = {
    *("qr", "qr_r", "qr_complete", "lu", "lu_parts", "svd", "svd_thin", "svdvals"),
    *("pinv", "rank", "cond", "lstsq"),
}
REGULAR = {"cholesky", "solve", "solve_triangular", "inv"}
TWO = {"solve", "solve_triangular", "lstsq"}


def random(seed, *shape, dtype="f8"):
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(shape)
    if np.dtype(dtype).kind in "ib":
        return np.rint(3 * made).astype(dtype)
    return (made + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else made).astype(dtype)


def operands(name, batch, m, n, dtype):
    """What a kernel takes: matrices it does not refuse."""
    n = n if name in ANY_SHAPE else m
    a = random(m + n, *batch, m, n, dtype=dtype)
    if name in REGULAR:
        a = (a @ a.conj().swapaxes(-1, -2) + 40 * np.eye(m, dtype=int)).astype(dtype)
    if name in TWO:
        return [a, random(1, *batch, m, 2, dtype=dtype)]
    return [a]


def close(dtype, size):
    return 1000 * size * float(np.finfo(dtype).eps)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(vars(lapack))),
    st.sampled_from([(), (2,), (0,), (2, 3)]),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(DTYPES),
)
def test_results_are_what_is_declared(name, batch, m, n, dtype):
    if np.dtype(dtype).kind == "b" and name in {*REGULAR, "power"}:
        dtype = "i8"
    kernel, tiles = getattr(lapack, name), operands(name, batch, m, n, dtype)
    starts, options = (0,) * len(batch), OPTIONS.get(name, {})
    before = [each.copy() for each in tiles]
    found = kernel(*tiles, *starts, **options)
    shapes = kernel.shape(*(each.shape for each in tiles), *starts, **options)
    dtypes = kernel.dtype(*(each.dtype for each in tiles), *starts, **options)
    several = found if kernel.outputs > 1 else (found,)
    assert len(several) == kernel.outputs
    for each, shape, kind in zip(
        several,
        shapes if kernel.outputs > 1 else (shapes,),
        dtypes if kernel.outputs > 1 else (dtypes,),
        strict=True,
    ):
        assert (np.shape(each), each.dtype) == (shape, kind)
    assert all(np.array_equal(each, known) for each, known in zip(tiles, before, strict=True))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_results_are_numpys(batch, dtype):
    starts, near = (0,) * len(batch), close(dtype, 7)
    a, tall = random(0, *batch, 5, 5, dtype=dtype), random(1, *batch, 7, 4, dtype=dtype)
    spd = (a @ a.conj().swapaxes(-1, -2) + 5 * np.eye(5)).astype(dtype)
    b = random(2, *batch, 5, 3, dtype=dtype)

    def agree(found, expected):
        assert np.allclose(found, expected, rtol=near, atol=near)

    agree(lapack.cholesky(spd, *starts), np.linalg.cholesky(spd))
    for kernel in (lapack.qr, lapack.qr_complete):
        q, r = kernel(tall, *starts)
        agree(q @ r, tall)
        agree(
            q.conj().swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*batch, *q.shape[-1:] * 2))
        )
    agree(np.abs(lapack.qr_r(tall, *starts)), np.abs(np.linalg.qr(tall, "r")))
    agree(lapack.solve(spd, b, *starts)[0], np.linalg.solve(spd, b))
    agree(lapack.inv(spd, *starts)[0], np.linalg.inv(spd))
    order, lower, upper = lapack.lu_parts(tall, *starts)
    agree(lower @ upper, np.take_along_axis(tall, order[..., None], axis=-2))
    limit = 10 * float(np.finfo(dtype).eps)
    agree(lapack.pinv(tall, *starts, relative=limit, hermitian=False), np.linalg.pinv(tall))
    agree(lapack.pinv(spd, *starts, relative=limit, hermitian=True), np.linalg.pinv(spd))
    flat = tall[..., :2] @ tall[..., :2, :]
    rank = lapack.rank(flat, *starts, tol=None, relative=limit, hermitian=False)
    assert np.array_equal(rank[..., 0], np.linalg.matrix_rank(flat))
    agree(lapack.cond(tall, *starts, smallest=False)[..., 0], np.linalg.cond(tall))
    agree(lapack.cond(tall, *starts, smallest=True)[..., 0], np.linalg.cond(tall, -2))
    agree(lapack.lstsq(spd, b, *starts, relative=limit)[0], np.linalg.solve(spd, b))
    agree(lapack.det(spd / 8, *starts)[..., 0], np.linalg.det(spd / 8))
    for mine, theirs in zip(lapack.slogdet(spd, *starts), np.linalg.slogdet(spd), strict=True):
        agree(mine[..., 0], theirs)
    agree(lapack.power(a / 4, *starts, n=5), np.linalg.matrix_power(a / 4, 5))
    for kernel, k in ((lapack.svd, 7), (lapack.svd_thin, 4)):
        u, s, vh = kernel(tall, *starts)  # vectors are rows
        assert u.shape[-2] == k
        agree((u[..., :4, :].swapaxes(-1, -2) * s[..., None, :]) @ vh, tall)
    agree(lapack.svdvals(tall, *starts), np.linalg.svdvals(tall))
    w, rows = lapack.eigh(spd, *starts)
    z = rows.swapaxes(-1, -2)
    agree(spd @ z, z * w[..., None, :])
    agree(lapack.eigvalsh(spd, *starts), w)
    w, z = lapack.eig(a, *starts)
    assert w.dtype.kind == "c"
    agree(a @ z, z * w[..., None, :])
    for found, expected in zip(
        np.reshape(lapack.eigvals(a, *starts), (-1, 5)), np.reshape(w, (-1, 5)), strict=True
    ):
        agree(np.sort_complex(found), np.sort_complex(expected))


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(["f4", "f8", "c8", "c16"]), st.integers(0, 9))
def test_elimination_and_its_exchanges(m, n, dtype, seed):
    a = random(seed, m, n, dtype=dtype)
    packed, piv, p = lapack.lu(a)
    k = min(m, n)
    lower = np.tril(packed[:, :k], -1) + np.eye(m, k)
    assert np.allclose(a[p], lower @ np.triu(packed[:k]), atol=close(dtype, 9))
    assert np.array_equal(order_of(piv, [np.arange(m)], 0)[0], p)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles(lower, unit):
    a, b = random(0, 3, 5, 5) + 5 * np.eye(5), random(1, 3, 5, 2)
    half = np.tril(a) if lower else np.triu(a)
    if unit:
        half = half - half * np.eye(5) + np.eye(5)
    found = lapack.solve_triangular(a, b, 0, lower=lower, unit=unit)
    assert np.allclose(half @ found, b)


def test_determinants_in_range_overflow_nowhere():
    a = np.diag([1e200, 1e200, 1e-200, 1e-200])
    stack = np.stack([a, np.eye(4), np.zeros((4, 4)), a[::-1]])
    assert np.allclose(lapack.det(stack, 0), [[1], [1], [0], [1]])
    assert lapack.det(np.eye(3) * 1e200) == np.inf
    assert lapack.det(np.zeros((0, 0))) == 1


def test_integers_stay_integers_in_powers():
    a = np.array([[1, 1], [1, 0]])
    assert lapack.power(a, n=50)[0, 1] == 12586269025
    assert lapack.power(a, n=50).dtype == a.dtype


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_a_bad_condition_is_told(dtype):
    digits = -np.log10(float(np.finfo(dtype).eps))
    q = np.linalg.qr(random(0, 12, 12, dtype=dtype))[0]
    for lost, told in ((digits - 3, False), (digits + 3, True)):
        values = np.ones(12)
        values[-1] = 10.0**-lost
        a = ((q * values) @ q.conj().T).astype(dtype)
        _, condition = lapack.solve(a, np.ones((12, 1), dtype))
        assert (condition[0] != 0) is np.bool_(told)


def test_probes_are_the_same_for_every_matrix_of_a_size():
    assert np.array_equal(probes(7, np.dtype("f8")), probes(7, np.dtype("f8")))
    assert probes(7, np.dtype("c8")).dtype == np.complex64


def test_errors_name_the_matrix_of_the_stack_and_the_minor():
    good = np.eye(4)
    bad = good.copy()
    bad[2, 2] = -1
    with pytest.raises(MatrixError) as caught:
        lapack.cholesky(bad)
    assert str(caught.value) == (
        "the matrix is not positive definite: its leading minor of order 3 is not positive (tile L[0, 0])"
    )
    with pytest.raises(
        MatrixError, match=r"^matrix \(5,\) of the stack: the matrix is not positive definite"
    ):
        lapack.cholesky(np.stack([good, bad]), 4)  # a tile that begins with the fifth matrix
    bad[2, 2] = 0
    with pytest.raises(
        MatrixError,
        match=r"^matrix \(2, 1\) of the stack: the matrix is singular: after row exchanges, its leading "
        r"minor of order 3 is zero \(row 2 of tile \(0, 0\)\)$",
    ):
        lapack.solve(np.stack([good, bad])[None], np.ones((1, 2, 4, 1)), 2, 0)
    with pytest.raises(MatrixError, match=r"^the matrix is singular: its leading minor of order 3 is zero"):
        lapack.solve_triangular(bad, np.ones((4, 1)), lower=True, unit=False)
    assert issubclass(MatrixError, LinAlgError)


@pytest.mark.parametrize("name", ["svd", "svd_thin", "svdvals", "eig", "eigvals"])
def test_numbers_that_are_none_are_asked_about(name):
    with pytest.raises(MatrixError, match=r"; is every element of the matrix finite\?$"):
        getattr(lapack, name)(np.full((3, 3), np.nan))


# ---- the condition of small systems


@pytest.mark.parametrize("rows", [7, 64, 65, 90])
@pytest.mark.parametrize("char", "fdFD")
def test_what_is_solved_does_not_change_the_condition(char, rows):
    """Right sides, however large, are no sign of a matrix that is nearly singular."""
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((rows, rows)).astype(char) + rows * np.eye(rows, dtype=char)
    solve = lapack.solve.function
    for size in (1e-30, 1.0, 1e15, 1e30):
        b = (rng.standard_normal((rows, 3)) * size).astype(char)
        x, condition = solve(a, b)
        assert condition == 0
        assert x.flags.c_contiguous
        assert x.dtype == a.dtype
        assert np.allclose(a @ x / size, b / size, atol=1e-3 if char in "fF" else 1e-10)
    nearly = a.copy()
    nearly[:, 0] = nearly[:, 1] * (1 + np.finfo(char).eps)
    for size in (1e-30, 1e30):
        try:
            _, condition = solve(nearly, np.full((rows, 3), size, char))
        except LinAlgError:
            continue  # a pivot is zero
        assert condition > 0


@pytest.mark.parametrize("rows", [1, 10, 64, 65, 200])
@pytest.mark.parametrize("char", "fdFD")
def test_inverses_are_numpys(char, rows):
    a = np.random.default_rng(rows).standard_normal((rows, rows)).astype(char) + rows * np.eye(
        rows, dtype=char
    )
    for matrix in (a, np.asfortranarray(a), a[::-1]):
        found, condition = lapack.inv.function(matrix)
        assert condition == 0
        assert found.dtype == a.dtype
        assert np.allclose(found, np.linalg.inv(matrix), atol=1e-5 if char in "fF" else 1e-12)
