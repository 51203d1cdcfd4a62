"""Arrays of every dtype, with the values that break things, cut in every way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from linnet.arrays.elements.core import recut_as, wrap
from linnet.arrays.expression.nodes import Source

REAL = ("?", "i1", "i4", "i8", "u1", "u2", "u8", "f2", "f4", "f8")
NUMBERS = (*REAL, "c8", "c16")
DATES = ("M8[D]", "m8[s]")
SPECIAL = (0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 3.0, 3.0)


def elements(dtype: Any, special: bool = True, wide: bool = False) -> st.SearchStrategy[Any]:
    """Elements that often are equal, and sometimes NaN or infinite; with `wide` integers of any size."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        few = st.integers(0 if kind == "u" else -5, 5)
        limits = np.iinfo(dtype)
        return st.one_of(few, st.sampled_from([limits.min, limits.max])) if wide else few
    if kind in "mM":
        return st.integers(-5, 5).map(lambda n: np.array(n).astype(dtype)[()])
    tame = st.integers(-40, 40).map(lambda n: n / 8)
    real = st.one_of(tame, st.sampled_from(SPECIAL)) if special else tame
    return real if kind == "f" else st.builds(complex, real, real)


@st.composite
def arrays(
    draw: Any,
    dtypes: Sequence[str] = NUMBERS,
    *,
    min_dims: int = 0,
    max_dims: int = 3,
    min_side: int = 0,
    max_side: int = 6,
    special: bool = True,
    wide: bool = False,
) -> NDArray[Any]:
    """An array of one of these dtypes."""
    dtype = np.dtype(draw(st.sampled_from(list(dtypes))))
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side))
    return draw(hnp.arrays(dtype, shape, elements=elements(dtype, special, wide)))


@st.composite
def chunkings(draw: Any, shape: tuple[int, ...]) -> Any:
    """Tiles along each axis, down to length 1."""
    return tuple(draw(st.integers(1, max(1, n))) for n in shape)


def tiled(array: NDArray[Any], chunks: Any) -> Any:
    """An array of ours, cut as told."""
    return wrap(recut_as(Source(np.asarray(array)), chunks))


@st.composite
def pairs(draw: Any, dtypes: Sequence[str] = NUMBERS, **keywords: Any) -> tuple[NDArray[Any], Any]:
    """A NumPy array, and the same in tiles."""
    array = draw(arrays(dtypes, **keywords))
    return array, tiled(array, draw(chunkings(array.shape)))
