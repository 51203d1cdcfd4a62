"""NumPy arrays as data: memory that several of them share is written once, mapped files by name.

Slices of one array overlap (`x[1:] - x[:-1]`), windows and broadcast arrays overlap themselves: element by
element they would take more room than the memory they lie in. Where they would, that memory is written, and
the arrays by their place in it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

_PIECE = 1 << 24
"""Bytes that are looked at together for a digest."""

Place = tuple[str, int, tuple[int, ...], tuple[int, ...], str]
"""Of an array in a mapped file: its name, the byte of the first element, shape, strides, dtype."""


def file_of(array: NDArray[Any]) -> Place | None:
    """Where an array lies in a file that the user has mapped; None if it is in memory."""
    base: Any = array
    while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
        base = base.base
    if not isinstance(base, np.memmap) or not isinstance(base.base, mmap.mmap) or base.filename is None:
        return None
    if base.mode == "c":  # what was written to it is in memory alone
        return None
    offset = _address(array) - _address(base) + base.offset
    return os.path.abspath(base.filename), offset, array.shape, array.strides, array.dtype.str


def _address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]


class Memories:
    """Arrays on their way into a pickle."""

    def __init__(self) -> None:
        self._arrays: list[NDArray[Any]] = []
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, array: NDArray[Any]) -> int:
        """The number that an array has among all of them."""
        key = (_address(array), array.shape, array.strides, array.dtype)
        if key not in self._known:
            self._known[key] = len(self._arrays)
            self._arrays.append(np.asarray(array))
        return self._known[key]

    def packed(self) -> list[Any]:
        """What is written: arrays as they are, places in files, and places in arrays of bytes."""
        packed: list[Any] = [file_of(each) if each.size else each for each in self._arrays]
        for group in self._groups([number for number, place in enumerate(packed) if place is None]):
            low = byte_bounds(self._arrays[group[0]])[0]
            high = max(byte_bounds(self._arrays[number])[1] for number in group)
            if high - low >= sum(self._arrays[number].nbytes for number in group):
                for number in group:
                    packed[number] = self._arrays[number]
                continue
            shared = _bytes(self._arrays[group[0]], high - low)
            for number in group:
                each = self._arrays[number]
                packed[number] = (shared, _address(each) - low, each.shape, each.strides, each.dtype.str)
        return packed

    def _groups(self, numbers: Sequence[int]) -> list[list[int]]:
        """Arrays whose memory overlaps, together; that of the first begins first."""
        found: list[list[int]] = []
        end = 0
        for low, high, number in sorted((*byte_bounds(self._arrays[n]), n) for n in numbers):
            if found and low < end:
                found[-1].append(number)
                end = max(end, high)
            else:
                found.append([number])
                end = high
        return found


def _bytes(array: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """So many bytes of memory, from where that of an array begins."""
    first = tuple(slice(0, 1) if stride >= 0 else slice(-1, None) for stride in array.strides)
    corner = array[first].reshape(1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(corner, (size,), (1,), writeable=False)


def opened(packed: Sequence[Any]) -> list[NDArray[Any]]:
    """The arrays that were written."""
    return [each if isinstance(each, np.ndarray) else _opened(each) for each in packed]


def _opened(place: Any) -> NDArray[Any]:
    where, offset, shape, strides, dtype = place
    kind = np.dtype(dtype)
    if not isinstance(where, str):
        found = np.ndarray(shape, kind, where, offset, strides)
        return found if found.flags.aligned else found.copy()
    ends = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    begin = offset + sum(end for end in ends if end < 0)
    size = kind.itemsize + sum(map(abs, ends))
    mapped = np.memmap(where, np.uint8, "r", begin, (size,))
    return np.ndarray(shape, kind, mapped, offset - begin, strides)


def digest(array: NDArray[Any]) -> Any:
    """What tells the elements of arrays apart; of a file, its name and when it was last written."""
    place = file_of(array) if array.size else None
    if place is not None:
        state = os.stat(place[0])
        return (*place, state.st_size, state.st_mtime_ns)
    found = hashlib.blake2b(digest_size=16)
    flat = array.reshape(1) if not array.ndim else array
    rows = max(1, _PIECE * len(flat) // max(1, flat.nbytes))
    for first in range(0, len(flat), rows):
        piece = np.ascontiguousarray(flat[first : first + rows])
        found.update(piece.reshape(-1).view(np.uint8).data)
    return (array.dtype.str, array.shape, found.hexdigest())
