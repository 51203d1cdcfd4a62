"""Cholesky factorisation, in two orders, one of them also with a look ahead.

Right-looking, as in the textbook: factor a diagonal tile, solve its column, update what is
left. Left-looking: bring a column up to date with all columns to its left, in one task a
tile, then factor and solve it; every tile is written once and the rest of the matrix is not
touched, so nothing but the factor is kept. Where a matrix lies in memory in one piece, that is done
in two steps: with all columns but the last, which workers do ahead while that one is not ready.
"""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from linnet.algorithms.recipe import Output, Recipe, changed
from linnet.kernels import chol, downdate, downdate_lower, syrk, trsm
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.programs.grammar import Binary, Int, Range, Run
from linnet.session.work import Setting
from linnet.tiles import Layout


@tile_program(verify=False)
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = chol(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = trsm(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = syrk(S[i, j, k], O[j, i], O[k, i])


@tile_program(verify=False)
def left_looking(A: In, O: Out(fill=0), U: Temp, N: int):
    for i in range(N):
        U[i, i] = downdate_lower(A[i, i], O[i, 0:i])
        O[i, i] = chol(U[i, i])
        for j in range(i + 1, N):
            U[j, i] = downdate(A[j, i], O[j, 0:i], O[i, 0:i])
            O[j, i] = trsm(O[i, i], U[j, i])


@tile_program(verify=False)
def looking_ahead(A: In, O: Out(fill=0), E: Temp, U: Temp, N: int):
    """Left-looking, in two steps."""
    for i in range(N):
        E[i, i] = downdate_lower(A[i, i], O[i, 0 : max(i - 1, 0)])
        U[i, i] = downdate_lower(E[i, i], O[i, max(i - 1, 0) : i])
        O[i, i] = chol(U[i, i])
        for j in range(i + 1, N):
            E[j, i] = downdate(A[j, i], O[j, 0 : max(i - 1, 0)], O[i, 0 : max(i - 1, 0)])
            U[j, i] = downdate(E[j, i], O[j, max(i - 1, 0) : i], O[i, max(i - 1, 0) : i])
            O[j, i] = trsm(O[i, i], U[j, i])


def recipe(layout: Layout, dtype: np.dtype[np.generic]) -> Recipe:
    """The lower factor `O` of a Hermitian positive definite matrix `A` in square tiles.

    Only the lower triangle of `A` is read.
    """
    side = layout.boundaries[0][1]
    return Recipe(
        "cholesky",
        ("A",),
        (("O", Output(layout, dtype)),),
        _choose,
        (("N", layout.grid[0]), ("side", side)),
        halves=(("A", "lower"),),
    )


def _choose(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    if setting.at_hand:
        return _placed(looking_ahead, sizes["side"])
    return _placed(cholesky if setting.nodes > 1 else left_looking, sizes["side"])


@lru_cache(maxsize=64)
def _placed(program: TileProgram, side: int) -> TileProgram:
    """The program with each `chol` told which tile it has, and how many rows are before it: for its error."""

    def told(run: Run) -> Run:
        number = run.outputs[0].index[0]
        if run.kernel != "chol" or isinstance(number, Range):
            return run
        return replace(run, args=(*run.args, number, Binary("*", number, Int(side))))

    return TileProgram(replace(program.tree, body=changed(program.tree.body, told)), verify=False)
