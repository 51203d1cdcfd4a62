"""Convolution of arrays with several axes against SciPy's, in one tile and in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal

import linnet as ln

SHAPES = [
    ((5,), (3,)),
    ((7, 6), (3, 2)),
    ((7, 6), (1, 1)),
    ((4, 5, 6), (2, 3, 2)),
    ((3, 4), (5, 6)),
    ((30, 31), (25, 26)),
]


def operands(shapes: Any, chunks: Any) -> Any:
    rng = np.random.default_rng(0)
    plain = [rng.normal(size=shape) for shape in shapes]
    return *plain, *(ln.asarray(each, chunks=chunks) for each in plain)


@pytest.mark.parametrize("chunks", [None, 2, 7])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_modes_and_strides(shapes: Any, chunks: Any):
    chunks = 9 if chunks == 2 and shapes[0][0] == 30 else chunks
    a, v, x, y = operands(shapes, chunks)
    for mode in ("full", "same", "valid"):
        whole = np.convolve(a, v, mode) if a.ndim == 1 else signal.convolve(a, v, mode)
        for step in (1, 2, 3):
            wanted = whole[(slice(None, None, step),) * a.ndim]
            found = np.asarray(ln.convolve(x, y, mode, strides=step))
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(whole).max())


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize("padding", [0, 1, 6, (0, 5), ((1, 2), (4, 0))], ids=str)
def test_zeros_around(padding: Any, chunks: Any):
    a, v, x, y = operands(((7, 6), (3, 2)), chunks)
    padded = np.pad(a, np.broadcast_to(padding, (2, 2)))
    for strides in (1, (2, 3)):
        steps = (strides, strides) if isinstance(strides, int) else strides
        wanted = signal.convolve(padded, v, "valid")[:: steps[0], :: steps[1]]
        np.testing.assert_allclose(ln.convolve(x, y, padding=padding, strides=strides), wanted, atol=1e-12)


def test_whole_numbers_and_complex_ones_keep_their_dtype():
    a, v = np.arange(12).reshape(3, 4), np.array([[1, 2], [3, 4]])
    found = ln.convolve(ln.asarray(a, chunks=2), v)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, signal.convolve(a, v, method="direct"))
    np.testing.assert_allclose(ln.convolve(ln.asarray(a * 1j, chunks=2), v), signal.convolve(a * 1j, v))
    assert ln.convolve(ln.asarray(a.astype(np.float32), chunks=2), v.astype(np.float32)).dtype == np.float32


def test_infinities_do_not_spread_further_than_they_reach():
    a = np.zeros((40, 40))
    a[0, 0] = np.inf
    found = np.asarray(ln.convolve(ln.asarray(a, chunks=10), np.ones((26, 26)), "valid"))
    assert np.isinf(found[0, 0])
    assert np.isfinite(found[1:, 1:]).all()


@pytest.mark.parametrize("chunks", [None, 2])
def test_what_means_nothing_is_refused(chunks: Any):
    x = ln.asarray(np.ones((4, 4)), chunks=chunks)

    def refused(error: Any, words: str, *args: Any, **options: Any) -> None:
        with pytest.raises(error, match=words):
            ln.convolve(x, *args, **options)

    refused(ValueError, r"as many axes, not of shapes \(4, 4\) and \(2,\)", np.ones(2))
    refused(
        ValueError,
        r"at least as large as the other in every dimension; these are \(4, 4\)",
        np.ones((5, 2)),
        "valid",
    )
    refused(
        ValueError, r"mode must be one of 'valid', 'same', or 'full' \(got 'half'\)", np.ones((2, 2)), "half"
    )
    refused(ValueError, r"v cannot be empty", np.ones((0, 2)))
    refused(
        ln.InputError,
        r"strides=0 of convolve: one integer, or one for each of 2 axes",
        np.ones((2, 2)),
        strides=0,
    )
    refused(ln.InputError, r"strides=\(1, 2, 3\)", np.ones((2, 2)), strides=(1, 2, 3))
    refused(ln.InputError, r"padding=-1 of convolve: how many zeros around", np.ones((2, 2)), padding=-1)
    refused(
        ln.InputError, r"mode='same' and padding=1; leave one of them out", np.ones((2, 2)), "same", padding=1
    )
    refused(ValueError, r"with padding=0 is smaller than \(5, 5\)", np.ones((5, 5)), padding=0)
