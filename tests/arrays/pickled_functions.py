"""Functions that pickles name: they are found where this module can be imported."""

from __future__ import annotations

from typing import Any

import numpy as np

import linnet as ln


def doubled(tile: Any) -> Any:
    return 2 * tile


def shifted(tile: Any, by: Any, *, scale: float = 1.0) -> Any:
    return tile * scale + by


def numbered(tile: Any, block_id: tuple[int, ...]) -> Any:
    return tile + block_id[0]


def smoothed(tile: Any) -> Any:
    return (np.roll(tile, 1, 0) + tile + np.roll(tile, -1, 0)) / 3


def extremes(tile: Any) -> Any:
    return tile.min(-1), tile.max(-1)


def larger(a: float, b: float) -> float:
    return a if a > b else b


@ln.tile_program
def cholesky(A: ln.In, O: ln.Out(fill=0), S: ln.Temp("A"), N: int):
    for i in range(N):
        O[i, i] = chol(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = trsm(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = syrk(S[i, j, k], O[j, i], O[k, i])
