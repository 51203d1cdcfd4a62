"""NumPy as the oracle: the same call on NumPy's arrays and on ours gives the same, or the same error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from strategies import tiled

from linnet.arrays.expression import chunking

ERRORS = (TypeError, ValueError, IndexError, RuntimeError, OverflowError)


@contextmanager
def tiles_only() -> Iterator[None]:
    """No array is so small that NumPy computes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking, "SMALL", -1)
        yield


class Pair:
    """An array of NumPy's, and the same in tiles."""

    def __init__(self, array: Any, chunks: Any) -> None:
        self.array = np.asarray(array)
        self.ours = tiled(self.array, chunks)

    def __repr__(self) -> str:
        return f"tiled(np.array({self.array.tolist()}, '{self.array.dtype}'), {self.ours.chunks})"


def _computed(x: Any) -> Any:
    return x.compute() if hasattr(x, "compute") else x


def agree(found: Any, wanted: Any, rtol: float = 1e-10) -> None:
    """The same shapes, dtypes and elements, floats but for the last digits."""
    if isinstance(wanted, tuple | list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            agree(one, other, rtol)
        return
    found, wanted = np.asarray(_computed(found)), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), (
        f"{found.dtype} {found.shape} for {wanted.dtype} {wanted.shape}"
    )
    if wanted.dtype.kind in "fc":
        few = np.finfo(wanted.dtype).eps * 64
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(found, wanted, rtol=max(rtol, few), atol=few * largest)
    else:
        np.testing.assert_array_equal(found, wanted)


def same(function: Any, *arguments: Any, rtol: float = 1e-10, **keywords: Any) -> None:
    """The same shapes, dtypes and elements; where NumPy raises, so do we, at the call."""

    def given(which: str) -> tuple[list[Any], dict[str, Any]]:
        def one(x: Any) -> Any:
            return getattr(x, which) if isinstance(x, Pair) else x

        return [one(x) for x in arguments], {name: one(x) for name, x in keywords.items()}

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        args, kwargs = given("array")
        try:
            wanted = function(*args, **kwargs)
        except (*ERRORS, ZeroDivisionError) as error:
            args, kwargs = given("ours")
            with pytest.raises(
                tuple(kind for kind in (*ERRORS, ZeroDivisionError) if isinstance(error, kind))
            ):
                function(*args, **kwargs)
            return
        args, kwargs = given("ours")
        agree(function(*args, **kwargs), wanted, rtol)
