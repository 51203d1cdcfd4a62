"""Random expressions: DAGs with sharing, other axes, other cuts, against the same done by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.elements.core import wrap
from linnet.arrays.elements.elementwise import apply, spread
from linnet.arrays.expression import builders
from linnet.arrays.expression.graph import graph
from linnet.arrays.expression.nodes import Node, Source, Stored
from linnet.arrays.lowering import evaluate
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.arrays.lowering.kept_programs import lowered
from linnet.events import Events, JobStarted
from linnet.tiles import Layout


def cuts(draw: st.DrawFn, length: int) -> tuple[int, ...]:
    inner = draw(st.lists(st.integers(1, length - 1), unique=True, max_size=4)) if length > 1 else []
    return (0, *sorted(inner), length)


def layouts(draw: st.DrawFn, shape: tuple[int, ...]) -> Layout:
    return Layout(tuple(cuts(draw, length) for length in shape))


Pair = tuple[Node, np.ndarray]


@st.composite
def expressions(draw: st.DrawFn) -> list[Pair]:
    """Nodes with their values; each is made of earlier ones."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    pool: list[Pair] = []
    for _ in range(draw(st.integers(1, 3))):
        size = int(np.prod(shape))
        numbers = draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
        data = np.array(numbers).reshape(shape).astype(draw(st.sampled_from(["i8", "i2", "f4", "f8"])))
        pool.append((Source(data, layouts(draw, shape)), data))
    for _ in range(draw(st.integers(1, 7))):
        pool.append(step(draw, pool))
    return pool


def step(draw: st.DrawFn, pool: list[Pair]) -> Pair:
    node, value = draw(st.sampled_from(pool))
    kind = draw(
        st.sampled_from(["binary", "unary", "turn", "sum", "most", "slice", "recut", "join", "spread"])
    )
    if kind == "binary":
        fitting = [p for p in pool if fits(value.shape, p[1].shape)]
        other, theirs = draw(st.sampled_from(fitting))
        ufunc = draw(st.sampled_from([np.add, np.subtract, np.multiply, np.maximum]))
        return apply(ufunc, wrap(node), wrap(other)).__node__, ufunc(value, theirs)
    if kind == "unary":
        ufunc = draw(st.sampled_from([np.add, np.multiply, np.minimum]))
        number = draw(st.integers(-3, 3))
        made = apply(ufunc, wrap(node), number).__node__
        return made, ufunc(value, number)
    if kind == "turn":
        axes = draw(st.permutations(range(value.ndim)))
        return builders.permuted(node, tuple(axes)), value.transpose(axes)
    if kind in ("sum", "most") and value.size:
        axes = tuple(sorted(draw(st.sets(st.integers(0, value.ndim - 1))))) if value.ndim else ()
        keep = draw(st.booleans())
        total = np.asarray(
            value.sum(axes, keepdims=keep) if kind == "sum" else value.max(axes, keepdims=keep)
        )
        made = builders.folded(
            node, kind.replace("most", "max"), axes, total.dtype, keepdims=keep, inner=total.dtype
        )
        return made, total
    if kind == "slice":
        parts = tuple(
            slice(draw(bounds(n)), draw(bounds(n)), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))
            for n in value.shape
        )
        return builders.sliced(node, parts), value[parts]
    if kind == "recut":
        return builders.recut(node, layouts(draw, value.shape)), value
    if kind == "join" and value.ndim:
        axis = draw(st.integers(0, value.ndim - 1))
        others = [p for p in pool if p[1].dtype == value.dtype and same_beside(p[1].shape, value.shape, axis)]
        chosen = [(node, value), *draw(st.lists(st.sampled_from(others), max_size=2))]
        return (
            builders.concatenated([n for n, _ in chosen], axis, value.dtype),
            np.concatenate([v for _, v in chosen], axis),
        )
    if kind == "spread":
        shape = (2, *value.shape)
        return spread(node, shape), np.broadcast_to(value, shape)
    return node, value


def bounds(length: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(-length - 1, length + 1)


def fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(one, other))) < 5000
    except ValueError:
        return False


def same_beside(one: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    return len(one) == len(other) and all(
        a == b for k, (a, b) in enumerate(zip(one, other, strict=True)) if k != axis
    )


@settings(max_examples=100)
@given(expressions(), st.data())
def test_random_expressions_have_numpys_values(pool: list[Pair], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    nodes = [node for node, _ in chosen]
    for found, (node, value) in zip(computed(nodes), chosen, strict=True):
        assert node.shape == value.shape == found.shape
        assert node.layout.shape == value.shape
        np.testing.assert_array_equal(found, value)
    for kept, (node, value) in zip(persisted(nodes), chosen, strict=True):
        np.testing.assert_array_equal(computed([kept])[0], value)
        if isinstance(kept, Stored):
            assert {tile.dtype for tile in kept.tiles.tiles.values()} == {node.dtype}


def source(shape: tuple[int, ...], tile: int, seed: int = 0) -> Source:
    data = np.random.default_rng(seed).random(shape)
    return Source(data, Layout.regular(shape, tile))


def kernels(nodes: list[Node]) -> list[str]:
    program, _ = lowered(nodes)
    return [statement.kernel for statement in program.bound.program.statements]


def test_a_chain_is_one_statement() -> None:
    x = wrap(source((40, 30), 16))
    y = apply(np.sin, x) * 2 + x * x - 1 / (1 + apply(np.exp, -x))
    assert kernels([y.__node__]) == ["fused"]


def test_transposes_cost_no_statement() -> None:
    x = wrap(source((32, 32), 16))
    assert kernels([(x + x.T).__node__]) == ["fused"]


def test_mean_and_spread_of_columns_share_one_pass() -> None:
    x = source((40, 5), 8)
    total = builders.folded(x, "sum", (0,), x.dtype)
    spread_ = builders.folded(x, "moments", (0,), x.dtype, ddof=0.0, root=True)
    assert kernels([total, spread_]).count("fused") == 1


def test_common_subexpressions_run_once() -> None:
    x = source((40,), 8)
    one, two = apply(np.sin, wrap(x)).__node__, apply(np.sin, wrap(x)).__node__
    sums = [builders.folded(each, "sum", (0,), x.dtype) for each in (one, two)]
    assert len(graph(sums).entries) == 3
    assert graph(sums).wanted == [2, 2]


def test_doubling_six_times_is_not_two_to_the_six() -> None:
    x = wrap(source((40,), 8))
    for _ in range(6):
        x = x + x
    (statement,) = lowered([x.__node__])[0].bound.program.statements
    assert statement.kernel == "fused"
    assert lowered([x.__node__])[0].bound.count() == 5


def test_the_same_structure_on_new_data_is_not_planned_again() -> None:
    def expression(seed: int) -> Node:
        x = wrap(source((40, 30), 16, seed))
        return (apply(np.sin, x) + seed).sum(axis=0).__node__

    first, second = lowered([expression(1)])[0], lowered([expression(2)])[0]
    assert first is second


@pytest.mark.slow
def test_long_chains_do_not_recurse() -> None:
    x = wrap(source((10,), 3))
    y = x
    for _ in range(3000):
        y = y + 1
    np.testing.assert_allclose(computed([y.__node__])[0], computed([x.__node__])[0] + 3000)


@pytest.mark.parametrize("tile", [1, 7, 100])
def test_cutting_anew_what_was_computed(tile: int) -> None:
    x = source((30, 20, 5), 4)
    total = builders.folded(x, "sum", (2,), x.dtype)
    again = builders.recut(total, Layout.regular((30, 20), tile))
    np.testing.assert_allclose(computed([again])[0], x.data.sum(2))


def test_axes_of_length_one_appear_and_vanish_as_asked() -> None:
    assert np.asarray(wrap(builders.filled((1, 1), 2.0, "f8"))).shape == (1, 1)
    row = wrap(builders.filled((1, 4), 2.0, "f8", Layout.regular((1, 4), 2)))
    assert np.asarray(wrap(builders.permuted(row.__node__, (1,)))).tolist() == [2.0] * 4
    total = wrap(builders.filled((1,), 2.0, "f8")) + 1
    assert np.asarray(wrap(builders.permuted(total.__node__, ()))).shape == ()


@pytest.mark.threads
def test_tiny_tiles_are_computed_together(monkeypatch):
    monkeypatch.setattr(evaluate, "TINY", 1 << 14)
    data = np.arange(1000.0)
    x = ln.asarray(data, chunks=1)
    started: list[int] = []
    events = Events()
    events.subscribe(lambda event: started.append(event.tasks), JobStarted)
    (found,) = evaluate.computed([(x * 2 + 1).__node__], events=events)
    assert np.array_equal(found, data * 2 + 1)
    assert started == [1]
    # Where tiles can be seen, they are as they were cut.
    assert (x + 1).persist().chunks == x.chunks
    assert (x + 1).map_blocks(lambda tile: tile + tile.size).compute().tolist() == (data + 2).tolist()
