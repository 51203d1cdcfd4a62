"""How large a demonstration this machine can do in seconds."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np

from linnet.engines.worker_blas import blas_threads
from linnet.errors import InputError
from linnet.kernels import syrk
from linnet.tiles import human

_SECONDS = 6.0
_TRIAL = 0.3
_SHARE = 0.5
"""Of the free memory."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """What to run."""

    size: int
    """Rows of the matrix."""
    tile: int
    """Rows of a tile."""

    @property
    def tiles(self) -> int:
        """Tiles along one axis."""
        return -(-self.size // self.tile)

    @property
    def bytes(self) -> int:
        """Memory for the lower halves of the matrix and of its factor, tiles on the diagonal whole."""
        return 8 * self.size * (self.size + self.tile)


def choose(size: int | None, tile: int | None, workers: int, free: int) -> Sizing:
    """The size asked for, or one that takes some seconds and at most half of the free memory.

    >>> choose(1000, None, workers=2, free=10**9)
    Sizing(size=1000, tile=64)
    """
    if size is None:
        by_time = int((3 * _SECONDS * speed(workers)) ** (1 / 3))
        by_memory = int((free * _SHARE / 8) ** 0.5)
        # Whole tiles, and enough rows to be worth factorising, on the smallest machine too.
        size = max(1024, min(by_time, by_memory, 40_000) // 512 * 512)
    sizing = Sizing(size, tile or max(64, min(512, size // 16 // 64 * 64)))
    if sizing.bytes > free:
        raise InputError(
            f"a matrix of {size:,} rows and its factor need {human(sizing.bytes)}, "
            f"and {human(free)} is free; choose a smaller --size"
        )
    return sizing


def speed(workers: int) -> float:
    """Floating-point operations a second that this many threads do together in the commonest kernel.

    All at once, and their mean: what else runs on the machine now will run during the demonstration too.
    """
    tile = np.ones((512, 512), order="F")
    rounds = [0] * workers

    def work(worker: int) -> None:
        until = time.perf_counter() + _TRIAL
        while time.perf_counter() < until:
            syrk(tile, tile, tile)
            rounds[worker] += 1

    with blas_threads(workers=1):
        syrk(tile, tile, tile)  # loads the library
        start = time.perf_counter()
        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(rounds) * 2.0 * 512**3 / (time.perf_counter() - start)
