"""Products as one array: against NumPy over shapes, tile sizes, dtypes, orders and operations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.algorithms import gemm as gemm_module
from linnet.algorithms.gemm import block_gemm, conjugate_gemm, matmul, product
from linnet.engines import Threads
from linnet.errors import InputError
from linnet.events import Events, TaskFinished, TileWritten
from linnet.tiles import Layout, TiledArray

ENGINE = Threads(2)
OPERATIONS = {"N": lambda x: x, "T": lambda x: x.T, "C": lambda x: x.conj().T}


def random(seed, rows, columns, dtype, order="C"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    x = x + 1j * rng.standard_normal(x.shape) if dtype.startswith("c") else x
    return np.array(x.astype(dtype), order=order)


@settings(max_examples=60)
@given(
    st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(1, 12),
    st.sampled_from(["f4", "f8", "c8", "c16"]), st.sampled_from("CF"), st.sampled_from("CF"),
    st.sampled_from("NTC"), st.sampled_from("NTC"), st.booleans(),
)  # fmt: skip
def test_any_product(m, n, k, tile, dtype, order_a, order_b, op_a, op_b, tiled):
    a = random(0, *((m, k) if op_a == "N" else (k, m)), dtype, order_a)
    b = random(1, *((k, n) if op_b == "N" else (n, k)), dtype, order_b)
    expected = OPERATIONS[op_a](a) @ OPERATIONS[op_b](b)
    x, y = (TiledArray.from_numpy(a, tile), TiledArray.from_numpy(b, tile)) if tiled else (a, b)
    found = product(x, y, op_a=op_a, op_b=op_b, tile=tile, engine=ENGINE)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    close = 1e-4 if dtype in ("f4", "c8") else 1e-11
    assert np.allclose(found, expected, rtol=1e-4, atol=close)
    if op_a == op_b == "N":  # in other tiles, so that BLAS may round otherwise
        assert np.allclose(matmul(x, y, tile=tile, engine=ENGINE).to_numpy(), found, rtol=1e-4, atol=close)


def test_mixed_dtypes_and_integers():
    a, b = random(0, 9, 7, "f4"), random(1, 7, 5, "c16")
    assert np.allclose(product(a, b, tile=3, engine=ENGINE), a @ b)
    ones = np.ones((4, 4), int)
    assert product(ones, ones).dtype == np.float64
    assert (product(ones, ones) == 4).all()


def test_small_products_are_one_task_and_large_ones_many(monkeypatch):
    monkeypatch.setattr(gemm_module, "available_cores", lambda: 2)
    events, tiles, found = Events(), [], []
    events.subscribe(found.append, TaskFinished)
    events.subscribe(tiles.append, TileWritten)
    a = random(0, 300, 200, "f8")
    product(a, a.T, engine=ENGINE, events=events)
    assert len(found) == 1
    a = random(0, 2048, 30, "f4")
    product(a, a.T, engine=ENGINE, events=events)
    assert len(tiles) == 1 + 36
    assert len(found) == 1 + 4  # tiles of views are computed several at a time
    product(TiledArray.from_numpy(a, 384), TiledArray.from_numpy(a.T, 384), engine=ENGINE, events=events)
    assert len(found) == 1 + 4 + 36


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_how_many_tiles_a_task_computes_changes_no_bit(dtype, monkeypatch):
    a, b = random(0, 576, 300, dtype), random(1, 300, 640, dtype)
    events, blocks = Events(), list[int]()
    events.subscribe(lambda event: blocks.append(1), TaskFinished)
    found = []
    for cores in (1, 2, 4, 8, 100):
        monkeypatch.setattr(gemm_module, "available_cores", lambda cores=cores: cores)
        found.append(product(a, b, tile=64, engine=ENGINE, events=events))
        blocks.append(0)
    tasks = [len(part) for part in "".join(map(str, blocks)).split("0")[:-1]]
    assert tasks == [10, 10, 10, 15, 90]
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


def test_a_place_for_the_product():
    a, out = random(0, 8, 8, "f8"), np.zeros((8, 8))
    assert product(a, a, tile=3, engine=ENGINE, out=out) is out
    assert np.allclose(out, a @ a)
    with pytest.raises(
        InputError, match=r"the product is 8×8 of float64; out has shape \(8, 7\) and dtype float64"
    ):
        product(a, a, out=np.zeros((8, 7)))


def test_what_is_refused():
    with pytest.raises(InputError, match="cannot multiply 2×3 by 2×3"):
        product(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(InputError, match="operation 'H' on a factor is not known"):
        product(np.ones((2, 2)), np.ones((2, 2)), op_a="H")
    with pytest.raises(InputError, match="expected a matrix"):
        product(np.ones(2), np.ones((2, 2)))
    assert conjugate_gemm.proven
