"""The public functions against numpy.linalg: stacks, small and large, triangles, ranks, errors."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.algorithms.tuning import goes_whole
from linnet.errors import InputError, LinAlgError
from linnet.linalg import eigvalsh, svd, svdvals
from linnet.tiles import TiledArray

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("tile", [None, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4, 6), (0, 3, 3), (2, 0, 3)])
def test_stacks(shape, tile, run):
    a = RNG.standard_normal(shape)
    for full in (False, True):
        u, s, vh = run("svd", a, full, tile=tile)
        expected = np.linalg.svd(a, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == tuple(each.shape for each in expected)
        assert np.allclose(s, expected[1])
        k = s.shape[-1]
        assert np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
    assert np.allclose(run("svdvals", a, tile=tile), expected[1])
    assert np.array_equal(
        run("matrix_rank", a, tile=tile), np.linalg.matrix_rank(a) if 0 not in shape else np.zeros(shape[:-2])
    )
    square = a @ a.swapaxes(-1, -2)
    w, z = run("eigh", square, tile=tile)
    assert np.allclose(w, np.linalg.eigvalsh(square))
    assert np.allclose(run("eigvalsh", square, tile=tile), w)
    assert np.allclose(square @ z, z * w[..., None, :])


@pytest.mark.slow
@pytest.mark.parametrize("tile", [None, 3])
def test_only_the_triangle_that_is_named_is_read(tile, run):
    a = RNG.standard_normal((7, 7)) + 1j * RNG.standard_normal((7, 7))
    for uplo in "LUlu":
        w, z = run("eigh", a, uplo, tile=tile)
        expected = np.linalg.eigvalsh(a, uplo.upper())
        half = np.tril(a, -1) if uplo in "Ll" else np.triu(a, 1)
        whole = half + half.conj().T + np.diag(a.diagonal().real)
        assert np.allclose(w, expected)
        assert np.allclose(run("eigvalsh", a, uplo, tile=tile), expected)
        assert np.allclose(whole @ z, z * w)


@pytest.mark.slow
def test_tiled_arrays_are_taken_as_they_are():
    a = RNG.standard_normal((9, 9))
    tiled = TiledArray.from_numpy(a, 4)
    assert np.allclose(svdvals(tiled), svdvals(a))
    assert np.allclose(svd(tiled).S, svdvals(a))
    assert np.allclose(eigvalsh(tiled), eigvalsh(a))


def test_what_goes_straight_to_lapack():
    def whole(shape, memory=None, grid=(1, 1), spectral=True):
        return goes_whole(shape, 8, grid, own=True, spectral=spectral, memory=memory)

    assert whole((1100, 1100))
    assert whole((1100, 1100), 100_000_000)
    assert not whole((1100, 1100), 50_000_000)
    assert not whole((1100, 1100), grid=(2, 2))
    assert not whole((3, 2048))
    assert not whole((1100, 1100), spectral=False)


@pytest.mark.slow
def test_ranks(run):
    low = RNG.standard_normal((20, 3)) @ RNG.standard_normal((3, 12))
    for tile in (None, 4):
        assert run("matrix_rank", low, tile=tile) == 3
        assert run("matrix_rank", low, tol=1e9, tile=tile) == 0
        assert run("matrix_rank", low, rtol=0.99, tile=tile) == 1
        assert run("matrix_rank", low.T @ low, hermitian=True, tile=tile) == 3
    assert run("matrix_rank", np.zeros((4, 4))) == 0
    assert run("matrix_rank", np.array([0, 0])) == 0
    assert run("matrix_rank", np.array([0, 1])) == 1
    assert run("matrix_rank", np.stack([np.eye(3), np.ones((3, 3))])).tolist() == [3, 1]
    assert run("matrix_rank", np.stack([low, low]), rtol=np.array([0.99, 1e-9])).tolist() == [1, 3]


def test_what_is_refused(run):
    with pytest.raises(LinAlgError, match=r"a must be a matrix or a stack of matrices, got .* \(3,\)"):
        run("svd", np.ones(3))
    with pytest.raises(LinAlgError, match="eigh takes a square matrix, got 2×3"):
        run("eigh", np.ones((2, 3)))
    with pytest.raises(InputError, match="UPLO='X': say which triangle"):
        run("eigvalsh", np.eye(2), "X")
    with pytest.raises(InputError, match="tol and rtol are both given"):
        run("matrix_rank", np.eye(2), tol=1, rtol=1)
    with pytest.raises(LinAlgError, match="finite"):
        run("svdvals", np.full((3, 3), np.nan))
    with pytest.raises(LinAlgError, match="finite"):
        run("svdvals", np.full((3, 3), np.nan), tile=1)
