"""Operations on sparse arrays: blocks of results, and the kernels that make them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linnet.arrays.expression.builders import blocks, recut
from linnet.arrays.expression.nodes import (
    Access,
    Along,
    At,
    Entry,
    Node,
    Number,
    Operand,
    Piece,
    Spans,
    Stored,
)
from linnet.sparse_arrays.form import (
    Form,
    ascending,
    by_number,
    entry,
    lengths,
    numbers_in,
    of_tiles,
    one_each,
    ranges,
    reordered,
    starts,
    table,
)
from linnet.tiles import Layout
from linnet.tiles.sparse_tile import scalar_text


def dense(form: Form) -> Node:
    """All elements, as a dense array: a task for each block of the grid."""
    if form.all_elements is not None and not isinstance(form.packed, Stored):
        return form.all_elements()
    first, last = ranges(form.places[:, 0], form.layout.grid[0])
    access = (Spans(0, table(first), table(last)),)
    box = _box(form.layout, range(form.ndim))
    piece = Piece("sparse_to_dense", (Operand(0, access), *box), (("fill", scalar_text(form.fill)),))
    return blocks([form.packed], [piece], form.layout, form.dtype)


def _box(layout: Layout, axes: Sequence[int]) -> list[Number]:
    """Start and length of each tile of a result that has these axes."""
    found: list[Number] = []
    for place, axis in enumerate(axes):
        found += [Entry(place, table(starts(layout, axis))), Entry(place, table(lengths(layout, axis)))]
    return found


# ---- element by element


def mapped(form: Form, ufunc: str, operands: Sequence[Any], dtype: np.dtype[Any], fill: Any) -> Form:
    """A function of each element and numbers; None among the operands is where elements stand."""
    texts = tuple("" if each is None else scalar_text(each) for each in operands)
    access = (Along(0),)
    node = by_number(
        "sparse_map", [(form.packed, access)], (), form.sizes, op=ufunc, given=texts, dtype=dtype.str
    )
    return Form(form.layout, dtype, fill, form.places, node)


def paired(one: Form, other: Form, ufunc: str, fill: Any, both: bool) -> Form:
    """A function of two sparse arrays that are cut alike."""
    grid = one.layout.grid
    left, right = numbers_in(one.places, grid), numbers_in(other.places, grid)
    made = np.intersect1d(left, right) if both else np.union1d(left, right)
    if not len(made):
        made = left[:1]
    places = np.stack(np.unravel_index(made, grid), axis=1).astype(np.int64)
    tables = [
        (np.searchsorted(keys, made, "left"), np.searchsorted(keys, made, "right")) for keys in (left, right)
    ]
    sizes = sum(_sizes(form.sizes, *each) for form, each in zip((one, other), tables, strict=True))
    node = by_number(
        "sparse_pair",
        [
            (form.packed, (Spans(0, table(first), table(last)),))
            for form, (first, last) in zip((one, other), tables, strict=True)
        ],
        (),
        sizes,  # pyright: ignore[reportArgumentType]
        op=ufunc,
        fills=(scalar_text(one.fill), scalar_text(other.fill)),
        fill=scalar_text(fill),
        both=both,
    )
    return Form(one.layout, fill.dtype, fill, places, node)


def _sizes(sizes: Any, first: Any, last: Any) -> Any:
    return np.where(last > first, sizes[np.minimum(first, len(sizes) - 1)], 0)


def beside_dense(form: Form, node: Node, ufunc: str, fill: Any, swapped: bool) -> Form:
    """A function of stored elements and of a dense array, broadcast to the shape of the sparse one."""
    offset = form.ndim - node.ndim
    edges = tuple(
        (0, 1) if length == 1 else form.layout.boundaries[axis + offset]
        for axis, length in enumerate(node.shape)
    )
    node = recut(node, Layout(edges))
    access: list[Access] = [
        At(0) if length == 1 else one_each(form.places[:, axis + offset])
        for axis, length in enumerate(node.shape)
    ]
    made = by_number(
        "sparse_beside_dense",
        [(form.packed, (Along(0),)), (node, tuple(access))],
        (),
        form.sizes,
        op=ufunc,
        swapped=swapped,
        fill=scalar_text(fill),
    )
    return Form(form.layout, fill.dtype, fill, form.places, made)


# ---- reductions


def folded(form: Form, op: str, axes: Sequence[int], fill: Any) -> Node:
    """A reduction over some axes, not all, to a dense array; `fill` in the dtype of the reduction."""
    kept = [axis for axis in range(form.ndim) if axis not in axes]
    order = np.lexsort(form.places[:, [*axes[::-1], *kept[::-1]]].T)
    first, last = ranges(form.places[order, kept[0]], form.layout.grid[kept[0]])
    count = math.prod(form.shape[axis] for axis in axes)
    layout = Layout(tuple(form.layout.boundaries[axis] for axis in kept))
    access = (Spans(0, table(first), table(last)),)
    piece = Piece(
        "sparse_fold",
        (Operand(0, access), count, *_box(form.layout, kept)),
        (("op", op), ("kept", tuple(kept)), ("fill", scalar_text(fill))),
    )
    return blocks([reordered(form, order)], [piece], layout, fill.dtype)


# ---- moves


def permuted(form: Form, axes: Sequence[int]) -> Form:
    """Other axes: of the array, each once, or new ones of length 1 where -1 stands."""
    if tuple(axes) == tuple(range(form.ndim)):
        return form
    layout = Layout(tuple((0, 1) if a < 0 else form.layout.boundaries[a] for a in axes))
    nothing = np.zeros(len(form.places), np.int64)
    places = np.stack([nothing if a < 0 else form.places[:, a] for a in axes], axis=1)
    order = ascending(places)
    node = by_number(
        "sparse_transpose", [(form.packed, (one_each(order),))], (), form.sizes[order], axes=tuple(axes)
    )
    return Form(layout, form.dtype, form.fill, places[order], node)


def cut(form: Form, items: Sequence[int | range]) -> Form:
    """A number or a range for each axis, not all numbers. Blocks of the result lie each in one block."""
    edges: list[tuple[int, ...]] = []
    inside = np.ones(len(form.places), np.bool)
    columns: list[Any] = []
    bounds: list[Any] = []
    for axis, item in enumerate(items):
        picked = item if isinstance(item, range) else range(item, item + 1)
        old = np.asarray(form.layout.boundaries[axis], np.int64)
        # For each block: which elements of the range lie in it, counted along the range.
        if picked.step > 0:
            low = -((picked.start - old) // picked.step)
        else:
            low = (picked.start - old) // -picked.step + 1
        cuts = np.clip(low, 0, len(picked))
        first, last = (cuts[:-1], cuts[1:]) if picked.step > 0 else (cuts[1:], cuts[:-1])
        held = np.flatnonzero(last > first)
        if not len(held):
            held = np.zeros(1, np.intp)
        in_order = held if picked.step > 0 else held[::-1]
        new = np.zeros(len(old) - 1, np.int64)
        new[in_order] = np.arange(len(in_order))
        there = form.places[:, axis]
        inside &= np.isin(there, held)
        columns.append(new[there])
        start = picked.start + first * picked.step - old[:-1]
        bounds.append(
            [each[there] for each in (start, last - first, np.full(len(start), picked.step), first)]
        )
        edges.append((0, *table(last[in_order])) if len(picked) else (0, 0))
    kept = [isinstance(item, range) for item in items]
    layout = Layout(tuple(each for each, keep in zip(edges, kept, strict=True) if keep))
    if not inside.any():  # at least one block is stored, and it is empty
        return of_tiles(layout, form.dtype, form.fill, {})
    places = np.stack([each for each, keep in zip(columns, kept, strict=True) if keep], axis=1)
    chosen = np.flatnonzero(inside)
    chosen = chosen[ascending(places[chosen])]
    numbers = [entry(each[chosen]) for four in bounds for each in four]
    node = by_number(
        "sparse_cut", [(form.packed, (one_each(chosen),))], numbers, form.sizes[chosen], kept=tuple(kept)
    )
    return Form(layout, form.dtype, form.fill, places[chosen], node)


def recut_form(form: Form, layout: Layout) -> Form:
    """The same array in other blocks."""
    if layout == form.layout:
        return form
    spans: list[tuple[Any, Any]] = []
    for axis in range(form.ndim):
        old, new = (np.asarray(each.boundaries[axis], np.int64) for each in (form.layout, layout))
        first = np.minimum(np.searchsorted(new, old[:-1], "right") - 1, len(new) - 2)
        last = np.searchsorted(new, old[1:], "left")
        there = form.places[:, axis]
        spans.append((first[there], np.maximum(last, first + 1)[there]))
    met: dict[tuple[int, ...], list[int]] = {}
    for number in range(len(form.places)):
        box = [range(int(low[number]), int(high[number])) for low, high in spans]
        for place in np.ndindex(*map(len, box)):
            key = tuple(each[at] for each, at in zip(box, place, strict=True))
            met.setdefault(key, []).append(number)
    places = np.array(sorted(met), np.int64)
    reads = [met[tuple(place)] for place in places.tolist()]
    first, last = np.array([each[0] for each in reads]), np.array([each[-1] + 1 for each in reads])
    numbers: list[Number] = []
    for axis in range(form.ndim):
        edges = np.asarray(layout.boundaries[axis], np.int64)
        numbers += [entry(edges[places[:, axis]]), entry(edges[places[:, axis] + 1])]
    sizes = [form.sizes[each].sum() for each in reads]
    access = (Spans(0, table(first), table(last)),)
    node = by_number("sparse_recut", [(form.packed, access)], numbers, sizes, fill=scalar_text(form.fill))
    return Form(layout, form.dtype, form.fill, places, node)


# ---- products


def times_dense(form: Form, node: Node, plus: str, times: str, fill: Any) -> Node:
    """A product of a sparse matrix and a dense one, which is dense: a task for each tile of it."""
    node = recut(node, Layout((form.layout.boundaries[1], node.layout.boundaries[1])))
    first, last = ranges(form.places[:, 0], form.layout.grid[0])
    # The rows of the dense matrix that some stored block of the row needs, and those between.
    filled = last > first
    low = np.zeros(len(first), np.int64)
    high = np.ones(len(first), np.int64)
    low[filled] = np.minimum.reduceat(form.places[:, 1], first[filled]) if filled.any() else 0
    high[filled] = np.maximum.reduceat(form.places[:, 1], first[filled]) + 1 if filled.any() else 1
    layout = Layout((form.layout.boundaries[0], node.layout.boundaries[1]))
    arguments = (
        Operand(0, (Spans(0, table(first), table(last)),)),
        Operand(1, (Spans(0, table(low), table(high)), Along(1))),
        Entry(0, table(starts(form.layout, 1)[low])),
        Entry(0, table(lengths(form.layout, 0))),
    )
    attributes = (("plus", plus), ("times", times), ("fill", scalar_text(fill)))
    piece = Piece("sparse_times_dense", arguments, attributes)
    return blocks([form.packed, node], [piece], layout, fill.dtype)


def times_sparse(one: Form, other: Form, plus: str, times: str, fill: Any) -> Form:
    """A product of sparse matrices; its blocks are those that some pair of stored blocks meets in."""
    inner = tuple(one.layout.boundaries[1])
    other = recut_form(other, Layout((inner, other.layout.boundaries[1])))
    from scipy.sparse import csr_array

    height, middle, width = one.layout.grid[0], one.layout.grid[1], other.layout.grid[1]
    left = csr_array((np.ones(len(one.places)), tuple(one.places.T)), shape=(height, middle))
    right = csr_array((np.ones(len(other.places)), tuple(other.places.T)), shape=(middle, width))
    places = np.argwhere((left @ right).toarray() > 0) if height * width < 1 << 22 else _where(left @ right)
    if not len(places):
        places = np.zeros((1, 2), np.int64)
    down = np.lexsort((other.places[:, 0], other.places[:, 1]))
    rows = ranges(one.places[:, 0], height)
    columns = ranges(other.places[down, 1], width)
    i, j = places.T
    tall, wide = lengths(one.layout, 0)[i], lengths(other.layout, 1)[j]
    numbers = [entry(tall), entry(wide), entry(starts(one.layout, 0)[i]), entry(starts(other.layout, 1)[j])]
    node = by_number(
        "sparse_product",
        [
            (one.packed, (Spans(0, table(rows[0][i]), table(rows[1][i])),)),
            (reordered(other, down), (Spans(0, table(columns[0][j]), table(columns[1][j])),)),
        ],
        numbers,
        np.minimum(tall * wide * fill.dtype.itemsize, 1 << 20),
        plus=plus,
        times=times,
        fill=scalar_text(fill),
    )
    layout = Layout((one.layout.boundaries[0], other.layout.boundaries[1]))

    def all_elements() -> Node:
        box = Entry(0, table(lengths(layout, 0))), Entry(1, table(lengths(layout, 1)))
        row, column = Spans(0, table(rows[0]), table(rows[1])), Spans(1, table(columns[0]), table(columns[1]))
        attributes = ("plus", plus), ("times", times), ("fill", scalar_text(fill))
        piece = Piece("sparse_dense_product", (Operand(0, (row,)), Operand(1, (column,)), *box), attributes)
        return blocks([one.packed, reordered(other, down)], [piece], layout, fill.dtype)

    return Form(layout, fill.dtype, fill, places.astype(np.int64), node, all_elements)


def _where(matrix: Any) -> Any:
    matrix.sort_indices()
    return np.stack(matrix.tocoo().coords, axis=1)
