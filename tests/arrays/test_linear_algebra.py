"""Every name of `ln.linalg` on arrays in tiles, against NumPy's and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from strategies import tiled

import linnet as ln

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(3)
SQUARE = RNG.standard_normal((7, 7)) + 7 * np.eye(7)
POSITIVE = SQUARE @ SQUARE.T
TALL = RNG.standard_normal((9, 4))
RIGHT = RNG.standard_normal((7, 2))
STACK = RNG.standard_normal((2, 4, 4)) + 4 * np.eye(4)
CHUNKS = pytest.mark.parametrize("chunks", [-1, 3, 1])


def close(made, expected, tolerance=1e-9):
    assert isinstance(made, ln.Array)
    assert made.shape == np.shape(expected)
    assert np.allclose(made.compute(), expected, rtol=tolerance, atol=tolerance)


@CHUNKS
class TestFactors:
    def test_cholesky(self, chunks):
        x = tiled(POSITIVE, chunks)
        close(ln.linalg.cholesky(x), np.linalg.cholesky(POSITIVE))
        close(np.linalg.cholesky(x), np.linalg.cholesky(POSITIVE))
        close(ln.linalg.cholesky(x, upper=True), np.linalg.cholesky(POSITIVE).T)

    def test_qr(self, chunks):
        for array in (TALL, SQUARE, TALL.T):
            q, r = ln.linalg.qr(tiled(array, chunks))
            assert isinstance(q, ln.Array)
            close(q @ r, array)
            close(q.T @ q, np.eye(q.shape[1]))
            assert np.array_equal(np.triu(r).compute(), r.compute())

    def test_lu(self, chunks):
        p, lower, upper = ln.linalg.lu(tiled(SQUARE, chunks))
        close(lower @ upper, SQUARE[np.asarray(p)])
        factors = ln.linalg.lu_factor(tiled(SQUARE, chunks))
        close(ln.linalg.lu_solve(factors, tiled(RIGHT, chunks)), np.linalg.solve(SQUARE, RIGHT))

    def test_cholesky_solve(self, chunks):
        factors = ln.linalg.cho_factor(tiled(POSITIVE, chunks))
        close(ln.linalg.cho_solve(factors, tiled(RIGHT, chunks)), np.linalg.solve(POSITIVE, RIGHT))

    def test_svd(self, chunks):
        for array in (TALL, TALL.T, SQUARE):
            x = tiled(array, chunks)
            u, s, vh = ln.linalg.svd(x, full_matrices=False)
            close((u * s) @ vh, array)
            close(s, np.linalg.svd(array, compute_uv=False))
            close(ln.linalg.svdvals(x), np.linalg.svd(array, compute_uv=False))

    def test_symmetric_eigenvalues(self, chunks):
        x = tiled(POSITIVE, chunks)
        values, vectors = ln.linalg.eigh(x)
        close(values, np.linalg.eigvalsh(POSITIVE))
        close(vectors * values @ vectors.T, POSITIVE)
        close(ln.linalg.eigvalsh(x), np.linalg.eigvalsh(POSITIVE))

    def test_eigenvalues(self, chunks):
        x = tiled(SQUARE, chunks)
        values, vectors = ln.linalg.eig(x)
        close(x @ vectors, (vectors * values).compute())
        expected = np.sort_complex(np.linalg.eigvals(SQUARE))
        assert np.allclose(np.sort_complex(ln.linalg.eigvals(x).compute()), expected)


@CHUNKS
class TestSolutions:
    def test_solve(self, chunks):
        x = tiled(SQUARE, chunks)
        close(ln.linalg.solve(x, tiled(RIGHT, chunks)), np.linalg.solve(SQUARE, RIGHT))
        close(np.linalg.solve(x, RIGHT[:, 0]), np.linalg.solve(SQUARE, RIGHT[:, 0]))
        lower = np.tril(SQUARE)
        made = ln.linalg.solve_triangular(tiled(lower, chunks), tiled(RIGHT, chunks), lower=True)
        close(made, scipy.linalg.solve_triangular(lower, RIGHT, lower=True))

    def test_lstsq(self, chunks):
        b = RNG.standard_normal(9)
        made = ln.linalg.lstsq(tiled(TALL, chunks), tiled(b, chunks))
        close(made[0], np.linalg.lstsq(TALL, b)[0])

    @pytest.mark.parametrize("name", ["inv", "pinv", "det", "cond", "matrix_rank"])
    def test_of_one_matrix(self, chunks, name):
        close(getattr(ln.linalg, name)(tiled(SQUARE, chunks)), getattr(np.linalg, name)(SQUARE), 1e-8)

    def test_slogdet_and_powers(self, chunks):
        sign, size = ln.linalg.slogdet(tiled(SQUARE, chunks))
        close(sign, np.linalg.slogdet(SQUARE)[0])
        close(size, np.linalg.slogdet(SQUARE)[1])
        for n in (0, 1, 3, -2):
            close(ln.linalg.matrix_power(tiled(SQUARE, chunks), n), np.linalg.matrix_power(SQUARE, n), 1e-8)

    @pytest.mark.parametrize(
        "name", ["inv", "det", "svdvals", "eigvalsh", "matrix_transpose", "trace", "diagonal"]
    )
    def test_stacks(self, chunks, name):
        array = STACK + STACK.swapaxes(-1, -2)
        close(getattr(ln.linalg, name)(tiled(array, chunks)), getattr(np.linalg, name)(array), 1e-8)


@CHUNKS
class TestProducts:
    def test_matmul(self, chunks):
        close(ln.linalg.matmul(tiled(TALL, chunks), TALL.T), TALL @ TALL.T)
        close(ln.linalg.matmul(tiled(STACK, chunks), tiled(STACK, chunks)), STACK @ STACK)

    @pytest.mark.parametrize("shapes", [(3, 4), (4, 4, 2), (5, 2, 6, 3)])
    def test_multi_dot(self, chunks, shapes):
        arrays = [RNG.standard_normal(s) for s in zip(shapes, (*shapes[1:], 4), strict=True)]
        for given in (arrays, [arrays[0][0], *arrays[1:]], [*arrays[:-1], arrays[-1][:, 0]]):
            made = ln.linalg.multi_dot([tiled(a, chunks) for a in given])
            close(made, np.linalg.multi_dot(given))

    def test_pairs(self, chunks):
        a, b = TALL[:, :3], TALL[:, 1:]
        x, y = tiled(a, chunks), tiled(b, chunks)
        close(ln.linalg.cross(x, y), np.linalg.cross(a, b))
        close(ln.linalg.vecdot(x, y), np.linalg.vecdot(a, b))
        close(ln.linalg.outer(x[:, 0], y[:, 0]), np.outer(a[:, 0], b[:, 0]))
        close(ln.linalg.tensordot(x, y, axes=((0,), (0,))), np.tensordot(a, b, ((0,), (0,))))


@CHUNKS
class TestNorms:
    @pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
    @pytest.mark.parametrize("order", [None, 1, 2, np.inf, -np.inf])
    def test_of_vectors(self, chunks, order, scale):
        with np.errstate(all="ignore"):
            for axis in (0, 1, -1):
                for keepdims in (False, True):
                    made = np.linalg.norm(tiled(TALL * scale, chunks), order, axis, keepdims)
                    # NumPy's own norm overflows at 1e200: the oracle is scaled.
                    expected = np.linalg.norm(TALL, order, axis, keepdims)
                    close(made / scale, expected)

    @pytest.mark.parametrize("order", [0, 3, 0.5, -1, -2])
    def test_of_vectors_of_other_orders(self, chunks, order):
        close(np.linalg.norm(tiled(TALL, chunks), order, 0), np.linalg.norm(TALL, order, 0))
        close(ln.linalg.vector_norm(tiled(TALL, chunks), ord=order), np.linalg.vector_norm(TALL, ord=order))

    @pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
    def test_of_matrices(self, chunks, order):
        for axis in ((0, 1), (1, 0), (-1, 0)):
            for keepdims in (False, True):
                expected = np.linalg.norm(STACK, order, axis, keepdims)
                close(np.linalg.norm(tiled(STACK, chunks), order, axis, keepdims), expected)
        close(np.linalg.norm(tiled(TALL, chunks), order), np.linalg.norm(TALL, order))
        if order is not None:
            made = ln.linalg.matrix_norm(tiled(STACK, chunks), ord=order)
            close(made, np.linalg.matrix_norm(STACK, ord=order))

    @pytest.mark.parametrize("dtype", ["i4", "?", "f4", "c16"])
    def test_dtypes(self, chunks, dtype):
        array = (TALL * 3).astype(dtype)
        made = np.linalg.norm(tiled(array, chunks), axis=0)
        expected = np.linalg.norm(array, axis=0)
        assert made.dtype == expected.dtype
        close(made, expected, 1e-5)

    def test_of_mixed_and_special_values(self, chunks):
        mixed = np.array([1e-200, 3e-200, 0, 4e-200, 1e-250, 2e-210, 0])
        with np.errstate(all="ignore"):
            made = ln.linalg.vector_norm(tiled(mixed, chunks))
            assert np.isclose(made.compute(), np.sqrt(26) * 1e-200, rtol=1e-12, atol=0)
            for special in (np.inf, np.nan):
                array = np.array([1.0, special, 2.0, 3.0])
                assert np.array_equal(
                    np.linalg.norm(tiled(array, chunks)).compute(), np.linalg.norm(array), True
                )


@CHUNKS
class TestRefusals:
    def test_matrices_that_cannot_be_factored(self, chunks):
        with pytest.raises(np.linalg.LinAlgError):
            ln.linalg.cholesky(tiled(-POSITIVE, chunks)).compute()
        with pytest.raises(np.linalg.LinAlgError):
            ln.linalg.inv(tiled(np.ones((3, 3)), chunks)).compute()
        with pytest.raises(np.linalg.LinAlgError):
            ln.linalg.solve(tiled(np.zeros((3, 3)), chunks), np.ones(3)).compute()

    @pytest.mark.parametrize("name", ["cholesky", "inv", "det", "eigh", "eig"])
    def test_shapes(self, chunks, name):
        with pytest.raises(np.linalg.LinAlgError):
            getattr(ln.linalg, name)(tiled(TALL, chunks))

    def test_norms(self, chunks):
        x = tiled(STACK, chunks)
        with pytest.raises(ValueError, match="order|Invalid"):
            np.linalg.norm(x, "wrong", (0, 1))
        with pytest.raises(ValueError, match="axis|axes|dimensions"):
            np.linalg.norm(x, axis=(0, 1, 2))
        with pytest.raises(ValueError, match="order|dimensions"):
            np.linalg.norm(x, 1)
        with pytest.raises(ValueError, match="fit|shape|dimension"):
            ln.linalg.matmul(x, TALL)
