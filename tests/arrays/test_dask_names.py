"""What else Dask's users look for on arrays, against Dask's results."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrays.strategies import pairs, tiled

import linnet as ln
from linnet.errors import InputError

da = pytest.importorskip("dask.array")

few = settings(max_examples=max(5, settings().max_examples // 8))


def both(a: Any, chunks: Any) -> tuple[Any, Any]:
    return tiled(a, chunks), da.from_array(a, chunks=chunks)


def agree(ours: Any, theirs: Any) -> None:
    assert ours.chunks == theirs.chunks
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.compute(), theirs.compute(scheduler="sync"))


# ---- how arrays are cut


@pytest.mark.parametrize("amount", ["10MB", "1 MiB", "100kB", "64 B"])
def test_chunks_of_so_many_bytes(amount: str) -> None:
    from linnet.tiles.amounts import amount as bytes_of

    for shape in ((3_000, 2_000), (7, 100_000), (50, 60, 70)):
        x = ln.zeros(shape, dtype="f4", chunks=amount)
        largest = 4 * int(np.prod([max(sizes) for sizes in x.chunks]))
        assert largest <= bytes_of(amount)
        assert largest > bytes_of(amount) / 8 or x.grid == (1,) * x.ndim
    rows = ln.zeros((10_000, 1_000), chunks=(amount, -1))
    assert rows.grid[1] == 1
    assert rows.chunks[0][0] in (max(1, bytes_of(amount) // 8_000), bytes_of(amount) // 8_000 // 256 * 256)
    np.testing.assert_array_equal(tiled(np.arange(100), 7).rechunk(amount).compute(), np.arange(100))


def test_rechunk_leaves_axes_that_are_not_named() -> None:
    x, y = both(np.arange(60).reshape(3, 4, 5), (2, 2, 3))
    for chunks in ({0: -1}, {1: 3}, {-1: (2, 3), 0: 1}, {}):
        agree(x.rechunk(chunks), y.rechunk(chunks))
        agree(ln.rechunk(x * 1, chunks), y.rechunk(chunks))
    assert ln.asarray(np.zeros((4, 6)), chunks={0: 2}).chunks == ((2, 2), (6,))
    with pytest.raises(InputError, match="names axis 3"):
        x.rechunk({3: 1})


def test_chunks_that_are_no_amount() -> None:
    with pytest.raises(InputError, match=r"chunks='10 sheep'.*512 MiB"):
        ln.zeros(3, chunks="10 sheep")


# ---- the largest


@few
@given(pairs(("i8", "f4", "u1"), min_dims=1, min_side=1, special=False), st.data())
def test_topk(pair: Any, data: Any) -> None:
    a, x = pair
    k = data.draw(st.integers(1, 8)) * data.draw(st.sampled_from([-1, 1]))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    ordered = np.sort(a, axis=axis)
    expected = (
        np.flip(ordered, axis).take(range(min(k, a.shape[axis])), axis)
        if k > 0
        else ordered.take(range(min(-k, a.shape[axis])), axis)
    )
    np.testing.assert_array_equal(x.topk(k, axis).compute(), expected)
    np.testing.assert_array_equal(np.take_along_axis(a, x.argtopk(k, axis=axis).compute(), axis), expected)


# ---- coarser


@pytest.mark.sample(6)
@pytest.mark.parametrize("factors", [{0: 2}, {1: 3}, {0: 3, -1: 4}, {}, {0: 7, 1: 12}])
@pytest.mark.parametrize("reduction", [np.sum, np.mean, np.max, np.median])
def test_coarsen(factors: Any, reduction: Any) -> None:
    a = np.random.default_rng(3).standard_normal((7, 12))
    for chunks in (3, (7, 5), (1, 1)):
        x, y = both(a, chunks)
        ours = ln.coarsen(reduction, x, factors, trim_excess=True)
        named = {axis % 2: factor for axis, factor in factors.items()}
        theirs = da.coarsen(reduction, y.rechunk(-1), named, trim_excess=True)
        np.testing.assert_allclose(ours.compute(), theirs.compute())
        assert ours.shape == theirs.shape


def test_coarsen_passes_keywords_and_refuses_what_is_left_over() -> None:
    a = np.arange(24.0).reshape(4, 6) ** 2
    x = tiled(a, (2, 3))
    ours = ln.coarsen(np.std, x, {0: 2, 1: 3}, ddof=1)
    assert ours.chunks == ((1, 1), (1, 1))
    np.testing.assert_allclose(ours.compute(), a.reshape(2, 2, 2, 3).std((1, 3), ddof=1))
    with pytest.raises(ValueError, match="trim_excess=True"):
        ln.coarsen(np.sum, x, {1: 4})
    assert ln.coarsen(np.sum, tiled(np.zeros((0, 6)), (1, 4)), {0: 5, 1: 3}).compute().shape == (0, 2)
    with pytest.raises(InputError, match="at least 1"):
        ln.coarsen(np.sum, x, {1: 0})


# ---- axes with names


def test_blockwise() -> None:
    a, b = np.arange(30.0).reshape(5, 6), np.arange(24.0).reshape(6, 4)
    (x, xd), (y, yd) = both(a, (2, 3)), both(b, (2, 2))

    def same(func: Any, out: Any, *args: Any, **kwargs: Any) -> None:
        theirs = [{id(x): xd, id(y): yd}.get(id(each), each) for each in args]
        agree(ln.blockwise(func, out, *args, **kwargs), da.blockwise(func, out, *theirs, **kwargs))

    same(np.dot, "ik", x, "ij", y, "jk", concatenate=True, dtype="f8")
    same(lambda s, t: sum(p @ q for p, q in zip(s, t, strict=True)), "ik", x, "ij", y, "jk", dtype="f8")
    same(np.transpose, "ji", x, "ij", dtype="f8")
    same(lambda s, n: s * n, "ij", x, "ij", 3, None, dtype="f8")
    same(lambda s: s[:, :1], "ij", x, "ij", adjust_chunks={"j": 1}, dtype="f8")
    same(lambda s: np.stack([s, s]), "zij", x, "ij", new_axes={"z": 2}, meta=np.empty((0, 0, 0)))
    learnt = ln.blockwise(lambda rows: sum(t.sum(1) for t in rows), "i", x, "ij")
    np.testing.assert_allclose(learnt.compute(), a.sum(1))


def test_blockwise_of_arrays_as_they_are_cut() -> None:
    (x, xd), (y, yd) = both(np.arange(12), 4), both(np.arange(6), 2)
    kinds: dict[str, Any] = {"align_arrays": False, "dtype": "i8", "adjust_chunks": {"i": 1}}

    def ends(s: Any, t: Any) -> Any:
        return s[-1:] + t[-1:]

    agree(
        ln.blockwise(ends, "i", x, "i", y, "i", **kinds), da.blockwise(ends, "i", xd, "i", yd, "i", **kinds)
    )
    with pytest.raises(InputError, match="lie in 2 and 3 tiles"):
        ln.blockwise(ends, "i", x, "i", y.rechunk(3), "i", **kinds)
    with pytest.raises(ValueError, match="have lengths"):
        ln.blockwise(ends, "i", x, "i", y, "i")
    with pytest.raises(InputError, match="lies in 3 tiles"):
        ln.blockwise(np.copy, "i", x, "i", adjust_chunks={"i": (1, 1)})


def test_unify_chunks() -> None:
    (x, xd), (y, yd) = both(np.zeros((6, 4)), (4, 3)), both(np.zeros(6), 3)
    cuts, arrays = ln.unify_chunks(x, "ij", y, "i")
    theirs, others = da.core.unify_chunks(xd, "ij", yd, "i")
    assert cuts == theirs
    assert [each.chunks for each in arrays] == [each.chunks for each in others]


# ---- shapes


@pytest.mark.parametrize(
    ("shape", "chunks", "wanted"),
    [
        ((3, 3, 3), (3, 2, (2, 1)), (3, 9)),
        ((3, 3, 3), (2, 2, 2), (9, 3)),
        ((4, 5, 6), (3, 2, 4), (120,)),
        ((4, 1, 6), (3, 1, 4), (1, 24)),
        ((4, 5), (2, 2), -1),
    ],
)
def test_reshape_blockwise(shape: Any, chunks: Any, wanted: Any) -> None:
    a = np.arange(np.prod(shape)).reshape(shape)
    x, y = both(a, chunks)
    ours = ln.reshape_blockwise(x, wanted)
    if 1 not in shape:
        agree(ours, da.reshape_blockwise(y, wanted))
    np.testing.assert_array_equal(np.sort(ours.compute().ravel()), a.ravel())
    back = ln.reshape_blockwise(ours, shape, chunks=x.chunks)
    assert back.chunks == x.chunks
    np.testing.assert_array_equal(back.compute(), a)


def test_reshape_blockwise_refuses() -> None:
    x = tiled(np.arange(24).reshape(4, 6), 2)
    with pytest.raises(ValueError, match="say chunks="):
        ln.reshape_blockwise(x, (2, 2, 6))
    with pytest.raises(ValueError, match="merges and splits"):
        ln.reshape_blockwise(x, (8, 3))
    with pytest.raises(ValueError, match="in tiles that end at"):
        ln.reshape_blockwise(x, (2, 2, 6), chunks=(2, 2, 2))


# ---- elsewhere


def test_store() -> None:
    a = np.arange(35.0).reshape(5, 7)
    x = tiled(a, (2, 3))
    one, other = np.zeros((5, 7)), np.zeros((8, 9), "i4")
    ln.store([x, x * 2], [one, other], regions=[None, (slice(1, 6), slice(2, 9))])
    np.testing.assert_array_equal(one, a)
    np.testing.assert_array_equal(other[1:6, 2:], a * 2)
    assert other[0].sum() == other[6:].sum() == 0
    again = np.zeros((5, 7))
    assert x.store(again, lock=threading.RLock()) is None
    np.testing.assert_array_equal(again, a)
    number = np.zeros(())
    ln.store(x.sum(), number, lock=False)
    assert number == a.sum()


def test_store_where_workers_have_memory_of_their_own() -> None:
    a = np.arange(35.0).reshape(5, 7)
    target = np.zeros((2, 5, 7))
    with ln.init("simulated", cluster=ln.Cluster(3)):
        ln.store([tiled(a, (2, 3)) + 1, tiled(a, 4)], [target[0], target[1]])
    np.testing.assert_array_equal(target, [a + 1, a])


def test_store_refuses_what_does_not_fit() -> None:
    x = tiled(np.arange(4), 1)
    with pytest.raises(InputError, match=r"at \(0,\) of a target of shape \(3,\)"):
        ln.store(x, np.zeros(3))
    with pytest.raises(InputError, match="has not the shape"):
        ln.store(x, np.zeros(9), regions=(slice(2, 5),))
    with pytest.raises(InputError, match="2 targets"):
        ln.store([x], [np.zeros(4), np.zeros(4)])


@pytest.mark.slow
def test_writers_are_methods(tmp_path: Path) -> None:
    a = np.arange(20.0).reshape(4, 5)
    x = tiled(a, 3)
    x.to_zarr(tmp_path / "x.zarr")
    x.to_hdf5(tmp_path / "x.h5", "x")
    x.to_npy(tmp_path / "x.npy")
    x.to_csv(tmp_path / "x.csv")
    x.to_parquet(tmp_path / "x.parquet")
    for read in (
        ln.from_zarr(tmp_path / "x.zarr"),
        ln.from_hdf5(tmp_path / "x.h5", "x"),
        ln.from_npy(tmp_path / "x.npy"),
        ln.read_csv(tmp_path / "x.csv", header=False),
        ln.read_parquet(tmp_path / "x.parquet"),
    ):
        np.testing.assert_array_equal(np.asarray(read), a)
