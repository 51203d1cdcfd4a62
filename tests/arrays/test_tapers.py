"""Windows of signal processing: NumPy's to the last bit, in tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln

WINDOWS = [(name, ()) for name in ("bartlett", "blackman", "hamming", "hanning")]
WINDOWS += [("kaiser", (beta,)) for beta in (0, 5.0, 14)]


@pytest.mark.parametrize(("name", "arguments"), WINDOWS)
@pytest.mark.parametrize("length", [-1, 0, 1, 2, 7, 1000])
def test_windows(name: str, arguments: tuple[Any, ...], length: int) -> None:
    want = getattr(np, name)(length, *arguments)
    for chunks in ("auto", max(1, length // 3)):
        got = getattr(ln, name)(length, *arguments, chunks=chunks)
        assert isinstance(got, ln.Array)
        assert got.dtype == want.dtype
        assert np.array_equal(got.compute(), want)
