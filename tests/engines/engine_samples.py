"""Kernels and programs that the tests of the threads engine share."""

from __future__ import annotations

import numpy as np

from linnet import kernels
from linnet.engines import Threads
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.tiles import TiledArray

kernels.kernel("e_identity")(lambda x: x)
kernels.kernel("e_transpose")(lambda x: x.T)
kernels.kernel("e_twins", outputs=2)(lambda x: (lambda y: (y, y))(x + 1))
kernels.kernel("e_short", outputs=2)(lambda x: (x,))
kernels.kernel("e_text")(lambda x: "no tile")
kernels.kernel("e_scalar")(lambda x: x.sum())
kernels.kernel("e_boom")(lambda x: 1 // 0)
kernels.kernel("e_halves")(lambda x: [x[: len(x) // 2], x[len(x) // 2 :]])
kernels.kernel("e_scaled")(lambda x, factor, *, offset=0: factor * x + offset)


@kernel("e_scribble")
def scribble(x):
    x[...] = -1
    return x + 0


@kernel("e_bump", inplace=0, shape=lambda x: x)
def bump(x, *, overwrite=()):
    return np.add(x, 1, out=x if 0 in overwrite else None)


@kernel("e_sum2", inplace=0, shape=lambda x, y: x)
def sum2(x, y, *, overwrite=()):
    if 0 in overwrite:
        x += 1  # shows in y if they are one tile
        x += y
        return x
    return x + 1 + y


def matrix(rows=1, columns=3, tile=1):
    return TiledArray.from_numpy(np.arange(1.0, rows * columns + 1).reshape(rows, columns), tile)


def run(program, inputs, workers=2, events=None, **sizes):
    return Threads(workers).run(program.bind(**sizes), inputs, events=events)


@tile_program
def chains(A: In, B: Out, S: Temp("A"), N: int, M: int):
    for j in range(N):
        for i in range(M):
            S[i + 1, 0, j] = e_bump(S[i, 0, j])
        B[0, j] = copy(S[M, 0, j])


def failing(name, outputs=1):
    source = f"def bad(A: In, {', '.join(f'B{i}: Out' for i in range(outputs))}):\n    "
    source += ", ".join(f"B{i}[0, 0]" for i in range(outputs)) + f" = {name}(A[0, 0])\n"
    return TileProgram.from_source(source)
