"""Fourier transforms against NumPy's, in one tile and in many."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import tiled

import linnet as ln
from linnet.arrays.expression import chunking

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((6, 9, 4))
COMPLEX = REAL + 1j * RNG.standard_normal((6, 9, 4))
ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO_AXES = ("fft2", "ifft2", "rfft2", "irfft2")
MANY_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
CHUNKS = (-1, 4, (2, 3, 1), 1)


def given(name):
    return REAL if name in ("rfft", "ihfft", "rfft2", "rfftn") else COMPLEX


def agree(name, array, chunks, *args, **kwargs):
    x = tiled(array, chunks)
    expected = getattr(np.fft, name)(array, *args, **kwargs)
    for made in (getattr(ln.fft, name)(x, *args, **kwargs), getattr(np.fft, name)(x, *args, **kwargs)):
        assert isinstance(made, ln.Array)
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
        assert np.allclose(made.compute(), expected, rtol=1e-5, atol=1e-5 * max(1, abs(expected).max()))
    return expected


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", ONE_AXIS)
def test_along_one_axis(name, chunks):
    for n in (None, 3, 12):
        for axis in (-1, 0, 1):
            agree(name, given(name), chunks, n=n, axis=axis)
    for norm in ("backward", "ortho", "forward"):
        agree(name, given(name), chunks, norm=norm)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", TWO_AXES + MANY_AXES)
def test_along_several_axes(name, chunks):
    agree(name, given(name), chunks)
    agree(name, given(name), chunks, axes=(1, 0), norm="ortho")
    agree(name, given(name), chunks, s=(5, 8), axes=(0, 1))


@pytest.mark.parametrize("chunks", [-1, 1])
@pytest.mark.parametrize("dtype", ["?", "i2", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_dtypes(name, dtype, chunks):
    array = (REAL[:, 0, 0] * 4).astype(dtype)
    if name == "rfft" and array.dtype.kind == "c":
        with pytest.raises(TypeError):
            np.fft.rfft(tiled(array, chunks))
        return
    agree(name, array, chunks)


@pytest.mark.parametrize("length", [256, 400, 1024, 1000, 509])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
def test_vectors_longer_than_a_tile(monkeypatch, length, name):
    monkeypatch.setattr(chunking, "TARGET", 1024)
    array = RNG.standard_normal(length)
    if name != "rfft":
        array = array + 1j * RNG.standard_normal(length)
    for norm in (None, "ortho"):
        expected = agree(name, array, 64, norm=norm)
        got = getattr(np.fft, name)(tiled(array, 64), norm=norm).compute()
        assert np.linalg.norm(got - expected) < 1e-13 * np.linalg.norm(expected)
    agree(name, np.stack([array] * 3), (1, 64), axis=1)
    agree(name, np.stack([array] * 3).T, (64, 2), axis=0)


def test_there_and_back():
    x = tiled(REAL, 2)
    assert np.allclose(ln.fft.ifft(ln.fft.fft(x)).compute(), REAL)
    assert np.allclose(ln.fft.irfft(ln.fft.rfft(x, axis=1), n=9, axis=1).compute(), REAL)
    assert np.allclose(ln.fft.irfftn(ln.fft.rfftn(x), s=REAL.shape, axes=(0, 1, 2)).compute(), REAL)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name, chunks):
    for axes in (None, 1, (0, 2), (-1,)):
        assert np.array_equal(
            getattr(ln.fft, name)(tiled(REAL, chunks), axes=axes).compute(), getattr(np.fft, name)(REAL, axes)
        )


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name):
    for n, d in ((7, 1.0), (8, 0.25), (1, 2.0)):
        assert np.array_equal(getattr(ln.fft, name)(n, d=d).compute(), getattr(np.fft, name)(n, d))
    assert getattr(ln.fft, name)(8, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="floats"):
        getattr(ln.fft, name)(8, dtype=np.int64)


@pytest.mark.parametrize("chunks", [-1, 1])
class TestRefusals:
    def test_numbers_of_points(self, chunks):
        x = tiled(REAL, chunks)
        for n in (0, -3):
            with pytest.raises(ValueError, match="(?i)invalid number of .*data points"):
                ln.fft.fft(x, n=n)

    def test_axes(self, chunks):
        x = tiled(REAL, chunks)
        with pytest.raises(IndexError):
            np.fft.fft(x, axis=3)
        with pytest.raises(ValueError, match="same length|different lengths"):
            np.fft.fftn(x, s=(2, 3), axes=(0,))

    def test_norms(self, chunks):
        with pytest.raises(ValueError, match="norm"):
            np.fft.fft(tiled(REAL, chunks), norm="sideways")
