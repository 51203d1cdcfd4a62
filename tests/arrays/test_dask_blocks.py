"""Functions on tiles that Dask's users look for, against Dask's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.arrays.strategies import tiled

import linnet as ln
from linnet.errors import InputError

da = pytest.importorskip("dask.array")


def both(a: Any, chunks: Any) -> tuple[Any, Any]:
    return tiled(a, chunks), da.from_array(a, chunks=chunks)


def agree(ours: Any, theirs: Any) -> None:
    assert ours.chunks == theirs.chunks
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.compute(), theirs.compute(scheduler="sync"))


# ---- map_blocks


def test_map_blocks_tells_the_function_where_its_tile_is() -> None:
    a, row = np.arange(35.0).reshape(7, 5), np.arange(5.0)
    seen: dict[str, list[Any]] = {"ours": [], "theirs": []}

    def noting(which: str) -> Any:
        def function(t: Any, n: int, r: Any, block_info: Any = None, block_id: Any = None) -> Any:
            if isinstance(block_info, dict):
                seen[which].append((block_id, block_info))
            return (t.sum(1) + r.sum() + n)[None, :, None]

        return function

    kinds = {"drop_axis": 1, "new_axis": [0, 2], "dtype": np.dtype("f8")}
    x, y = both(a, (3, 5))
    r, s = both(row, 5)
    agree(ln.map_blocks(noting("ours"), x, 2, r, **kinds), da.map_blocks(noting("theirs"), y, 2, s, **kinds))
    first, second = (sorted(seen[which], key=lambda pair: pair[0]) for which in ("ours", "theirs"))
    assert first == second
    assert len(first) == 3


@pytest.mark.threads
def test_map_blocks_is_told_of_broadcast_arrays_and_asked_once_for_the_dtype() -> None:
    x, column = tiled(np.zeros((4, 6), "f4"), (2, 3)), tiled(np.zeros((4, 1)), (2, 1))
    calls: list[Any] = []

    def function(t: Any, c: Any, block_info: Any) -> Any:
        calls.append(block_info)
        return t + c

    made = ln.map_blocks(function, x, column)
    assert [info[None]["dtype"] for info in calls] == [None]
    made.compute()
    last = next(info for info in calls[1:] if info[None]["chunk-location"] == (1, 1))
    assert last[0]["array-location"] == [(2, 4), (3, 6)]
    assert last[1]["chunk-location"] == (1, 0)
    assert last[1]["array-location"] == [(2, 4), (0, 1)]
    assert last[None]["dtype"] == np.float64


def test_map_blocks_joins_arrays_of_other_shapes_by_their_tiles() -> None:
    (x, xd), (y, yd) = both(np.arange(100), 25), both(np.arange(20), 5)

    def highest(a: Any, b: Any) -> Any:
        return np.array([a.max(), b.max()])

    agree(
        ln.map_blocks(highest, x, y, chunks=(2,), dtype="i8"),
        da.map_blocks(highest, xd, yd, chunks=(2,), dtype="i8"),
    )
    (m, md), (t, td) = both(np.arange(24.0).reshape(4, 6), (2, 3)), both(np.arange(5.0), 5)
    agree(ln.map_blocks(lambda u, v: u + v.sum(), m, t), da.map_blocks(lambda u, v: u + v.sum(), md, td))
    points, values = np.arange(0.0, 400, 4), np.arange(100.0) ** 2
    agree(ln.map_blocks(np.interp, x, points, values), da.map_blocks(np.interp, xd, points, values))
    with pytest.raises(InputError, match=r"shapes \[\(100,\), \(20,\)\].*numbers of tiles"):
        ln.map_blocks(highest, x, y.rechunk(10), chunks=(2,))


def test_map_blocks_makes_arrays_from_places_alone() -> None:
    def positions(block_info: Any = None) -> Any:
        (start, stop), (left, right) = block_info[None]["array-location"]
        return np.add.outer(10 * np.arange(start, stop), np.arange(left, right))

    chunks = ((2, 1), (2, 2))
    ours = ln.map_blocks(positions, chunks=chunks, dtype="i8")
    agree(ours, da.map_blocks(positions, chunks=chunks, dtype="i8"))
    np.testing.assert_array_equal(ours.compute(), np.add.outer(10 * np.arange(3), np.arange(4)))
    with pytest.raises(InputError, match="or chunks="):
        ln.map_blocks(positions)


def test_map_blocks_adds_axes_in_front_where_chunks_has_more() -> None:
    x, y = both(np.arange(7), 3)
    kinds = {"chunks": (1, (3, 3, 1)), "meta": np.array((), "i8")}
    agree(ln.map_blocks(lambda t: t[None], x, **kinds), da.map_blocks(lambda t: t[None], y, **kinds))


# ---- with neighbours


@pytest.mark.parametrize("depth", [1, {0: (2, 0)}, {0: (0, 1), 1: (1, 2)}, (2, 1)])
def test_map_overlap_with_other_depths_before_and_after(depth: Any) -> None:
    x, y = both(np.arange(56.0).reshape(7, 8) ** 2, ((4, 3), 4))

    def function(t: Any) -> Any:
        return np.cumsum(np.cumsum(t, 0), 1)

    kinds = {"depth": depth, "boundary": "none"}
    agree(ln.map_overlap(function, x, **kinds), da.map_overlap(function, y, **kinds))
    cut_off = ln.map_overlap(lambda t: t, x, trim=False, **kinds)
    np.testing.assert_array_equal(cut_off.compute(), ln.overlap(x, depth, "none").compute())
    agree(ln.overlap(x, depth, "none"), da.overlap.overlap(y, depth, "none"))
    np.testing.assert_array_equal(ln.trim_overlap(ln.overlap(x, depth, "none"), depth, "none"), y)


@pytest.mark.parametrize(
    ("boundary", "mode"), [("reflect", "symmetric"), ("periodic", "wrap"), (7, "constant")]
)
def test_depths_that_differ_take_any_boundary(boundary: Any, mode: str) -> None:
    a = np.arange(11.0)
    keywords = {"constant_values": 7} if mode == "constant" else {}
    padded = np.pad(a, (3, 1), mode, **keywords)
    ours = ln.map_overlap(
        lambda t: np.roll(t, 3) - np.roll(t, -1), tiled(a, (4, 1, 6)), {0: (3, 1)}, boundary
    )
    np.testing.assert_array_equal(ours.compute(), padded[:11] - padded[4:])
    wide = ln.overlap(tiled(a, (4, 1, 6)), {0: (3, 1)}, boundary)
    np.testing.assert_array_equal(ln.trim_overlap(wide, {0: (3, 1)}, boundary).compute(), a)


@pytest.mark.slow
def test_map_overlap_of_several_arrays() -> None:
    a, b = np.arange(30.0).reshape(5, 6), np.arange(6.0)
    (x, xd), (y, yd) = both(a, (2, 3)), both(b, 3)

    def function(s: Any, t: Any) -> Any:
        return np.roll(s, 1, 0) + np.roll(s, 1, -1) * np.roll(t, -1, -1)

    kinds = {"depth": 1, "boundary": "reflect"}
    agree(ln.map_overlap(function, x, y, **kinds), da.map_overlap(function, xd, yd, **kinds))
    each = {"depth": [{0: 1, 1: 1}, 1], "boundary": ["periodic", "nearest"]}
    agree(ln.map_overlap(function, x, y, **each), da.map_overlap(function, xd, yd, **each))
    swapped = ln.map_overlap(lambda t, s: function(s, t), y.rechunk(2), x, **kinds)
    np.testing.assert_array_equal(swapped.compute(), da.map_overlap(function, xd, yd, **kinds).compute())
    column = tiled(np.arange(5.0)[:, None], (2, 1))
    ours = ln.map_overlap(np.add, column, x, **kinds)
    np.testing.assert_array_equal(ours.compute(), a + np.arange(5.0)[:, None])
    with pytest.raises(InputError, match="cut differently"):
        ln.map_overlap(function, x, y.rechunk(2), align_arrays=False, **kinds)
    with pytest.raises(InputError, match="3 entries for 2 arrays"):
        ln.map_overlap(function, x, y, depth=[1, 1, 1])
    with pytest.raises(TypeError, match="needs depth="):
        ln.map_overlap(function, x, y)


def test_map_overlap_drops_and_adds_axes() -> None:
    x, y = both(np.arange(56.0).reshape(7, 8), (3, 8))

    def summed(t: Any) -> Any:
        return np.cumsum(t, 0).sum(1)

    kinds = {"depth": {0: 1, 1: 0}, "boundary": "none", "dtype": "f8"}
    agree(ln.map_overlap(summed, x, drop_axis=1, **kinds), da.map_overlap(summed, y, drop_axis=1, **kinds))
    tripled = ln.map_overlap(
        lambda t: np.stack([np.roll(t, k, 0) for k in (-1, 0, 1)]),
        x,
        new_axis=0,
        chunks=(3, (4, 5, 2), 8),
        **kinds,
    )
    assert tripled.chunks == ((3,), (3, 3, 1), (8,))
    np.testing.assert_array_equal(tripled.compute()[0, :-1], y[1:])
    ids = ln.map_overlap(lambda t, block_id: np.full_like(t, block_id[0]), x, **kinds)
    np.testing.assert_array_equal(ids.compute()[:, 0], [0, 0, 0, 1, 1, 1, 2])


def test_map_overlap_refuses_what_does_not_fit() -> None:
    x = tiled(np.arange(10.0), 4)
    with pytest.raises(ValueError, match=r"returned shape \(2,\).*of shape \(3,\).*expected the same shape"):
        ln.map_overlap(lambda t: t[1:], x, 1)
    with pytest.raises(Exception, match=r"returned shape \(4,\).*of shape \(5,\).*expected the same shape"):
        ln.map_overlap(lambda t: t[1:], x, 1, "none", dtype=float).compute()
    with pytest.raises(InputError, match="shorter than the neighbours"):
        ln.map_overlap(np.sin, x, 3, chunks=(5,))
    with pytest.raises(InputError, match="a number, at least 0, or two"):
        ln.map_overlap(np.sin, x, {0: (1, 2, 3)})
    with pytest.raises(InputError, match="at least 0"):
        ln.map_overlap(np.sin, x, -1)


# ---- tiles and points


def test_partitions_and_blocks() -> None:
    x, y = both(np.arange(42).reshape(7, 6), (3, 2))
    agree(x.partitions[1:, [2, 0]], y.partitions[1:, [2, 0]])
    assert x.partitions.shape == y.partitions.shape


def test_vindex() -> None:
    a = np.arange(7 * 5 * 6).reshape(7, 5, 6)
    x, y = both(a, (3, 2, 4))
    keys: list[Any] = [
        ([0, 6, 3], [4, 0, 1]),
        ([0, 6, 3], slice(None), [5, -1, 2]),
        (slice(1, 6, 2), [[0, 4], [2, 1]], [[5, 0], [1, 1]]),
        ([[0], [6]], [1, 2, 4], slice(None, None, -1)),
        (3, slice(None), [1, 1, 5]),
        ([], [], slice(None)),
    ]
    for key in keys:
        np.testing.assert_array_equal(x.vindex[key].compute(), y.vindex[key].compute())
    with pytest.raises(IndexError, match="names no points"):
        x.vindex[:2]
    with pytest.raises(IndexError, match="arrays of integers and slices"):
        x.vindex[[True] * 7]
    with pytest.raises(IndexError, match="out of bounds"):
        x.vindex[[7], [0]]
