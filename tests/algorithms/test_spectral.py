"""The public functions against numpy.linalg: stacks, small and large, triangles, ranks, errors."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.algorithms.spectral import eigh, eigvalsh, matrix_rank, svd, svdvals
from linnet.algorithms.stacks import is_small_spectrum
from linnet.engines import Threads
from linnet.errors import InputError, LinAlgError
from linnet.tiles import TiledArray

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("tile", [None, 4])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4, 6), (0, 3, 3), (2, 0, 3)])
def test_stacks(shape, tile):
    a = RNG.standard_normal(shape)
    for full in (False, True):
        u, s, vh = svd(a, full, tile=tile)
        expected = np.linalg.svd(a, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == tuple(each.shape for each in expected)
        assert np.allclose(s, expected[1])
        k = s.shape[-1]
        assert np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
    assert np.allclose(svdvals(a, tile=tile), expected[1])
    assert np.array_equal(
        matrix_rank(a, tile=tile), np.linalg.matrix_rank(a) if 0 not in shape else np.zeros(shape[:-2])
    )
    square = a @ a.swapaxes(-1, -2)
    w, z = eigh(square, tile=tile)
    assert np.allclose(w, np.linalg.eigvalsh(square))
    assert np.allclose(eigvalsh(square, tile=tile), w)
    assert np.allclose(square @ z, z * w[..., None, :])


@pytest.mark.parametrize("tile", [None, 3])
def test_only_the_triangle_that_is_named_is_read(tile):
    a = RNG.standard_normal((7, 7)) + 1j * RNG.standard_normal((7, 7))
    for uplo in "LUlu":
        w, z = eigh(a, uplo, tile=tile)
        expected = np.linalg.eigvalsh(a, uplo.upper())
        half = np.tril(a, -1) if uplo in "Ll" else np.triu(a, 1)
        whole = half + half.conj().T + np.diag(a.diagonal().real)
        assert np.allclose(w, expected)
        assert np.allclose(eigvalsh(a, uplo, tile=tile), expected)
        assert np.allclose(whole @ z, z * w)


def test_tiled_arrays_are_taken_as_they_are():
    a = RNG.standard_normal((9, 9))
    tiled = TiledArray.from_numpy(a, 4)
    assert np.allclose(svdvals(tiled), svdvals(a))
    assert np.allclose(svd(tiled).S, svdvals(a))
    assert np.allclose(eigvalsh(tiled), eigvalsh(a))


def test_what_goes_straight_to_lapack():
    a = np.empty((1100, 1100))
    assert is_small_spectrum(a, None, Threads(2))
    assert is_small_spectrum(a, None, Threads(2, memory="100 MB"))
    assert not is_small_spectrum(a, None, Threads(2, memory="50 MB"))
    assert not is_small_spectrum(a, 128, Threads(2))
    assert not is_small_spectrum(np.empty((3, 2048)), None, Threads(2))


def test_ranks():
    low = RNG.standard_normal((20, 3)) @ RNG.standard_normal((3, 12))
    for tile in (None, 4):
        assert matrix_rank(low, tile=tile) == 3
        assert matrix_rank(low, tol=1e9, tile=tile) == 0
        assert matrix_rank(low, rtol=0.99, tile=tile) == 1
        assert matrix_rank(low.T @ low, hermitian=True, tile=tile) == 3
    assert matrix_rank(np.zeros((4, 4))) == 0
    assert matrix_rank([0, 0]) == 0
    assert matrix_rank([0, 1]) == 1
    assert matrix_rank(np.stack([np.eye(3), np.ones((3, 3))])).tolist() == [3, 1]


def test_what_is_refused():
    with pytest.raises(LinAlgError, match=r"a must be a matrix or a stack of matrices, got .* \(3,\)"):
        svd(np.ones(3))
    with pytest.raises(LinAlgError, match="eigh takes a square matrix, got 2×3"):
        eigh(np.ones((2, 3)))
    with pytest.raises(InputError, match="UPLO='X': say which triangle"):
        eigvalsh(np.eye(2), "X")
    with pytest.raises(InputError, match="tol and rtol are both given"):
        matrix_rank(np.eye(2), tol=1, rtol=1)
    with pytest.raises(LinAlgError, match="finite"):
        svdvals(np.full((3, 3), np.nan))
    with pytest.raises(LinAlgError, match="finite"):
        svdvals(np.full((3, 3), np.nan), tile=1)
