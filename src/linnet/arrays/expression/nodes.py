"""What arrays are made of: the whole of the expression language on one page.

    Source        an array of the user's, in memory (or mapped), cut as one likes
    Stored        an array in pieces: the result of `persist`
    Map           element by element, with broadcasting: op(a, b, ...)
    Axes          the same elements under other axes: transposes, new axes, dropped ones
    Fold          a reduction over axes by something associative: sum, max, moments, ...
    Blocks        anything else: each tile of the result is one kernel call on tiles of operands
    Part          one of several results of a `Blocks`
    ProgramCall   a tile program called on whole arrays
    Result        one of the arrays that it makes

Nodes are immutable and shared: an expression is a DAG. Every node knows shape, dtype and
layout; the layouts of operands of a `Map` agree along every axis that is not broadcast,
because the builders in `building` see to it. So lowering never has to move anything: where
elements have to change tiles, there is a `Blocks` that says so. Likewise the operands of a `ProgramCall`
are cut as its recipe says; which of its programs runs is decided when the expression is lowered.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.recipe import Recipe
from linnet.records import record
from linnet.tiles import Layout, TiledArray


class Node:
    """A lazy array: what it is made of, not what it holds."""

    __slots__ = ("__weakref__",)
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout

    @property
    def operands(self) -> tuple[Node, ...]:
        """The nodes it reads."""
        return ()

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.shape)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many tiles along each axis."""
        return self.layout.grid


UNASKED = 1 << 18
"""Bytes of an array in memory up to which it may stay without a layout."""


class Source(Node):
    """An array in memory. Its tiles are views, so it can be cut in any way at no cost."""

    __slots__ = ("_layout", "data")

    # Every small operation makes one of these, so it has no more than it needs, and what it is asked for
    # does not go through a function of Python's.
    shape = property(attrgetter("data.shape"))  # type: ignore[assignment]
    dtype = property(attrgetter("data.dtype"))  # type: ignore[assignment]

    def __init__(self, data: NDArray[Any], layout: Layout | None = None) -> None:
        self.data: NDArray[Any] = data
        self._layout = layout

    @property
    def in_one_tile(self) -> bool:
        """Whether it is one tile, or so short that nobody asked yet."""
        if self._layout is None and self.data.nbytes <= UNASKED:
            return True
        return self.layout.is_whole

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        if self._layout is None:
            from linnet.arrays.expression.chunking import automatic

            self._layout = automatic(self.shape, self.dtype.itemsize)
        return self._layout


@record(eq=False)
class Stored(Node):
    """An array in pieces."""

    tiles: TiledArray

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.tiles.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.tiles.dtype

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return self.tiles.layout


@record(eq=False)
class Map(Node):
    """`op` element by element; operands are broadcast to `shape` as NumPy does."""

    op: str
    """A name in `kernels.operations`; "fill" spreads a single operand over the shape."""
    inputs: tuple[Node, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout
    extra: str | None = None
    """What the operation needs besides: the dtype of a "cast"."""

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.inputs


@record(eq=False)
class Axes(Node):
    """Axis k is axis `axes[k]` of the operand, or new and of length 1 where that is -1.

    Axes of the operand that are not named have length 1 and are gone.
    """

    operand: Node
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.operand,)


@record(eq=False)
class Fold(Node):
    """A reduction; see `kernels.folds` for the kinds."""

    operand: Node
    kind: str
    axes: tuple[int, ...]
    """Reduced axes, ascending."""
    keepdims: bool
    inner: str | None
    """The dtype to compute in, or None for the kind's own."""
    finish: tuple[tuple[str, Any], ...]
    """Keywords for the last joining: ddof, root."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.operand,)


# ---- blocks: which tiles of the operands a tile of the result is made of


@record
class Along:
    """The tile at `scale · i + offset`, where i counts the result's tiles along an axis."""

    axis: int
    scale: int = 1
    offset: int = 0


@record
class At:
    """Always the same tile."""

    position: int


@record
class Span:
    """All tiles in a range, the same for every tile of the result."""

    start: int
    stop: int


@record
class Spans:
    """A range of tiles for each place of the result along an axis."""

    axis: int
    starts: tuple[int, ...]
    stops: tuple[int, ...]


@record
class Entry:
    """A number for each place of the result along an axis."""

    axis: int
    values: tuple[int, ...]


Access = Along | At | Span | Spans
Number = int | float | Entry


@record
class Operand:
    """Tiles of an operand: an access for each of its axes. Ranges reach the kernel as nested lists."""

    which: int
    """Which of the node's operands."""
    access: tuple[Access, ...]


@record
class Piece:
    """Part of a result: the tiles of a box of its grid, each made by one call of a kernel."""

    kernel: str
    arguments: tuple[Operand | Number, ...]
    """Tiles and numbers, in the order in which the kernel takes them."""
    attributes: tuple[tuple[str, Any], ...] = ()
    first: tuple[int, ...] | None = None
    """The first tile of the box along each axis; None: the box is the whole grid."""
    last: tuple[int, ...] | None = None
    """One past the last."""


@record(eq=False)
class Blocks(Node):
    """Tiles made by kernels from tiles of operands, as its pieces say. Every tile is made once."""

    inputs: tuple[Node, ...]
    pieces: tuple[Piece, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout
    parts: int | tuple[int, ...] = 0
    """If not 0, the kernel returns a list of so many tiles; `Part` names one. Several numbers: lists of
    lists of tiles, with an axis each in the accesses of those who read them."""

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.inputs


@record(eq=False)
class Part(Node):
    """One of the results of a `Blocks` with several."""

    whole: Blocks
    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.whole,)


# ---- tile programs


_NOTHING = Layout(())


@record(eq=False)
class ProgramCall(Node):
    """A tile program called on arrays. It is no array itself: its `Result`s are."""

    recipe: Recipe
    """The programs that do it, and what they make."""
    inputs: tuple[Node, ...]
    """One for each input that the recipe names, cut as it asks for."""

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return ()

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return np.dtype(np.bool_)

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return _NOTHING

    @property
    def operands(self) -> tuple[Node, ...]:
        return self.inputs


@record(eq=False)
class Result(Node):
    """One of the arrays that a `ProgramCall` makes."""

    call: ProgramCall
    name: str
    """As the recipe calls it."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.call,)
