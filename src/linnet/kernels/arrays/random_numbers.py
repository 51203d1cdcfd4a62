"""Random numbers by position: a tile gets the same numbers whoever makes it, however the array is cut.

An array is divided into blocks of a fixed size that depends on its shape alone. Each block has a
generator of its own, seeded with the key of the array and the number of the block, and fills
its elements in order. A tile takes what it needs of the blocks it meets; tiles that are cut
along blocks waste nothing. SFC64 is the fastest of NumPy's generators; its seeding through
`SeedSequence` takes microseconds, which a block of 65,536 numbers makes up for.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import room
from linnet.kernels.registry import kernel

Tile = NDArray[Any]

BLOCK = 1 << 16
"""Elements of a block."""

FILLING = frozenset({"random", "standard_normal", "standard_exponential", "standard_gamma"})
"""Methods that write into an array given as `out=`."""

METHODS = frozenset(
    {
        "beta",
        "binomial",
        "chisquare",
        "exponential",
        "f",
        "gamma",
        "geometric",
        "gumbel",
        "hypergeometric",
        "integers",
        "laplace",
        "logistic",
        "lognormal",
        "logseries",
        "negative_binomial",
        "noncentral_chisquare",
        "noncentral_f",
        "normal",
        "pareto",
        "poisson",
        "power",
        "random",
        "rayleigh",
        "standard_cauchy",
        "standard_exponential",
        "standard_gamma",
        "standard_normal",
        "standard_t",
        "triangular",
        "uniform",
        "vonmises",
        "wald",
        "weibull",
        "zipf",
    }
)
"""Methods of NumPy's generators that fill an array number by number."""


def block_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The blocks of an array: about `BLOCK` elements, as square as the shape allows.

    >>> block_shape((1000, 1000)), block_shape((2_000_000, 50))
    ((256, 256), (1310, 50))
    """
    lengths = [max(1, length) for length in shape]
    room = float(BLOCK)
    for done, axis in enumerate(sorted(range(len(shape)), key=lambda axis: shape[axis])):
        side = max(1, int(room ** (1 / (len(shape) - done)) + 1e-9))
        lengths[axis] = min(lengths[axis], side)
        room = max(1.0, room / lengths[axis])
    return tuple(lengths)


def _tile_shape(key: Any, *numbers: Any, shape: tuple[int, ...], **_: Any) -> tuple[int, ...]:
    return tuple(numbers[1 : 2 * len(shape) : 2])


@kernel(
    "sample",
    shape=_tile_shape,
    dtype=lambda key, *_, dtype, **__: np.dtype(dtype),
    into=True,
    streams=True,
)
def sample(
    key: Tile,
    *arguments: Any,
    method: str,
    shape: tuple[int, ...],
    dtype: str,
    names: tuple[str, ...],
    fixed: tuple[tuple[str, Any], ...] = (),
    into: Tile | None = None,
) -> Tile:
    """A tile of an array of random numbers of this shape.

    `arguments` are start and length along each axis, then a tile for each parameter in `names`,
    that is broadcast against this one (then no block may lie in two tiles: how many numbers an
    element takes depends on its parameters); `fixed` are parameters that are plain values.

    >>> key = np.array([1, 2], np.uint64)
    >>> whole = sample(key, 0, 5, method="random", shape=(5,), dtype="float64", names=())
    >>> np.array_equal(whole[2:4], sample(key, 2, 2, method="random", shape=(5,), dtype="float64", names=()))
    True
    """
    if method not in METHODS:
        raise ValueError(f"sample expects a method of NumPy's generators that draws numbers, got {method!r}")
    rank = len(shape)
    starts, lengths = arguments[0 : 2 * rank : 2], arguments[1 : 2 * rank : 2]
    tiles = dict(zip(names, arguments[2 * rank :], strict=True))
    result = room(lengths, np.dtype(dtype), into)
    block = block_shape(shape)
    grid = [-(-max(n, 1) // b) for n, b in zip(shape, block, strict=True)]
    ranges = [
        range(start // b, -(-(start + length) // b)) if length else range(0)
        for start, length, b in zip(starts, lengths, block, strict=True)
    ]
    entropy = key.tolist()
    for index in itertools.product(*ranges):
        number = 0
        for place, count in zip(index, grid, strict=True):
            number = number * count + place
        source = Generator(SFC64(SeedSequence(entropy, spawn_key=(number,))))
        low = [place * b for place, b in zip(index, block, strict=True)]
        extent = [min(b, n - at) for b, n, at in zip(block, shape, low, strict=True)]
        # The part of the block that is in the tile, counted from each.
        inside = tuple(
            slice(max(at, start) - at, min(at + size, start + length) - at)
            for at, size, start, length in zip(low, extent, starts, lengths, strict=True)
        )
        target = tuple(
            slice(part.start + at - start, part.stop + at - start)
            for part, at, start in zip(inside, low, starts, strict=True)
        )
        _fill(source, method, result[(*target, ...)], extent, inside, target, tiles, dict(fixed))
    return result


def _fill(
    source: Generator,
    method: str,
    place: Tile,
    extent: list[int],
    inside: tuple[slice, ...],
    target: tuple[slice, ...],
    tiles: dict[str, Tile],
    fixed: dict[str, Any],
) -> None:
    """Draw a block and put its part into place; directly, where the whole block is wanted."""
    whole = list(place.shape) == extent
    if whole and method in FILLING and place.flags.c_contiguous and not tiles and place.dtype.kind == "f":
        getattr(source, method)(**fixed, dtype=place.dtype, out=place)
        return
    if not tiles:
        extra = {"dtype": place.dtype} if method in FILLING or method == "integers" else {}
        place[...] = getattr(source, method)(**fixed, size=tuple(extent), **extra)[(*inside, ...)]
        return
    if not whole:
        raise ValueError("parameters that are arrays need tiles that are cut along blocks")
    given = {name: _part(tile, target, place.ndim) for name, tile in tiles.items()}
    place[...] = getattr(source, method)(**fixed, **given, size=place.shape)


def _part(tile: Tile, target: tuple[slice, ...], rank: int) -> Tile:
    """The part of a parameter's tile beside a part of the result."""
    own = target[rank - tile.ndim :]
    return tile[tuple(part if n != 1 else slice(None) for part, n in zip(own, tile.shape, strict=True))]


def seeds(entropy: int, stream: int) -> NDArray[np.uint64]:
    """The key of an array: the generator's entropy and how many arrays came before it.

    >>> seeds(5, 0).dtype
    dtype('uint64')
    """
    count = max(1, math.ceil(entropy.bit_length() / 64))
    words = [(entropy >> shift) & (2**64 - 1) for shift in range(0, count * 64, 64)]
    return np.array([*words, stream], np.uint64)
