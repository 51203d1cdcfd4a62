"""Cheap expressions, computed on the caller's thread: no program, no plan, nobody to hand work to.

Lowering says how an expression is computed, loop by loop and call by call. Here that is not written down as a
program but done at once: the same kernels on the same tiles in the same trees, so the bits are the same.
Which way is taken is a matter of cost, and that is a formula of shapes and operations.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression.builders import is_free, recut, viewed
from linnet.arrays.expression.chunking import whole
from linnet.arrays.expression.graph import Graph, graph, ordered
from linnet.arrays.expression.nodes import Axes, Blocks, Fold, Map, Node, Part, Source, Stored
from linnet.arrays.lowering.folds_by_node import ONE
from linnet.arrays.lowering.kept_programs import is_kept
from linnet.arrays.lowering.lower import Lowering
from linnet.kernels import get as get_kernel
from linnet.kernels.arrays.operations import Operation, cast, operation
from linnet.machine import large_arrays
from linnet.machine.blas_threads import one_blas_thread
from linnet.machine.float_errors import quietly
from linnet.session import current_engine
from linnet.session.work import Setting

CHEAP = 1 << 21
"""Steps on an element that take about as long as running a program that is there: 2 ms."""

NEW = 1 << 25
"""The same where the program would have to be made first: slices of other lengths give another one."""

ALONE = 1 << 28
"""The same where every array is one tile: nobody could help."""

_CALLS = 4096
"""Kernel calls, at most: a program is shorter than the list of its tasks."""

_SHORT = 1 << 15
"""Elements of arrays that stay in the cache without anybody's help, and so do what is made of them."""

_FEW = 256
"""The same where somebody waits for a single statement."""

_LINEAR = {
    *(
        "copy",
        "cut",
        "fold_join",
        "split_box",
        "iota",
        "count_true",
        "compress",
        "true_positions",
        "take_along",
    ),
    *("gather", "split_rows", "join_rows", "search", "put_box", "put_rows", "put_masked"),
}
"""Kernels that look at each element once."""

_SEEN = 256
_seen: OrderedDict[Any, None] = OrderedDict()
"""Structures that were computed at once although a program would have been faster the second time."""


def evaluated(
    nodes: Sequence[Node], setting: Setting, places: Mapping[int, NDArray[Any]] | None = None
) -> list[NDArray[Any]] | None:
    """The values of nodes that are cheap to compute; None if they are not, or if something went wrong.

    `places` has arrays for some of them, by number. Kernels change nothing, so whoever gets None computes
    them in the usual way, and sees the error there.
    """
    cost, short = 0, True
    for node in _reached(nodes):
        if not _is_known(node):
            return None
        steps = 0 if isinstance(node, Source | Stored) else _steps(node)
        short = short and steps <= _SHORT and isinstance(node, Source | Map | Axes)
        cost += steps
    if short and len(nodes) == 1:
        try:
            return [quietly(_step_by_step, nodes[0], (places or {}).get(0))]
        except Exception:
            return None
    if cost <= CHEAP:
        # Elements do not depend on the cut, and one call of a kernel takes less time than many.
        nodes = [recut(node, whole(node.shape)) if is_free(node) else node for node in nodes]
    found = graph(nodes)
    if not _is_cheap(found, setting):
        return None
    now = _Now(found, places or {})
    lowering = Lowering(found, ONE, setting, now)
    try:
        with one_blas_thread() if now.multiplies else nullcontext():
            lowering.go()
        return now.results(lowering.arrays)
    except Exception:
        return None


def is_cheap(node: Node) -> bool:
    """Whether computing a node takes no longer than writing down that it is to be computed."""
    if isinstance(node, Source | Stored):
        return True
    cost, calls = 0, 0
    for each in _reached([node]):
        if not _is_known(each):
            return False
        if not isinstance(each, Source | Stored):
            calls += math.prod(each.grid)
            cost += _steps(each)
    return calls <= _FEW and cost <= NEW


def numbers(nodes: Sequence[Node]) -> list[NDArray[Any]] | None:
    """The values of nodes of one element each, if they are cheap to compute in this session."""
    return evaluated(nodes, Setting.of(current_engine()))


def _step_by_step(node: Node, place: NDArray[Any] | None) -> NDArray[Any]:
    """What is made element by element of so few that all of it stays in the cache."""
    values: dict[int, Any] = {}
    for each in ordered([node]):
        if isinstance(each, Source):
            value = each.data
        elif isinstance(each, Axes):
            value = np.broadcast_to(values[id(each.operand)], each.operand.shape)
            value = viewed(value, each.axes)
        else:
            assert isinstance(each, Map)
            given = [values[id(operand)] for operand in each.inputs]
            value = given[0] if each.op == "fill" else _operation(each.op, each.extra).function(*given)
        values[id(each)] = value
    if place is not None:
        np.copyto(place, value, casting="no")  # type: ignore[possibly-undefined]
        return place
    if isinstance(node, Map) and node.op != "fill" and value.shape == node.shape:  # type: ignore[possibly-undefined]
        return np.asarray(value)  # type: ignore[possibly-undefined]
    return np.array(np.broadcast_to(value, node.shape))  # type: ignore[possibly-undefined]


def _operation(name: str, extra: str | None) -> Operation:
    return operation(name) if extra is None else cast(extra)


def _reached(nodes: Sequence[Node]) -> Iterable[Node]:
    seen: set[int] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending.extend(node.operands)


def _is_known(node: Node) -> bool:
    """Whether what it takes to compute a node can be told from its shape."""
    if isinstance(node, Blocks):
        return all(piece.kernel in _LINEAR or piece.kernel == "contract" for piece in node.pieces)
    return isinstance(node, Source | Stored | Map | Axes | Fold | Part)


def _is_cheap(found: Graph, setting: Setting) -> bool:
    """Whether nobody could compute it sooner."""
    cost, calls, alone = 0, 0, True
    for entry in found.entries:
        node = entry.node
        if isinstance(node, Source | Stored | Part):
            continue
        tiles = math.prod(node.operand.grid if isinstance(node, Fold) else node.grid)
        if isinstance(node, Fold) or entry.group < 0 or found.entries[entry.group] is entry:
            calls += tiles
        alone = alone and tiles == 1
        cost += _steps(node)
    if calls > _CALLS or cost > (ALONE if alone else NEW):
        return False
    if alone or cost <= CHEAP or setting.workers == 1:
        return True
    if is_kept(found, setting) or found.key in _seen:
        return False
    _seen[found.key] = None
    while len(_seen) > _SEEN:
        _seen.popitem(last=False)
    return True


def _steps(node: Node) -> int:
    """How many elements are looked at."""
    if isinstance(node, Fold):
        return math.prod(node.operand.shape)
    if isinstance(node, Blocks) and node.pieces[0].kernel == "contract":
        return _products(node)
    return math.prod(node.shape)


def _products(node: Blocks) -> int:
    """How many products a contraction is made of, in units of steps."""
    spec = str(dict(node.pieces[0].attributes)["spec"])
    lengths: dict[str, int] = {}
    for letters, operand in zip(spec.split("->")[0].split(","), node.inputs, strict=True):
        lengths |= dict(zip(letters, operand.shape, strict=True))
    return math.prod(lengths.values()) // 2


class _Held:
    """An array of the expression: its tiles, as far as they are there."""

    def __init__(self, node: Node | None = None, place: NDArray[Any] | None = None) -> None:
        self.tiles: dict[tuple[int, ...], Any] = {}
        self.place = place
        """Where its tiles are wanted, if that is known."""
        self._node = node

    def __getitem__(self, index: Any) -> tuple[_Held, tuple[Any, ...]]:
        return self, index if isinstance(index, tuple) else (index,)

    def tile(self, index: tuple[int, ...]) -> Any:
        """A tile that is there."""
        found = self.tiles.get(index)
        if found is None:
            node = self._node
            if isinstance(node, Source):
                found = node.data if node.in_one_tile else node.data[(*node.layout.slices(index), ...)]
            else:
                assert isinstance(node, Stored)
                found = node.tiles.tile(index)
            self.tiles[index] = found
        return found

    def bounds(self, index: tuple[int, ...]) -> Any:
        """Where in the whole array a tile lies."""
        assert self._node is not None
        return (*self._node.layout.slices(index), ...)

    def read(self, index: tuple[Any, ...]) -> Any:
        """A tile, or lists of tiles where the index has ranges."""
        for axis, each in enumerate(index):
            if isinstance(each, slice):
                steps = range(each.start or 0, each.stop, each.step or 1)
                return [self.read((*index[:axis], k, *index[axis + 1 :])) for k in steps]
        return self.tile(index)

    def keep(self, index: tuple[Any, ...], made: Any) -> None:
        """The same for what a kernel has made."""
        for axis, each in enumerate(index):
            if isinstance(each, slice):
                steps = range(each.start or 0, each.stop, each.step or 1)
                for k, part in zip(steps, made, strict=True):
                    self.keep((*index[:axis], k, *index[axis + 1 :]), part)
                return
        self.tiles[index] = made


class _Now:
    """Does what a builder would write down."""

    def __init__(self, found: Graph, places: Mapping[int, NDArray[Any]]) -> None:
        self._graph = found
        self._places = {found.wanted[at]: place for at, place in places.items()}
        self._given: list[_Held] = []
        self.multiplies = any(
            isinstance(entry.node, Blocks) and entry.node.pieces[0].kernel == "contract"
            for entry in found.entries
        )

    def input(self, name: str) -> _Held:
        self._given.append(_Held(self._graph.entries[int(name[1:])].node))
        return self._given[-1]

    def output(self, name: str, fill: Any = None) -> _Held:
        number = int(name[1:])
        node = self._graph.entries[number].node
        place = self._places.get(number)
        if place is None and math.prod(node.grid) > 1:
            place = large_arrays.empty(node.shape, node.dtype)
        return _Held(node, place)

    def temp(self, name: str, of: Any = None, fill: Any = None) -> _Held:
        return _Held()

    def constant_table(self, name: str, values: Sequence[int]) -> Sequence[int]:
        return values

    def each(self, name: str, *bounds: int) -> range:
        return range(*bounds)

    def call(self, kernel: str, outputs: Sequence[Any], args: Sequence[Any], **attributes: Any) -> None:
        """Run a kernel, and keep what it makes where it is wanted."""
        called = get_kernel(kernel)
        arguments = [each[0].read(each[1]) if type(each) is tuple else each for each in args]
        ((held, index),) = outputs
        if held.place is None:
            held.keep(index, called.function(*arguments, **attributes))
            return
        if any(isinstance(each, slice) for each in index):  # several tiles at once
            part = _Held()
            part.keep(index, called.function(*arguments, **attributes))
            for place, tile in part.tiles.items():
                held.place[held.bounds(place)] = tile
                held.tiles[place] = held.place[held.bounds(place)]
            return
        place = held.place[held.bounds(index)]
        if called.into:
            attributes["into"] = place
        made = called.function(*arguments, **attributes)
        if made is not place:
            _fill(place, made)
        held.tiles[index] = place

    def results(self, arrays: Mapping[int, _Held]) -> list[NDArray[Any]]:
        """The values of what was asked for, each in memory of its own."""
        found: list[NDArray[Any]] = []
        for number in self._graph.wanted:
            node, held = self._graph.entries[number].node, arrays[number]
            if isinstance(node, Source):
                found.append(node.data)
            elif isinstance(node, Stored):
                found.append(node.tiles.to_numpy())
            elif held.place is not None:
                found.append(held.place)
            else:
                tile = held.tile((0,) * node.ndim)
                if tile.shape != node.shape or tile.dtype != node.dtype:
                    raise ValueError(f"a tile of shape {tile.shape} for one of shape {node.shape}")
                own = tile.flags.c_contiguous and tile.flags.writeable and not self._is_given(tile)
                found.append(tile if own else np.array(tile, order="C"))
        return found

    def _is_given(self, tile: Any) -> bool:
        """Whether a tile is one of the user's, or part of something that lives longer."""
        if tile.base is None:
            return any(tile is each for held in self._given for each in held.tiles.values())
        # New memory may be in pages that are used again; all else may be a view of what was given.
        root = tile
        while isinstance(root.base, np.ndarray):
            root = root.base
        if not large_arrays.is_kept(root.base):
            return True
        return any(np.may_share_memory(tile, each) for held in self._given for each in held.tiles.values())


def _fill(place: NDArray[Any], made: Any) -> None:
    if made.shape != place.shape:
        raise ValueError(f"a tile of shape {made.shape} for a place of shape {place.shape}")
    np.copyto(place, made, casting="no")
