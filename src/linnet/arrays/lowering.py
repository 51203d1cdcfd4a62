"""From an expression to one tile program.

Every stored node becomes an array of the program and a loop nest over its tiles: a group of
element-wise nodes one call of `fused`, a fold `fused` and a tree of `fold_join`, a `Blocks` a
call for each of its pieces. Layouts become loop bounds, and tables where they are irregular.
Programs are kept by the structure of the expression, so that the same expression on new
data is not planned again.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from linnet.arrays.expression import (
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
    Source,
    Span,
    Spans,
    Stored,
)
from linnet.arrays.graph import Graph, graph
from linnet.arrays.groups import Group, load
from linnet.arrays.needed import Box, boxes, common, folded, piece_box, union
from linnet.arrays.repeating import repeated
from linnet.arrays.spreading import ONE, Nodes, fold_levels, spread
from linnet.programs import BoundProgram, ProgramBuilder
from linnet.programs.build import ArrayHandle, minimum
from linnet.tiles.layout import Boundaries, regular

_KEPT = 256
_programs: OrderedDict[tuple[Any, ...], Lowered] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program for an expression."""

    bound: BoundProgram
    inputs: tuple[tuple[str, int], ...]
    """Names of arrays, each with the number of the source in the graph."""
    outputs: tuple[str | None, ...]
    """For each node asked for the name of its array; None if it is a source itself."""


def lowered(wanted: Sequence[Node], nodes: Nodes = ONE, memory: int | None = None) -> tuple[Lowered, Graph]:
    """The program for an expression on these nodes, under a budget, and the graph it was made from."""
    found = repeated(graph(spread(wanted, nodes)), memory)
    key = (found.key, nodes)
    with _lock:
        made = _programs.get(key)
        if made is not None:
            _programs.move_to_end(key)
            return made, found
    made = _Lowering(found, nodes).program()
    with _lock:
        _programs[key] = made
        while len(_programs) > _KEPT:
            _programs.popitem(last=False)
    return made, found


class _Lowering:
    def __init__(self, graph: Graph, nodes: Nodes) -> None:
        self.graph = graph
        self.nodes = nodes
        self.boxes = boxes(graph)
        self.builder = ProgramBuilder("expression")
        self.arrays: dict[int, ArrayHandle] = {}
        self.tables: dict[tuple[int, ...], Any] = {}
        self.inputs: list[tuple[str, int]] = []
        self.loops = 0

    def program(self) -> Lowered:
        entries = self.graph.entries
        for number, entry in enumerate(entries):
            node = entry.node
            if self.boxes[number] is None:  # readers need other tiles, or none
                continue
            if isinstance(node, Source | Stored):
                if entry.readers:
                    self.arrays[number] = self.builder.input(f"A{number}")
                    self.inputs.append((f"A{number}", number))
            elif isinstance(node, Fold):
                members = [k for k in self.graph.folds.get(entry.group, ()) if self.boxes[k] is not None]
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
        outputs = tuple(
            None if isinstance(entries[n].node, Source | Stored) else f"R{n}" for n in self.graph.wanted
        )
        bound = self.builder.build(verify=False).bind()
        return Lowered(bound, tuple(self.inputs), outputs)

    # ---- arrays and loops

    def array(self, number: int) -> ArrayHandle:
        """The array of a stored node, made when first asked for."""
        made = self.arrays.get(number)
        if made is None:
            wanted = self.graph.entries[number].wanted
            make = self.builder.output if wanted else self.builder.temp
            made = self.arrays[number] = make(f"{'R' if wanted else 'T'}{number}")
        return made

    def box(self, number: int) -> Box:
        """The tiles of a node that are needed."""
        found = self.boxes[number]
        assert found is not None
        return found

    @contextmanager
    def over(self, box: Sequence[tuple[int, int]]) -> Generator[list[Any]]:
        """Loops over a box of tiles, the first axis outermost; an axis with one tile needs no loop."""
        with self._over(list(box), []) as indices:
            yield indices

    @contextmanager
    def _over(self, box: list[tuple[int, int]], made: list[Any]) -> Generator[list[Any]]:
        if not box:
            yield made
            return
        (start, stop), *rest = box
        if stop - start == 1:
            with self._over(rest, [*made, start]) as indices:
                yield indices
            return
        self.loops += 1
        with (
            self.builder.loop(f"i{self.loops}", start, stop) as index,
            self._over(rest, [*made, index]) as indices,
        ):
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

    def length(self, edges: Boundaries, index: Any) -> Any:
        """The length of a tile."""
        lengths = tuple(b - a for a, b in itertools.pairwise(edges))
        if isinstance(index, int) or len(lengths) < 3 or len(set(lengths)) == 1 or len(set(lengths[:-1])) > 1:
            return self.looked_up(lengths, index)
        if lengths[-1] > lengths[0]:
            return self.looked_up(lengths, index)
        return minimum(lengths[0], edges[-1] - index * lengths[0])

    def between(self, bounds: Boundaries, index: Any) -> slice:
        """The range from one bound to the next."""
        step = bounds[1]
        if bounds == regular(bounds[-1], step):
            return slice(index * step, minimum((index + 1) * step, bounds[-1]))
        return slice(self.looked_up(bounds[:-1], index), self.looked_up(bounds[1:], index))

    # ---- element by element

    def map(self, number: int) -> None:
        entry = self.graph.entries[number]
        node = entry.node
        group = Group(self.graph, number)
        value = group.value(number, tuple(range(node.ndim)), root=True)
        target = self.array(number)
        with self.over(self.box(number)) as indices:
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
        needed: Box | None = None
        for member in members:
            node = entries[member].node
            assert isinstance(node, Fold)
            needed = union(needed, folded(node, self.box(member)))
        assert needed is not None
        with self.over(needed) as indices:
            target = states[_index(indices) if single else _index([*indices, slice(0, len(results))])]
            self.call_fused(group, [target], tuple(results), operand, indices)
        for member, slot in zip(members, slots, strict=True):
            self.tree(member, states, None if single else slot, needed, results[slot][0])

    def has_moments(self, node: Fold, members: list[int]) -> bool:
        """Whether a sum is told along with the moments of the same elements, with the same bits."""
        operand = node.operand.dtype
        if node.kind != "sum" or node.inner != operand.str or operand.char not in "dD":
            return False
        others = [self.graph.entries[member].node for member in members]
        return any(
            isinstance(each, Fold) and each.kind == "moments" and each.inner is None for each in others
        )

    def tree(self, number: int, states: ArrayHandle, slot: int | None, needed: Box, kind: str) -> None:
        """Join the states of a fold, a few at a time, until one is left for each tile of the result.

        `needed` are the tiles of its operand that there are states of, of this kind.
        """
        node = self.graph.entries[number].node
        assert isinstance(node, Fold)
        levels = fold_levels(node.operand.grid, node.axes, self.nodes)
        told: dict[str, Any] = {} if kind == node.kind else {"of": kind}
        for level, bounds in enumerate(levels, 1):
            box = [
                (0, len(bounds[a]) - 1) if a in bounds else needed[a] for a in range(len(node.operand.grid))
            ]
            with self.over(box) as indices:
                place = [self.between(bounds[a], i) if a in bounds else i for a, i in enumerate(indices)]
                source = states[_index(place if slot is None else [*place, slot])]
                if level == len(levels):
                    kept = [i for a, i in enumerate(indices) if node.keepdims or a not in node.axes]
                    keywords = {
                        **told,
                        "final": True,
                        "drop": () if node.keepdims else node.axes,
                        "dtype": node.dtype.str,
                        **dict(node.finish),
                    }
                    target = self.array(number)[_index(kept)]
                    self.builder.call(
                        "fold_join", [target], [source], kind=node.kind, axes=node.axes, **keywords
                    )
                    return
                made = self.builder.temp(f"P{number}_{level}")
                target = made[_index(indices)]
                self.builder.call("fold_join", [target], [source], kind=node.kind, axes=node.axes, **told)
            states, slot, told = made, None, {}

    # ---- anything else

    def blocks(self, number: int, node: Blocks) -> None:
        target = self.array(number)
        operands = self.graph.entries[number].operands
        for piece in node.pieces:
            box = common(piece_box(piece.first, piece.last, node), self.box(number))
            if box is None:
                continue
            with self.over(box) as indices:
                parts = (node.parts,) if isinstance(node.parts, int) else node.parts
                place = [*indices, *(slice(0, count) for count in parts if node.parts)]
                arguments = [self.argument(each, operands, indices) for each in piece.arguments]
                self.builder.call(piece.kernel, [target[_index(place)]], arguments, **dict(piece.attributes))

    def argument(self, item: Operand | Number, operands: tuple[int, ...], indices: list[Any]) -> Any:
        if isinstance(item, Entry):
            return self.looked_up(item.values, indices[item.axis])
        if not isinstance(item, Operand):
            return item
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

    def copied_part(self, number: int, node: Part) -> None:
        target = self.array(number)
        with self.over([(0, n) for n in node.grid]) as indices:
            whole = self.array(self.graph.entries[number].operands[0])
            self.builder.call("copy", [target[_index(indices)]], [whole[_index([*indices, node.number])]])


def _index(place: list[Any]) -> Any:
    return tuple(place)
