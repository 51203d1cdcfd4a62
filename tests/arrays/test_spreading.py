"""Trees of folds and products for a cluster: the same values, joined where they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.lowering.evaluate import computed
from linnet.arrays.lowering.folds_by_node import ONE, Nodes, fold_levels
from linnet.arrays.lowering.kept_programs import lowered
from linnet.engines import Threads
from linnet.session.work import Setting


class Several(Threads):
    """Threads that say they are a cluster: programs are made as for one."""

    def __init__(self, nodes):
        super().__init__(1)
        self.cluster = nodes  # has a count and a grid, as a cluster has


def spread(array, nodes):
    return computed([array.__node__], engine=Several(nodes))[0]


@given(
    st.lists(st.integers(1, 70), min_size=1, max_size=3),
    st.data(),
    st.integers(1, 20),
)
def test_every_leaf_is_joined_once_and_parts_pairwise(grid, data, nodes):
    axes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(grid))), min_size=1))))
    levels = fold_levels(grid, axes, Nodes(nodes))
    left = {axis: grid[axis] for axis in axes}
    for level in levels:
        for axis, bounds in level.items():
            assert (bounds[0], bounds[-1]) == (0, left[axis])
            assert list(bounds) == sorted(set(bounds))
            left[axis] = len(bounds) - 1
    assert set(left.values()) == {1}
    if nodes == 1:
        assert levels == fold_levels(grid, axes, ONE)


@pytest.mark.parametrize("nodes", [2, 3, 4, 7, 8, 16, 33, 64])
def test_one_result_goes_up_a_binary_tree(nodes):
    levels = fold_levels((4 * nodes,), (0,), Nodes(nodes))
    assert levels[0][0] == tuple(range(0, 4 * nodes + 1, 4))
    assert len(levels) - 1 == int(np.ceil(np.log2(nodes)))


def test_where_every_node_has_results_of_its_own_parts_are_not_too_short():
    assert fold_levels((1000, 3), (1,), Nodes(16)) == fold_levels((1000, 3), (1,), ONE)
    assert fold_levels((1000, 16), (1,), Nodes(16))[0] == {1: (0, 4, 8, 12, 16)}


def test_a_grid_of_nodes_is_followed_where_it_fits():
    assert fold_levels((8, 8), (0, 1), Nodes(8, (4, 2)))[0] == {0: (0, 2, 4, 6, 8), 1: (0, 4, 8)}
    assert fold_levels((64, 1), (0,), Nodes(16, (4, 4)))[0] == {0: tuple(range(0, 65, 4))}


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum of columns": lambda x: x.sum(axis=0),
    "sum of rows, kept": lambda x: x.sum(axis=1, keepdims=True),
    "mean": lambda x: x.mean(axis=1),
    "variance": lambda x: x.var(axis=0),
    "deviation of all": lambda x: x.std(),
    "extreme": lambda x: x.max(axis=1) - x.min(axis=1),
    "standardised": lambda x: ((x - x.mean(axis=0)) / x.std(axis=0)).sum(axis=1),
    "part": lambda x: x.sum(axis=1)[3:9],
}


@pytest.mark.parametrize("nodes", [Nodes(2), Nodes(3), Nodes(8), Nodes(6, (3, 2)), Nodes(64)])
@pytest.mark.parametrize("what", REDUCTIONS)
def test_reductions_are_those_of_numpy(what, nodes):
    a = np.random.default_rng(0).integers(-50, 50, (37, 23)).astype(float)
    found = spread(REDUCTIONS[what](ln.asarray(a, chunks=(2, 3))), nodes)
    assert np.allclose(found, REDUCTIONS[what](a), rtol=1e-12, atol=1e-12)


PRODUCTS = {
    "gram": ("ij,ik->jk", (150, 7), (150, 5), (4, 7), (4, 5)),
    "matmul": ("ij,jk->ik", (40, 36), (36, 44), (4, 4), (4, 4)),
    "inner": ("i,i->", (90,), (90,), (4,), (4,)),
    "matvec": ("ij,j->i", (60, 50), (50,), (5, 5), (5,)),
    "batches": ("bij,bjk->bik", (6, 20, 24), (6, 24, 8), (1, 5, 3), (1, 3, 4)),
    "outer": ("i,j->ij", (40,), (30,), (4,), (3,)),
}


@pytest.mark.parametrize("nodes", [2, 5, 16])
@pytest.mark.parametrize("what", PRODUCTS)
def test_products_are_those_of_numpy(what, nodes):
    spec, *shapes, first, second = PRODUCTS[what]
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, shape).astype(float) for shape in shapes)
    made = ln.einsum(spec, ln.asarray(a, chunks=first), ln.asarray(b, chunks=second))
    assert np.array_equal(spread(made + 1, Nodes(nodes)), np.einsum(spec, a, b) + 1)


def test_three_operands_and_booleans():
    rng = np.random.default_rng(2)
    t, u, v = rng.integers(0, 5, (24, 8, 6)), rng.integers(0, 5, (8, 3)), rng.integers(0, 5, (6, 3))
    made = ln.einsum("ijk,jr,kr->ir", ln.asarray(t, chunks=(24, 1, 6)), ln.asarray(u), ln.asarray(v))
    assert np.array_equal(spread(made, Nodes(4)), np.einsum("ijk,jr,kr->ir", t, u, v))
    a = rng.random((30, 40)) > 0.9
    x = ln.asarray(a, chunks=(30, 2))
    assert np.array_equal(spread(x @ x.T, Nodes(4)), a @ a.T)


def test_an_operand_shared_by_products_stays_shared():
    a = np.arange(120.0).reshape(60, 2)
    x = ln.asarray(a, chunks=(3, 2)) + 1
    gram = x.T @ x
    made = ln.concatenate([gram, gram @ gram]) - gram.sum()
    b = a + 1
    g = b.T @ b
    assert np.allclose(spread(made, Nodes(4)), np.concatenate([g, g @ g]) - g.sum(), rtol=1e-14)


def test_square_products_are_not_cut_along_the_sum():
    x = ln.asarray(np.ones((64, 64)), chunks=4)
    made, _ = lowered([(x @ x).__node__], Setting(16))
    assert made.bound.count() == 256


@pytest.mark.threads
def test_on_one_node_nothing_changes():
    x = ln.asarray(np.random.default_rng(3).random(1000), chunks=10)
    assert spread(x.sum(), ONE) == x.sum().compute()
    program = lowered([x.sum().__node__], Setting.on(None))[0]
    assert program is lowered([x.sum().__node__])[0]
    assert program is not lowered([x.sum().__node__], Setting(4))[0]
