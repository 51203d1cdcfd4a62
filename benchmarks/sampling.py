"""Random tasks of a program at any size, found without its analysis and without listing tasks.

The program's own text is walked: each loop around a statement takes one random value
of its range, guards are tested, and a walk that fails a guard or meets an empty range
is tried again. Half of the walks go anywhere, half keep to the first or last values of
every range, so that tasks with few relatives are met at every size.
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

from linnet.programs import Task, TileProgram

TRIES = 2000
"""Walks before a statement is taken to have no task at this size."""

FUNCTIONS: dict[str, Any] = {
    "range": range,
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
}


def sample_tasks(
    program: TileProgram, sizes: Mapping[str, int], each: int, seed: int = 0
) -> dict[int, list[Task]]:
    """Up to `each` random tasks of every statement that has any."""
    chance = random.Random(seed)
    (definition,) = (n for n in ast.parse(str(program)).body if isinstance(n, ast.FunctionDef))
    found: dict[int, list[Task]] = {}
    for statement, path in enumerate(_paths(definition.body, [])):
        walks = (_walk(path, sizes, chance) for _ in range(TRIES))
        tasks: dict[Task, None] = {}
        for indices in walks:
            if indices is not None:
                tasks[Task(statement, indices)] = None
            if len(tasks) == each:
                break
        if tasks:
            found[statement] = list(tasks)
    return found


def _paths(body: list[ast.stmt], above: list[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    """For every kernel call in source order: the loops, guards and scalars on the way to it."""
    above = list(above)
    for node in body:
        match node:
            case ast.For(ast.Name(variable), span):
                yield from _paths(node.body, [*above, ("for", (variable, _compiled(span)))])
            case ast.If(test):
                yield from _paths(node.body, [*above, ("if", _compiled(test))])
                negated = ast.UnaryOp(ast.Not(), test)
                yield from _paths(node.orelse, [*above, ("if", _compiled(negated))])
            case ast.Assign([ast.Name(name)], value):
                above.append(("let", (name, _compiled(value))))
            case ast.Assign():
                yield above
            case _:
                pass


def _compiled(node: ast.expr) -> Any:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<program>", "eval")


def _walk(
    path: list[tuple[str, Any]], sizes: Mapping[str, int], chance: random.Random
) -> tuple[int, ...] | None:
    values: dict[str, Any] = {**FUNCTIONS, **sizes}
    indices: list[int] = []
    edge = chance.choice((None, None, slice(0, 2), slice(-3, None)))
    for kind, what in path:
        if kind == "if":
            if not eval(what, values):
                return None
        elif kind == "let":
            values[what[0]] = eval(what[1], values)
        else:
            span = eval(what[1], values)
            if not span:
                return None
            values[what[0]] = chance.choice(span if edge is None else span[edge])
            indices.append(values[what[0]])
    return tuple(indices)
