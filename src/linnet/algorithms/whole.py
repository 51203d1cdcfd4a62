"""Matrices that LAPACK takes whole: a task for each tile, which holds a matrix or a stack of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

from linnet.algorithms.recipe import Output, Recipe, only
from linnet.programs import ProgramBuilder, TileProgram
from linnet.programs.build import Index
from linnet.session.work import Setting
from linnet.tiles import Layout


def whole(name: str, leading: Layout, inputs: int, like: Recipe, **options: Any) -> Recipe:
    """The kernel `lapack.<name>` on so many stacks of matrices, whose leading axes are cut as `leading` is.

    Each matrix gives what the recipe `like` gives for one; of a stack, the condition of systems is not told.
    """
    names = tuple(f"A{number}" for number in range(inputs))
    axes = len(leading.boundaries)
    results = tuple(
        (
            each,
            Output(Layout((*leading.boundaries, *((0, length) for length in out.layout.shape))), out.dtype),
        )
        for each, out in like.outputs
    )
    ranks = tuple((each, len(out.layout.boundaries)) for each, out in like.outputs)
    settled = tuple(sorted(options.items()))
    program = _program(name, names, ranks, axes, settled)
    sizes = [(f"N{axis}", count) for axis, count in enumerate(leading.grid)]
    starts = [(f"B{axis}", edges[1]) for axis, edges in enumerate(leading.boundaries)]
    return Recipe(
        name,
        names,
        results,
        only(program),
        (*sizes, *starts),
        None if axes else like.condition,
        kernel=None if axes else (f"lapack.{name}", settled),
    )


def giving(*outputs: tuple[str, tuple[int, ...], Any]) -> Recipe:
    """What `whole` needs to know of a recipe: the names, shapes and dtypes of its results."""
    results = tuple(
        (name, Output(Layout(tuple((0, length) for length in shape)), dtype))
        for name, shape, dtype in outputs
    )
    return Recipe("", (), results, _nothing, ())


def _nothing(setting: Setting, wanted: frozenset[str], sizes: Mapping[str, int]) -> TileProgram:
    raise LookupError("there is no tile program for this")


@lru_cache(maxsize=256)
def _program(
    kernel: str,
    inputs: tuple[str, ...],
    outputs: tuple[tuple[str, int], ...],
    axes: int,
    options: tuple[tuple[str, Any], ...],
) -> TileProgram:
    builder = ProgramBuilder(kernel)
    arrays = [builder.input(name) for name in inputs]
    results = [builder.output(name) for name, _ in outputs]
    counts = [builder.size(f"N{axis}") for axis in range(axes)]
    lengths = [builder.size(f"B{axis}") for axis in range(axes)]
    with ExitStack() as loops:
        place: list[Index] = [
            loops.enter_context(builder.loop(f"i{axis}", count)) for axis, count in enumerate(counts)
        ]
        builder.call(
            f"lapack.{kernel}",
            [each[(*place, *(0,) * rank)] for each, (_, rank) in zip(results, outputs, strict=True)],
            [
                *(each[(*place, 0, 0)] for each in arrays),
                *(index * length for index, length in zip(place, lengths, strict=True)),
            ],
            **dict(options),
        )
    return builder.build(verify=False)
