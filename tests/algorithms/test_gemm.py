"""Products as one array: against NumPy over shapes, tile sizes, dtypes, orders and operations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import ENGINE, WAYS
from ways import run as run_in

from linnet.algorithms.gemm import block_gemm
from linnet.engines import Threads
from linnet.errors import InputError
from linnet.events import Events, TaskFinished, TileWritten
from linnet.linalg import matmul
from linnet.tiles import Layout, TiledArray

OPERATIONS = {"N": lambda x: x, "T": lambda x: x.T, "C": lambda x: x.conj().T}


def random(seed, rows, columns, dtype, order="C"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    x = x + 1j * rng.standard_normal(x.shape) if dtype.startswith("c") else x
    return np.array(x.astype(dtype), order=order)


@pytest.mark.slow
@settings(max_examples=45)
@given(
    st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(1, 12),
    st.sampled_from(["f4", "f8", "c8", "c16"]), st.sampled_from("CF"), st.sampled_from("CF"),
    st.sampled_from("NTC"), st.sampled_from("NTC"), st.sampled_from([*WAYS, "in tiles"]),
)  # fmt: skip
def test_any_product(m, n, k, tile, dtype, order_a, order_b, op_a, op_b, way):
    a = random(0, *((m, k) if op_a == "N" else (k, m)), dtype, order_a)
    b = random(1, *((k, n) if op_b == "N" else (n, k)), dtype, order_b)
    expected = OPERATIONS[op_a](a) @ OPERATIONS[op_b](b)
    if way == "in tiles":
        x, y = TiledArray.from_numpy(a, tile), TiledArray.from_numpy(b, tile)
        found = matmul(x, y, op_a=op_a, op_b=op_b, engine=ENGINE)
    else:
        found = run_in(way, "matmul", a, b, op_a=op_a, op_b=op_b, tile=tile)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    close = 1e-4 if dtype in ("f4", "c8") else 1e-11
    assert np.allclose(found, expected, rtol=1e-4, atol=close)


def test_mixed_dtypes_and_integers(run):
    a, b = random(0, 9, 7, "f4"), random(1, 7, 5, "c16")
    assert np.allclose(run("matmul", a, b, tile=3), a @ b)
    ones = np.ones((4, 4), int)
    for tile in (None, 3):
        assert run("matmul", ones, ones, tile=tile).dtype == ones.dtype  # as NumPy has it
        assert (run("matmul", ones, ones, tile=tile) == 4).all()


@pytest.mark.slow
def test_small_products_are_one_task_and_large_ones_several():
    events, tiles, found = Events(), [], []
    events.subscribe(found.append, TaskFinished)
    events.subscribe(tiles.append, TileWritten)
    a, b = random(0, 300, 200, "f8"), random(1, 200, 300, "f8")
    matmul(a, b, engine=ENGINE, events=events)
    assert len(found) <= 1
    found.clear()
    tiles.clear()
    a, b = random(0, 2048, 1030, "f4"), random(1, 1030, 2048, "f4")
    matmul(a, b, tile=384, engine=ENGINE, events=events)
    assert len(tiles) == 36
    assert 2 <= len(found) < 36  # tiles of views are computed several at a time
    found.clear()
    matmul(TiledArray.from_numpy(a, 384), TiledArray.from_numpy(b, 384), engine=ENGINE, events=events)
    assert len(found) == 36


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(576, 300, 640), (500, 300, 610)])
def test_how_many_tiles_a_task_computes_changes_no_bit(dtype, shape):
    m, k, n = shape
    a, b = random(0, m, k, dtype), random(1, k, n, dtype)
    events, tasks = Events(), []
    events.subscribe(tasks.append, TaskFinished)
    found, counts = [], set()
    for workers in (1, 2, 4, 8):
        tasks.clear()
        found.append(matmul(a, b, tile=64, engine=Threads(workers), events=events))
        counts.add(len(tasks))
    # Otherwise nothing is compared; of odd tiles, and of other dtypes, always as many are taken.
    assert len(counts) > 1 or m % 64 or dtype != "f8"
    assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.parametrize("order", "CF")
def test_blocks_of_tiles_are_the_same_wherever_tiles_lie(order):
    a, b = random(0, 70, 45, "f4", order), random(1, 45, 50, "f4", order)
    cut = {"A": (30, 20), "B": (20, 30)}
    apart = {name: TiledArray.from_numpy(x, cut[name]) for name, x in (("A", a), ("B", b))}
    views = {name: TiledArray.from_numpy(x, cut[name], copy=False) for name, x in (("A", a), ("B", b))}
    if order == "C":  # tiles of their own are by columns: these are to lie as the views do
        apart = {
            name: TiledArray(
                x.layout, x.dtype, {at: np.array(tile, order="C") for at, tile in x.tiles.items()}
            )
            for name, x in apart.items()
        }
    bound = block_gemm(2, 4).bind(M=3, N=2, K=3)
    one, other = (ENGINE.run(bound, given)["C"].to_numpy() for given in (apart, views))
    place = np.zeros((70, 50), "f4")
    layout = Layout((views["A"].layout.boundaries[0], views["B"].layout.boundaries[1]))
    ENGINE.run(bound, views, out={"C": TiledArray.over(place, layout)})
    assert np.allclose(place, a @ b, rtol=1e-4, atol=1e-4)
    assert np.array_equal(one, other)
    assert np.array_equal(one, place)


def test_what_is_refused(run):
    with pytest.raises(ValueError, match="matmul: .*size 2 is different from 3"):
        run("matmul", np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(InputError, match="operation 'H' on a factor is not known"):
        run("matmul", np.ones((2, 2)), np.ones((2, 2)), op_a="H")
    assert run("matmul", np.ones(2), np.ones((2, 2))).tolist() == [2.0, 2.0]  # a vector is one, as to NumPy
    with pytest.raises(ValueError, match="matmul"):
        run("matmul", np.ones(()), np.ones((2, 2)))
