"""From an expression to one tile program.

Every stored node becomes an array of the program and a loop nest over its tiles: a group of
element-wise nodes one call of `fused`, a fold `fused` and a tree of `fold_join`, a `Blocks` a
call for each of its pieces. Layouts become loop bounds, and tables where they are irregular.
What kernels are told besides tiles, offsets and lengths, is given to the program when it is bound: so slices
that grow or move are computed by one program (`kept_programs`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from linnet.arrays.expression.graph import Graph
from linnet.arrays.expression.nodes import (
    Along,
    At,
    Axes,
    Blocks,
    Entry,
    Fold,
    Map,
    Node,
    Number,
    Operand,
    Part,
    ProgramCall,
    Source,
    Span,
    Spans,
    Stored,
)
from linnet.arrays.expression.tile_sets import Box, Numbers, Stairs, Tiles, common, listed, stairs_of, union
from linnet.arrays.lowering.folds_by_node import Nodes, fold_levels
from linnet.arrays.lowering.fusion import Group, load
from linnet.arrays.lowering.inline_programs import inline
from linnet.arrays.lowering.live_tiles import folded, piece_box, tiles_needed, whole
from linnet.arrays.lowering.matrix_products import turned_factors
from linnet.programs import BoundProgram, ProgramBuilder
from linnet.programs.build import ArrayHandle, minimum
from linnet.programs.grammar import Program
from linnet.programs.program import TileProgram
from linnet.records import record
from linnet.session.work import Setting
from linnet.tiles.layout import Boundaries, regular

NUMBERS = "numbers"
"""What programs call the table of the numbers that they are given."""

_SHORT = 4096
"""Tiles of an expression whose program is given its numbers."""

_NESTS = 4
"""Nests of loops over the tiles of one node, before they are listed."""


@record
class Lowered:
    """A program for an expression."""

    bound: BoundProgram
    inputs: tuple[tuple[str, int], ...]
    """Names of arrays, each with the number of the source in the graph."""
    outputs: tuple[str, ...]
    """For each node asked for the name of its array: an input, if it is a source itself."""
    conditions: tuple[str, ...] = ()
    """Arrays of one number each that say how well systems could be solved."""
    doubt: str | None = None
    """The array of one number that is not 0 if nothing of a run is to be taken."""


class Lowering:
    """Goes through a graph and says, loop by loop and call by call, how it is computed.

    It says so to a builder of programs, or to one that does it at once: loops are then over
    numbers, not over variables.
    """

    def __init__(self, graph: Graph, nodes: Nodes, setting: Setting, builder: Any = None) -> None:
        self.graph = graph
        self.nodes = nodes
        self.setting = setting
        self.needed: list[Tiles | None] = tiles_needed(graph)
        self.builder: ProgramBuilder | Any = ProgramBuilder("expression") if builder is None else builder
        self.arrays: dict[int, Any] = {}
        self.tables: dict[tuple[int, ...], Any] = {}
        self.inputs: list[tuple[str, int]] = []
        self.conditions: list[str] = []
        self.doubts: list[ArrayHandle] = []
        self.loops: int = 0
        self.numbers: list[int] | None = None
        """What a program is given when it is bound: offsets and lengths, which kernels take as arguments.
        None: they are told in place."""

    def program(self, made_of: Callable[[Program], TileProgram]) -> Lowered:
        """All of it as a program, bound to its numbers; `made_of` makes a program of what it says."""
        self.numbers = [] if _is_short(self.graph) else None
        self.go()
        doubt = self.doubted()
        made = made_of(self.builder.tree())
        bound = made.bind(**({NUMBERS: self.numbers} if self.numbers else {}))
        return Lowered(bound, tuple(self.inputs), self.outputs(), tuple(self.conditions), doubt)

    def outputs(self) -> tuple[str, ...]:
        """The names of what was asked for."""
        entries = self.graph.entries
        return tuple(
            f"{'A' if isinstance(entries[n].node, Source | Stored) else 'R'}{n}" for n in self.graph.wanted
        )

    def go(self) -> None:
        """Say how each node is computed, operands first."""
        entries = self.graph.entries
        for number, entry in enumerate(entries):
            node = entry.node
            if self.needed[number] is None:  # readers need other tiles, or none
                continue
            if isinstance(node, Source | Stored):
                if entry.readers or entry.wanted:
                    self.arrays[number] = self.builder.input(f"A{number}")
                    self.inputs.append((f"A{number}", number))
            elif isinstance(node, Fold):
                members = [k for k in self.graph.folds.get(entry.group, ()) if self.needed[k] is not None]
                if members and members[0] == number:
                    self.fold(members)
            elif entry.group != number:
                continue
            elif isinstance(node, Map | Axes):
                self.map(number)
            elif isinstance(node, Blocks):
                self.blocks(number, node)
            elif isinstance(node, Part) and entry.wanted:
                self.copied_part(number, node)
            elif isinstance(node, ProgramCall):
                inline(self, number, node)

    def doubted(self) -> str | None:
        """The array that says whether any of the calls doubts its results."""
        if not self.doubts:
            return None
        total = self.doubts[0]
        for number, each in enumerate(self.doubts[1:]):
            joined = self.builder.temp(f"doubt{number}")
            self.builder.call("add", [joined[0]], [total[0], each[0]])
            total = joined
        self.builder.call("copy", [self.builder.output("doubt")[0]], [total[0]])
        return "doubt"

    # ---- arrays and loops

    def array(self, number: int, fill: bool | int | float | None = None) -> ArrayHandle:
        """The array of a stored node, made when first asked for."""
        made = self.arrays.get(number)
        if made is None:
            wanted = self.graph.entries[number].wanted
            make = self.builder.output if wanted else self.builder.temp
            made = self.arrays[number] = make(f"{'R' if wanted else 'T'}{number}", fill=fill)
        return made

    def tiles(self, number: int) -> Tiles:
        """The tiles of a node that are needed."""
        found = self.needed[number]
        assert found is not None
        return found

    def nests(self, tiles: Sequence[Box]) -> Iterator[list[Any]]:
        """Loops over tiles: a nest for each box, or one that goes through a list where boxes are many.

        What stands in a `for` over these is said once for each nest, of variables, or done for each tile.
        """
        many = len(tiles) > _NESTS
        stairs = stairs_of(tiles) if many else None
        if stairs is not None:
            yield from self.over_stairs(stairs)
            return
        found = listed(tiles) if many else None
        if found is not None:
            yield from self.over_list(*found)
            return
        for box in tiles:
            yield from self.over(box)

    def over(self, box: Sequence[Numbers]) -> Iterator[list[Any]]:
        """Loops over a box of tiles, the first axis outermost; an axis with one tile needs no loop."""
        if not box:
            yield []
            return
        first, *rest = box
        if len(first) == 1:
            for indices in self.over(rest):
                yield [first[0], *indices]
            return
        self.loops += 1
        steps = first if isinstance(first, range) else range(len(first))
        bounds = (steps.start, steps.stop) if steps.step == 1 else (steps.start, steps.stop, steps.step)
        for place in self.builder.each(f"i{self.loops}", *bounds):
            index = place if isinstance(first, range) else self.looked_up(first, place)
            for indices in self.over(rest):
                yield [index, *indices]

    def over_list(self, lines: dict[int, tuple[int, ...]], box: Sequence[Numbers]) -> Iterator[list[Any]]:
        """One loop over the numbers of tiles along some axes, side by side, and loops over the other axes."""
        self.loops += 1
        axes = range(len(lines) + len(box))
        for place in self.builder.each(f"i{self.loops}", 0, len(next(iter(lines.values())))):
            for others in self.over(box):
                rest = iter(others)
                yield [self.looked_up(lines[axis], place) if axis in lines else next(rest) for axis in axes]

    def over_stairs(self, stairs: Stairs) -> Iterator[list[Any]]:
        """Loops over the steps of stairs, and over the tiles of each: its ends depend on its number."""
        self.loops += 2
        steps, (start, by), (stop, further) = stairs.steps, stairs.start, stairs.stop
        for step in self.builder.each(f"i{self.loops - 1}", steps.start, steps.stop):
            for place in self.builder.each(f"i{self.loops}", step * by + start, step * further + stop):
                for others in self.over(stairs.others):
                    indices = list(others)
                    for axis, index in sorted([(stairs.across, step), (stairs.along, place)]):
                        indices.insert(axis, index)
                    yield indices

    def looked_up(self, values: tuple[int, ...], index: Any) -> Any:
        """An entry of a table, or a formula that gives the same."""
        if isinstance(index, int):
            return values[index]
        if len(set(values)) == 1:
            return values[0]
        step = values[1] - values[0]
        if all(value == values[0] + step * place for place, value in enumerate(values)):
            return index * step + values[0]
        if values not in self.tables:
            self.tables[values] = self.builder.constant_table(f"table{len(self.tables)}", values)
        return self.tables[values][index]

    def number(self, values: tuple[int, ...], index: Any) -> Any:
        """An entry of a table, or the only one, for a kernel: no tile is named by it.

        So the program need not have it: slices of another length, or that begin elsewhere, are computed by
        the same program as long as they lie in as many tiles.
        """
        if self.numbers is None:
            return self.looked_up(values, index)
        if not self.numbers:
            self.given = self.builder.table(NUMBERS)
        start = len(self.numbers)
        if isinstance(index, int):
            self.numbers.append(int(values[index]))
            return self.given[start]
        self.numbers.extend(map(int, values))
        return self.given[index + start]

    def length(self, edges: Boundaries, index: Any) -> Any:
        """The length of a tile."""
        lengths = tuple(b - a for a, b in itertools.pairwise(edges))
        if self.numbers is not None:
            return self.number(lengths, index)
        if isinstance(index, int) or len(lengths) < 3 or len(set(lengths)) == 1 or len(set(lengths[:-1])) > 1:
            return self.looked_up(lengths, index)
        if lengths[-1] > lengths[0]:
            return self.looked_up(lengths, index)
        return least(lengths[0], edges[-1] - index * lengths[0])

    def between(self, bounds: Boundaries, index: Any) -> slice:
        """The range from one bound to the next."""
        step = bounds[1]
        if bounds == regular(bounds[-1], step):
            return slice(index * step, least((index + 1) * step, bounds[-1]))
        return slice(self.looked_up(bounds[:-1], index), self.looked_up(bounds[1:], index))

    # ---- element by element

    def map(self, number: int) -> None:
        entry = self.graph.entries[number]
        node = entry.node
        group = Group(self.graph, number)
        value = group.value(number, tuple(range(node.ndim)), root=True)
        target = self.array(number)
        for indices in self.nests(self.tiles(number)):
            self.call_fused(group, [target[_index(indices)]], (("map", value),), node, indices)

    def call_fused(
        self, group: Group, outputs: list[Any], results: tuple[Any, ...], shaped: Node, indices: list[Any]
    ) -> None:
        """One call of `fused`, with the lengths of the tile where no operand shows them."""
        covered: set[int] = set()
        arguments: list[Any] = []
        loads: list[Any] = []
        shown = 0
        entries = self.graph.entries
        for (leaf, view), _ in sorted(group.leaves.items(), key=lambda item: item[1]):
            shape = entries[leaf].node.shape
            place = [indices[v] if v >= 0 and shape[a] != 1 else 0 for a, v in enumerate(view)]
            arguments.append(self.tile(leaf, place))
            loads.append(load(view, shaped.ndim))
            shown = max(shown, len(view) if loads[-1] is None else shaped.ndim)
            covered.update(v for a, v in enumerate(view) if v >= 0 and shape[a] != 1)
        # Axes of length 1 are seen in operands with as many axes, or not at all.
        sized = shown < shaped.ndim or any(
            length != 1 and axis not in covered for axis, length in enumerate(shaped.shape)
        )
        if sized:
            arguments += [
                self.length(edges, index)
                for edges, index in zip(shaped.layout.boundaries, indices, strict=True)
            ]
        self.builder.call(
            "fused",
            outputs,
            arguments,
            loads=tuple(loads),
            steps=group.steps(),
            results=results,
            sized=shaped.ndim if sized else 0,
        )

    def tile(self, number: int, place: list[Any]) -> Any:
        """A tile of a node, or a block of tiles where the place has ranges."""
        node = self.graph.entries[number].node
        if isinstance(node, Part):
            whole = self.graph.entries[number].operands[0]
            return self.array(whole)[_index([*place, node.number])]
        return self.array(number)[_index(place)]

    # ---- reductions

    def fold(self, members: list[int]) -> None:
        """Folds of one operand over the same axes: one pass, then a tree for each."""
        entries = self.graph.entries
        first = entries[members[0]].node
        assert isinstance(first, Fold)
        operand = first.operand
        group = Group(self.graph, members[0])
        value = group.value(entries[members[0]].operands[0], tuple(range(operand.ndim)), root=False)
        states = self.builder.temp(f"P{members[0]}")
        results: list[tuple[Any, ...]] = []
        slots: list[int] = []
        for member in members:
            node = entries[member].node
            assert isinstance(node, Fold)
            kind = "moments" if self.has_moments(node, members) else node.kind
            result = (kind, value, node.axes, None if kind != node.kind else node.inner)
            if result not in results:
                results.append(result)
            slots.append(results.index(result))
        single = len(results) == 1
        needed: Tiles = ()
        for member in members:
            node = entries[member].node
            assert isinstance(node, Fold)
            needed = union(needed, folded(node, self.tiles(member)))
        for indices in self.nests(needed):
            target = states[_index(indices) if single else _index([*indices, slice(0, len(results))])]
            self.call_fused(group, [target], tuple(results), operand, indices)
        for member, slot in zip(members, slots, strict=True):
            self.tree(member, states, None if single else slot, results[slot][0])

    def has_moments(self, node: Fold, members: list[int]) -> bool:
        """Whether a sum is told along with the moments of the same elements, with the same bits."""
        operand = node.operand.dtype
        if node.kind != "sum" or node.inner != operand.str or operand.char not in "dD":
            return False
        others = [self.graph.entries[member].node for member in members]
        return any(
            isinstance(each, Fold) and each.kind == "moments" and each.inner is None for each in others
        )

    def tree(self, number: int, states: ArrayHandle, slot: int | None, kind: str) -> None:
        """Join the states of a fold, of this kind, until one is left for each tile of the result.

        A few are joined at a time.
        """
        node = self.graph.entries[number].node
        assert isinstance(node, Fold)
        levels = fold_levels(node.operand.grid, node.axes, self.nodes)
        told: dict[str, Any] = {} if kind == node.kind else {"of": kind}
        needed = folded(node, self.tiles(number))
        for level, bounds in enumerate(levels, 1):
            last = level == len(levels)
            made = self.array(number) if last else self.builder.temp(f"P{number}_{level}")
            keywords = {**told, **_finishing(node)} if last else told
            for indices in self.nests([_at_level(box, bounds) for box in needed]):
                place = [self.between(bounds[a], i) if a in bounds else i for a, i in enumerate(indices)]
                source = states[_index(place if slot is None else [*place, slot])]
                kept = [i for a, i in enumerate(indices) if not last or node.keepdims or a not in node.axes]
                self.builder.call(
                    "fold_join",
                    [made[_index(kept)]],
                    [source],
                    kind=node.kind,
                    axes=node.axes,
                    **keywords,
                )
            states, slot, told = made, None, {}

    # ---- anything else

    def blocks(self, number: int, node: Blocks) -> None:
        if self.setting.at_hand and self.tiles(number) == whole(node):
            entries = self.graph.entries
            turned = turned_factors(node, [entries[each].node for each in entries[number].operands])
            if turned is not None:
                self.product(number, node, turned)
                return
        target = self.array(number)
        operands = self.graph.entries[number].operands
        for piece in node.pieces:
            here = piece_box(piece.first, piece.last, node)
            shared = [common(here, box) for box in self.tiles(number)]
            for indices in self.nests([box for box in shared if box is not None]):
                parts = (node.parts,) if isinstance(node.parts, int) else node.parts
                place = [*indices, *(slice(0, count) for count in parts if node.parts)]
                arguments = [self.argument(each, operands, indices) for each in piece.arguments]
                attributes = dict(piece.attributes)
                self.builder.call(piece.kernel, [target[_index(place)]], arguments, **attributes)

    def product(self, number: int, node: Blocks, turned: tuple[int, ...]) -> None:
        """A product of matrices in memory: several tiles a task, since BLAS copies its operands for each."""
        from linnet.algorithms.gemm import together

        # Of other dtypes the bits of BLAS depend on how much it computes at once: that is always as much.
        workers = self.setting.workers if node.dtype.char == "d" else 2
        height, width = together(node.layout.boundaries[0], node.layout.boundaries[1], workers)
        target = self.array(number)
        left, right = self.graph.entries[number].operands
        entries = self.graph.entries
        steps = slice(0, entries[left].node.grid[1 if 0 not in turned else 0])
        rows, columns = node.grid
        for i, j in self.over([range(0, rows, height), range(0, columns, width)]):
            down, across = slice(i, least(i + height, rows)), slice(j, least(j + width, columns))
            arguments = [
                self.array(left)[(steps, down) if 0 in turned else (down, steps)],
                self.array(right)[(across, steps) if 1 in turned else (steps, across)],
            ]
            self.builder.call("gemm_block", [target[down, across]], arguments, turned=turned)

    def argument(self, item: Operand | Number, operands: tuple[int, ...], indices: list[Any]) -> Any:
        if isinstance(item, Entry):
            return self.number(item.values, indices[item.axis])
        if not isinstance(item, Operand):
            return self.number((item,), 0) if isinstance(item, int) else item
        place: list[Any] = []
        for access in item.access:
            match access:
                case Along(axis, scale, offset):
                    place.append(indices[axis] * scale + offset)
                case At(position):
                    place.append(position)
                case Span(start, stop):
                    place.append(slice(start, stop))
                case Spans(axis, starts, stops):
                    index = indices[axis]
                    place.append(slice(self.looked_up(starts, index), self.looked_up(stops, index)))
        return self.tile(operands[item.which], place)

    def named(self, number: int) -> str:
        """The array of a node, with an index for each of its axes: a part of several is copied first."""
        node = self.graph.entries[number].node
        if not isinstance(node, Part) or number in self.arrays:
            return self.array(number).name
        self.copied_part(number, node)
        return self.array(number).name

    def copied_part(self, number: int, node: Part) -> None:
        target = self.array(number)
        for indices in self.nests(self.tiles(number)):
            whole = self.array(self.graph.entries[number].operands[0])
            self.builder.call("copy", [target[_index(indices)]], [whole[_index([*indices, node.number])]])


def _is_short(graph: Graph) -> bool:
    """Whether an expression is in few tiles: of long ones it counts that a formula says where tiles end."""
    tiles = 0
    for entry in graph.entries:
        if isinstance(entry.node, ProgramCall):  # it is bound to sizes of its own
            return False
        tiles += math.prod(entry.node.grid)
    return tiles <= _SHORT


def _at_level(box: Box, bounds: dict[int, Boundaries]) -> Box:
    """A box of the operand of a fold, as the box of what one level of its tree makes."""
    return tuple(range(len(bounds[a]) - 1) if a in bounds else each for a, each in enumerate(box))


def _finishing(node: Fold) -> dict[str, Any]:
    """What the last joining of a fold has to know."""
    drop = () if node.keepdims else node.axes
    return {"final": True, "drop": drop, "dtype": node.dtype.str, **dict(node.finish)}


def least(one: Any, other: Any) -> Any:
    """The lesser of two numbers, or what says so in a program."""
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else minimum(one, other)


def _index(place: list[Any]) -> Any:
    return tuple(place)
