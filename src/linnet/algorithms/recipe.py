"""What an algorithm is to those who put expressions together: programs for the same results.

Shape, cut and dtype of every result are known before anything runs. Which program makes them is decided
when an expression is lowered, by where it will run (`session.work.Setting`) and by which results somebody
wants: all programs of a recipe take the same inputs and give the same results, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from linnet.programs import TileProgram
from linnet.programs.grammar import Attribute, For, If, Program, Run, Stmt
from linnet.records import record
from linnet.session.work import Setting
from linnet.tiles import Layout


class Output(NamedTuple):
    """An array that a recipe makes."""

    layout: Layout
    """How it is cut."""
    dtype: np.dtype[Any]


Choose = Callable[[Setting, frozenset[str], Mapping[str, int]], TileProgram]


@record
class Recipe:
    """Programs for the same results."""

    name: str
    """Of the algorithm."""
    inputs: tuple[str, ...]
    """Names of the arrays that the programs read."""
    outputs: tuple[tuple[str, Output], ...]
    """The arrays that they make, by name."""
    choose: Choose
    """The program for a setting, the results that are wanted, and the sizes."""
    sizes: tuple[tuple[str, int], ...]
    """What the programs are bound to; each takes those that it knows."""
    condition: str | None = None
    """The result, one number, that says how well the system could be solved; see `condition`."""
    doubt: str | None = None
    """The result, one number, that is not 0 if all of them must be made again without trust."""
    check: str | None = None
    """A result that is made only so that an error is found."""
    stack: tuple[int, ...] | None = None
    """Which matrix of a stack it works on: errors name it."""
    halves: tuple[tuple[str, Literal["lower", "upper"]], ...] = ()
    """Square inputs of which only the tiles on the diagonal and below, or above it, are read."""
    tables: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Tables of integers that the programs are bound to."""
    kernel: tuple[str, tuple[tuple[str, Any], ...]] | None = None
    """The kernel, with its options, that makes all results from whole operands in one call, if any."""

    @property
    def notes(self) -> frozenset[str]:
        """Results that are made in every run, whether or not somebody wants them."""
        return frozenset(name for name in (self.condition, self.doubt, self.check) if name is not None)


@record
class only:
    """The choice where there is one program."""

    program: TileProgram

    def __call__(self, setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
        """That program."""
        return self.program


# ---- changing programs


def of_stack(program: Program, place: tuple[int, ...]) -> Program:
    """The program with the kernels that refuse a matrix told which one of a stack it is."""

    def told(run: Run) -> Run:
        if run.kernel not in ("chol", "check_pivots", "judge_pivots"):
            return run
        return replace(run, keywords=(*run.keywords, ("stack", Attribute(place))))

    return replace(program, body=changed(program.body, told))


def changed(body: tuple[Stmt, ...], change: Callable[[Run], Run]) -> tuple[Stmt, ...]:
    """Statements with every kernel call changed."""
    made: list[Stmt] = []
    for each in body:
        match each:
            case Run():
                made.append(change(each))
            case For():
                made.append(replace(each, body=changed(each.body, change)))
            case If():
                then, otherwise = changed(each.then, change), changed(each.otherwise, change)
                made.append(replace(each, then=then, otherwise=otherwise))
            case _:
                made.append(each)
    return tuple(made)
