"""The elements of an array in one line, in row-major order: `x.flat`, and their bytes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from linnet.arrays.elements.assignment import setitem
from linnet.arrays.elements.computed_indices import known
from linnet.arrays.elements.core import ArrayBase, as_node, wrap
from linnet.arrays.elements.roll_and_flip import resize
from linnet.arrays.elements.shapes import ravel, reshape
from linnet.arrays.elements.take_and_put import put
from linnet.arrays.expression.builders import recut
from linnet.arrays.lowering.evaluate import computed


class Flat:
    """The elements of an array in one line; what is assigned goes into the array.

    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(6).reshape(2, 3), chunks=2)
    >>> x.flat[4] = 40
    >>> x.flat[1::3].compute()
    array([ 1, 40])
    """

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base: Any = base
        """The array."""

    def __len__(self) -> int:
        return math.prod(self.base.shape)

    def __iter__(self) -> Iterator[Any]:
        """The elements as NumPy's numbers, computed tile by tile."""
        line = ravel(self.base)
        edges = line.__node__.layout.boundaries[0]
        for start, stop in itertools.pairwise(edges):
            (values,) = computed([line[start:stop].__node__])
            yield from values

    def __getitem__(self, key: Any) -> Any:
        return ravel(self.base)[_checked(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Values are taken again from the beginning where there are too few."""
        key, size = _checked(key), len(self)
        if isinstance(key, slice):
            self._set_slice(range(*key.indices(size)), value)
            return
        if isinstance(key, ArrayBase | np.ndarray | list):
            key = known(key)
            key = np.flatnonzero(_whole_mask(key, size)) if key.dtype == bool else key
        values = known(value).reshape(-1)
        if not np.ndim(key) and values.size != 1:
            raise ValueError(f"one element takes one value; {values.size} were given")
        put(self.base, key, values)

    def _set_slice(self, span: range, value: Any) -> None:
        base, values = self.base, ravel(wrap(as_node(value)))
        if not len(span) or not values.shape[0]:
            return
        line = ravel(base)
        repeated = values if values.shape[0] in (1, len(span)) else resize(values, (len(span),))
        stop = span.stop if span.stop >= 0 else None
        setitem(line, slice(span.start, stop, span.step), repeated)
        made = reshape(line, base.shape).__node__
        base._node = recut(made, base.__node__.layout)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(ravel(self.base), dtype)

    def copy(self) -> Any:
        """The elements as an array with one axis."""
        return ravel(self.base).copy()


def _checked(key: Any) -> Any:
    if isinstance(key, tuple):
        if len(key) != 1:
            raise IndexError("unsupported iterator index: flat has one axis; give one index")
        (key,) = key
    if key is Ellipsis:
        return slice(None)
    if key is None:
        raise IndexError("unsupported iterator index: flat takes no new axes")
    return key


def _whole_mask(mask: Any, size: int) -> Any:
    if mask.shape != (size,):
        raise IndexError(f"boolean index of shape {mask.shape} did not match flat, which has {size} elements")
    return mask


def _get_flat(self: Any) -> Flat:
    """The elements in one line, in row-major order."""
    return Flat(self)


def _set_flat(self: Any, value: Any) -> None:
    Flat(self)[:] = value


def _tobytes(self: Any, order: Any = "C") -> bytes:
    """The bytes of all elements, in one place."""
    return np.asarray(self).tobytes(order)


def _tofile(self: Any, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file, in row-major order and without a header; as text, if `sep` is given.

    They are brought together first, under a budget in a file. `ln.to_npy` writes tile by tile.
    """
    np.asarray(self).tofile(fid, sep, format)


METHODS: dict[str, Any] = {"flat": property(_get_flat, _set_flat), "tobytes": _tobytes, "tofile": _tofile}
__all__: list[str] = []
