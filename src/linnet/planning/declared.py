"""Sizes of tiles and operations of tasks, from what kernels declare.

Tiles of one shape and dtype are of one kind. A call is told from others by its statement, the kinds of its
operands and its numbers; each different call is asked for once, in an order in which its operands are known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linnet.errors import KernelDeclarationError
from linnet.kernels import get as get_kernel
from linnet.programs import BoundProgram, Call
from linnet.programs.enumeration import TaskArrays
from linnet.programs.expressions import names
from linnet.programs.grammar import ArrayRole, Attribute, Range, Tiles, fill_of
from linnet.programs.shapes import Description, Shapes, declared, mapped, operands
from linnet.programs.statements import Statement
from linnet.tiles import TiledArray, TileKey

Numbers = NDArray[np.int64]
Rows = tuple[Numbers, Numbers]
"""Compressed rows: starts, and what stands in them."""
_NUMBER = Description((), np.dtype(np.float64))


class TileNames(Protocol):
    """Tiles by number."""

    @property
    def count(self) -> int: ...

    def key(self, tile: int) -> TileKey:
        """A tile by its number."""
        ...

    def numbered(self, array: str) -> tuple[int, Numbers]:
        """The number of the first tile of an array, and the indices of all of them, one row a tile."""
        ...


class Kinds:
    """Shapes and dtypes, known or assumed, numbered."""

    def __init__(self) -> None:
        self.known: list[Description] = []
        """By number."""
        self.assumed: list[bool] = []
        """Whether the shape is what somebody took it for, or follows from one that is."""
        self._number: dict[tuple[Description, bool], int] = {}

    def number(self, described: Description, assumed: bool = False) -> int:
        """The number of a shape and dtype, a new one if it was not seen before."""
        number = self._number.get((described, assumed))
        if number is None:
            number = self._number[described, assumed] = len(self.known)
            self.known.append(described)
            self.assumed.append(assumed)
        return number


class Declarations:
    """What kernels declare of all tasks of a program."""

    def __init__(self, bound: BoundProgram, inputs: Mapping[str, TiledArray], keys: TileNames) -> None:
        self._bound, self._keys = bound, keys
        self._shapes = Shapes(bound, inputs)
        self._kinds = Kinds()
        self._kind = np.full(keys.count, -1, np.int64)
        self._asked: dict[Any, tuple[list[int], float]] = {}
        self.assumed: set[str] = set()
        """Kernels that declare no shapes: their results were taken to be like their largest operand."""
        for name, array in inputs.items():
            self._describe_input(name, array)

    @property
    def items(self) -> Numbers:
        """Elements of each tile."""
        return np.array([prod(each.shape) for each in self._kinds.known], np.int64)[self._kind]

    @property
    def bytes(self) -> Numbers:
        """Bytes of each tile."""
        sizes = [prod(each.shape) * each.dtype.itemsize for each in self._kinds.known]
        return np.array(sizes, np.int64)[self._kind]

    def flops(self, tasks: TaskArrays, order: Numbers, operand: Rows, written: Rows) -> NDArray[np.float64]:
        """Operations of each task; on the way every tile that is written gets its size."""
        flops = np.zeros(len(tasks), np.float64)
        # Views of arrays give plain integers and take no memory of their own.
        kind: Any = self._kind.data
        numbers: Any = flops.data
        starts: Any = operand[0].data
        tiles: Any = operand[1].data
        write_starts: Any = written[0].data
        writes: Any = written[1].data
        calls = self._bound.calls(tasks)
        offsets: list[int] = tasks.offsets.tolist()
        plain = [_is_plain(statement) for statement in self._bound.program.statements]
        roles = self._bound.program.arrays
        whole = [_written_operands(statement, roles) for statement in self._bound.program.statements]
        asked = self._asked
        for task in order.tolist():
            statement = bisect_right(offsets, task) - 1
            reads = tuple([kind[tile] for tile in tiles[starts[task] : starts[task + 1]]])
            if whole[statement] is not None and whole[statement] != len(reads):
                key: Any = self._key_with_fills(statement, reads, calls[statement](task - offsets[statement]))
            elif plain[statement]:
                key = (statement, reads)
            else:
                key = (statement, reads, _pattern(calls[statement](task - offsets[statement])))
            answer = asked.get(key)
            if answer is None:
                call = calls[statement](task - offsets[statement])
                answer = asked[key] = self._ask(call, tiles[starts[task] : starts[task + 1]].tolist())
            numbers[task] = answer[1]
            for tile, number in zip(
                writes[write_starts[task] : write_starts[task + 1]], answer[0], strict=True
            ):
                kind[tile] = number
        return flops

    def _key_with_fills(self, statement: int, reads: tuple[int, ...], call: Call) -> Any:
        """What tells a call from others that may read tiles which nobody writes: where, and of what shape."""
        keys = list(operands(call.args))
        if len(keys) == len(reads):
            return statement, reads, _pattern(call)
        fills = tuple(
            self._kinds.number(self._shapes.describe(key)) if self._shapes.is_filled(key) else -1
            for key in keys
        )
        return statement, reads, _pattern(call), fills

    def _describe_input(self, name: str, array: TiledArray) -> None:
        first, indices = self._keys.numbered(name)
        if not len(indices):
            return
        for index in (indices.min(axis=0), indices.max(axis=0)):
            array.layout.check(tuple(index.tolist()))
        edges = array.layout.boundaries
        lengths = [np.diff(each)[indices[:, axis]] for axis, each in enumerate(edges)]
        shapes, kinds = (
            np.unique(np.column_stack(lengths), axis=0, return_inverse=True) if edges else ([()], 0)
        )
        numbers = [self._kinds.number(Description(tuple(map(int, each)), array.dtype)) for each in shapes]
        self._kind[first : first + len(indices)] = np.array(numbers, np.int64)[kinds]

    def _ask(self, call: Call, tiles: list[int]) -> tuple[list[int], float]:
        """Kinds of the results of a call, and its operations."""
        keys = list(operands(call.args))
        numbers = [int(self._kind[tile]) for tile in tiles]
        kinds = [self._kinds.known[number] for number in numbers]
        assumed = any(self._kinds.assumed[number] for number in numbers)
        if len(keys) == len(tiles):
            described = dict(zip(keys, kinds, strict=True))
        else:  # some are tiles that nobody writes, made where they are read
            known = {self._keys.key(tile): kind for tile, kind in zip(tiles, kinds, strict=True)}
            described = {key: known.get(key) or self._shapes.describe(key) for key in keys}
        try:
            results = declared(call, described)
            if results is None:
                self.assumed.add(call.kernel)
                results, assumed = _like_the_largest(call, described), True
            found = [self._kinds.number(each, assumed) for each in results.values()]
            return found, _operations(call, described, results)
        except KernelDeclarationError:
            if not assumed:  # else the operands may be of other shapes than they were taken to be
                raise
        results = _like_the_largest(call, described)
        return [self._kinds.number(each, True) for each in results.values()], _elements(described, results)


def _like_the_largest(call: Call, described: Mapping[TileKey, Description]) -> dict[TileKey, Description]:
    """Results taken to be like the largest operand."""
    largest = max(described.values(), key=lambda each: prod(each.shape), default=_NUMBER)
    return dict.fromkeys(operands(call.outputs), largest)


def _elements(described: Mapping[TileKey, Description], results: Mapping[TileKey, Description]) -> float:
    """As many operations as elements are read and written."""
    return float(sum(prod(each.shape) for each in (*described.values(), *results.values())))


def _operations(
    call: Call, described: Mapping[TileKey, Description], results: Mapping[TileKey, Description]
) -> float:
    """What the kernel declares, or as many as elements are read and written."""
    known = get_kernel(call.kernel).flops
    if known is not None:
        shapes = mapped(call.args, lambda key: described[key].shape)
        try:
            return float(known(*shapes, **call.attributes))
        except Exception as error:
            raise KernelDeclarationError(
                f"what kernel {call.kernel!r} declares of its operations (flops=) fails on {call.args!r} "
                f"of shapes {', '.join(map(str, shapes))}: {type(error).__name__}: {error}"
            ) from error
    return _elements(described, results)


def _written_operands(statement: Statement, roles: Mapping[str, ArrayRole]) -> int | None:
    """How many tiles a task reads if all of them are written (-1: it varies); None if surely all are."""
    if all(fill_of(roles[access.array]) is None for access in statement.reads):
        return None
    operands = [a for a in statement.run.args if isinstance(a, Tiles)]
    return -1 if any(isinstance(i, Range) for a in operands for i in a.index) else len(operands)


def _is_plain(statement: Statement) -> bool:
    """Whether the operands of a call tell all that its declarations can depend on."""
    operands = (*statement.run.args, *(value for _, value in statement.run.keywords))
    ranged = [a for a in operands if isinstance(a, Tiles) and any(isinstance(i, Range) for i in a.index)]
    scalars = [a for a in operands if not isinstance(a, Tiles | Attribute) and names(a)]
    return len(ranged) < 2 and not scalars


def _pattern(call: Call) -> Any:
    """A call without its tiles: its numbers, and how many tiles stand where."""
    return mapped(call.args, lambda _: None, tuple), tuple(call.attributes.items())
