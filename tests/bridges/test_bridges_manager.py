"""The methods xarray asks for, against Dask's own and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.errors import InputError

pytest.importorskip("xarray")
pytestmark = pytest.mark.needs("xarray")

from linnet.arrays.functions.named_axes import common  # noqa: E402
from linnet.bridges.chunk_manager import LinnetManager  # noqa: E402
from linnet.bridges.chunk_sizes import normalized  # noqa: E402


def cut(values: np.ndarray, chunks: Any) -> Any:
    return ln.asarray(values, chunks=chunks)


def numbers(*shape: int) -> np.ndarray:
    values = np.random.default_rng(0).normal(size=shape)
    values[values > 1] = np.nan
    return values


def test_xarray_finds_the_manager() -> None:
    from xarray.namedarray.parallelcompat import get_chunked_array_type, list_chunkmanagers

    assert isinstance(list_chunkmanagers()["linnet"], LinnetManager)
    assert isinstance(get_chunked_array_type(cut(np.zeros(4), 2)), LinnetManager)


def test_every_method_of_xarrays_class_is_ours() -> None:
    from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

    asked = {
        name for name, each in vars(ChunkManagerEntrypoint).items() if callable(each) or name == "array_api"
    }
    ours = vars(LinnetManager)
    assert {name for name in asked if not name.startswith("_")} - ours.keys() == {"is_chunked_array"}


# ---- chunks


@given(st.integers(1, 300), st.integers(1, 60), st.integers(1, 40), st.integers(50, 5000))
def test_chunks_left_to_us_are_multiples_of_the_files(days: int, lines: int, stored: int, limit: int) -> None:
    found = normalized(("auto", "auto"), (days, lines), limit, "f8", (min(stored, days), lines))
    assert tuple(map(sum, found)) == (days, lines)
    assert all(size % min(stored, days) == 0 for size in found[0][:-1])
    assert found[1] == (lines,)
    assert found[0][0] * lines * 8 <= max(limit, min(stored, days) * lines * 8)


@pytest.mark.needs("dask")
@pytest.mark.parametrize(
    "chunks", [3, (2, 5), (-1, 4), ((4, 6), 4), {0: 5}, ((10,), (8,)), (None, 2)], ids=repr
)
def test_chunks_mean_what_they_mean_to_dask(chunks: Any) -> None:
    from dask.array.core import normalize_chunks

    assert normalized(chunks, (10, 8), None, "f8") == normalize_chunks(chunks, (10, 8), dtype="f8")


def test_chunks_as_amounts_and_mistakes() -> None:
    assert normalized(("1 kB", -1), (100, 25), None, "f8")[0][0] == 5
    with pytest.raises(InputError, match="has 1 entries for an array of shape"):
        normalized((3,), (4, 4), None, "f8")
    with pytest.raises(InputError, match="without a shape, give the lengths of all chunks"):
        normalized((3, 3))


def test_rechunk_leaves_unnamed_axes_alone() -> None:
    x = cut(np.zeros((6, 6)), (2, 3))
    assert LinnetManager().rechunk(x, {0: 3}).chunks == ((3, 3), (3, 3))
    assert LinnetManager().rechunk(x, (None, -1)).chunks == ((2, 2, 2), (6,))


def test_unify_cuts_wherever_one_is_cut() -> None:
    x, y = cut(np.arange(6.0), 4), cut(np.arange(12.0).reshape(6, 2), (3, 1))
    cuts, (one, other) = LinnetManager().unify_chunks(x, "i", y, "ij")
    assert cuts == {"i": (3, 1, 2), "j": (1, 1)}
    assert one.chunks == ((3, 1, 2),)
    assert other.chunks == ((3, 1, 2), (1, 1))
    assert common([(5,)]) == (5,)
    with pytest.raises(ValueError, match=r"axes named 'i' have lengths \[5, 6\]"):
        LinnetManager().unify_chunks(x, "i", cut(np.zeros(5), 2), "i")


# ---- functions on tiles


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 7), st.sampled_from([0, 1, None, (0, 1)]))
def test_reduction(rows: int, columns: int, chunk: int, axis: Any) -> None:
    x = np.random.default_rng(0).normal(size=(rows, columns))
    made = LinnetManager().reduction(cut(x, chunk), np.max, axis=axis, dtype=float)
    np.testing.assert_array_equal(made.compute(), x.max(axis=axis))
    kept = LinnetManager().reduction(
        cut(x, chunk),
        np.sum,
        combine_func=np.sum,
        aggregate_func=np.sum,
        axis=axis,
        dtype=float,
        keepdims=True,
    )
    np.testing.assert_allclose(kept.compute(), x.sum(axis=axis, keepdims=True))


@given(st.integers(1, 30), st.integers(1, 7), st.sampled_from([0, 1]))
def test_scan(rows: int, chunk: int, axis: int) -> None:
    x = np.random.default_rng(0).normal(size=(rows, 3))
    made = LinnetManager().scan(np.cumsum, np.add, 0, cut(x, chunk), axis=axis, dtype=float)
    np.testing.assert_allclose(made.compute(), np.cumsum(x, axis))


@pytest.mark.slow
@given(st.integers(1, 7))
def test_scan_with_a_summary_fills_forward(chunk: int) -> None:
    x = numbers(25)

    def pushed(t: np.ndarray, axis: int, dtype: Any) -> np.ndarray:
        found = t.copy()
        for k in range(1, len(t)):
            found[k] = found[k - 1] if np.isnan(t[k]) else t[k]
        return found

    def last(t: np.ndarray, axis: int, keepdims: bool) -> np.ndarray:
        known = t[~np.isnan(t)]
        return known[-1:] if len(known) else t[-1:]

    def filled(before: np.ndarray, tile: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(tile), before, tile)

    made = LinnetManager().scan(pushed, filled, np.nan, cut(x, chunk), axis=0, dtype=float, preop=last)
    np.testing.assert_array_equal(made.compute(), pushed(x, 0, float))


def test_scan_needs_an_axis() -> None:
    with pytest.raises(ValueError, match="scan needs an axis"):
        LinnetManager().scan(np.cumsum, np.add, 0, cut(np.zeros(3), 1))


def test_map_blocks_leaves_dasks_arguments_out() -> None:
    x = cut(np.arange(6.0), 4)
    made = LinnetManager().map_blocks(lambda t, by: t * by, x, dtype=float, meta=np.empty(0), token="t", by=2)
    np.testing.assert_array_equal(made, np.arange(6.0) * 2)


def test_blockwise_contracts_transposes_broadcasts_and_adds_axes() -> None:
    manager = LinnetManager()
    a, b = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
    x, y = cut(a, 2), cut(b, 3)
    product = manager.blockwise(np.dot, "ik", x, "ij", y, "jk", concatenate=True, dtype=float)
    np.testing.assert_array_equal(product.compute(), a @ b)
    lists = manager.blockwise(
        lambda t: np.sum([each.sum(axis=1) for each in t], axis=0), "i", x, "ij", dtype=float
    )
    np.testing.assert_array_equal(lists.compute(), a.sum(axis=1))
    turned = manager.blockwise(np.transpose, "ji", x, "ij")
    np.testing.assert_array_equal(turned.compute(), a.T)
    scaled = manager.blockwise(
        lambda t, by, r: t * by + r, "ij", x, "ij", 3, None, cut(np.arange(4.0), 2), "j"
    )
    np.testing.assert_array_equal(scaled.compute(), a * 3 + np.arange(4.0))
    more = manager.blockwise(lambda t: np.stack([t, t], -1), "ijz", x, "ij", new_axes={"z": 2}, dtype=float)
    np.testing.assert_array_equal(more.compute(), np.stack([a, a], -1))
    fewer = manager.blockwise(lambda t: t[:1], "ij", x, "ij", adjust_chunks={"i": 1}, dtype=float)
    np.testing.assert_array_equal(fewer.compute(), a[::2])
    twice = manager.blockwise(
        lambda t: np.repeat(t, 2, 0),
        "ij",
        x,
        "ij",
        adjust_chunks={"i": lambda n: 2 * n},
        meta=np.empty((0, 0)),
    )
    np.testing.assert_array_equal(twice.compute(), np.repeat(a, 2, 0))
    with pytest.raises(InputError, match=r"axes \['q'\] of the result belong to no array"):
        manager.blockwise(np.copy, "q", x, "ij")


def test_apply_gufunc() -> None:
    manager = LinnetManager()
    a = np.arange(24.0).reshape(2, 3, 4)
    x = cut(a, (1, 2, -1))
    np.testing.assert_array_equal(
        manager.apply_gufunc(lambda t: t.sum(-1), "(i)->()", x, output_dtypes=[float]), a.sum(-1)
    )
    np.testing.assert_array_equal(
        manager.apply_gufunc(lambda t: t.sum(-1), "(i)->()", x, axis=1, allow_rechunk=True), a.sum(1)
    )
    np.testing.assert_array_equal(
        manager.apply_gufunc(lambda t: t.sum(-1), "(i)->()", x, keepdims=True), a.sum(-1, keepdims=True)
    )
    moved = manager.apply_gufunc(
        lambda t: np.cumsum(t, -1), "(i)->(i)", x, axes=[(0,), (1,)], allow_rechunk=True, meta=np.empty(0)
    )
    np.testing.assert_array_equal(moved, np.moveaxis(np.cumsum(a, 0), 0, 1))
    low, high = manager.apply_gufunc(lambda t: (t.min(-1), t.max(-1)), "(i)->(),()", x)
    np.testing.assert_array_equal(high - low, np.full((2, 3), 3))
    with pytest.raises(
        ValueError, match="axis 'i' of argument 0 lies in 2 tiles, and the function takes whole"
    ):
        manager.apply_gufunc(lambda t: t.sum(-1), "(i)->()", cut(a, 2))


@given(
    st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=5), min_size=1, max_size=5), st.integers(1, 5)
)
def test_shuffle_keeps_groups_together(groups: list[list[int]], chunk: int) -> None:
    x = np.arange(24.0).reshape(12, 2)
    made = LinnetManager().shuffle(cut(x, (chunk, 1)), groups, 0, "auto")
    np.testing.assert_array_equal(made.compute(), x[np.concatenate(groups)])
    edges = set(np.cumsum(made.chunks[0]).tolist())
    assert edges <= set(np.cumsum([len(group) for group in groups]).tolist())


# ---- values


def test_compute_and_persist_pass_other_things_through() -> None:
    manager = LinnetManager()
    x = cut(np.arange(4.0), 2) + 1
    values, text, plain = manager.compute(x, "text", np.arange(2))
    assert isinstance(values, np.ndarray)
    assert values.flags.writeable
    assert text == "text"
    np.testing.assert_array_equal(plain, [0, 1])
    kept, number = manager.persist(x, 3)
    assert number == 3
    assert kept.__node__ is not x.__node__
    np.testing.assert_array_equal(kept, values)
    assert manager.array_api is ln


def test_store_writes_regions_of_several_targets_in_one_run(runs: list[Any]) -> None:
    import threading

    x = cut(np.arange(12.0).reshape(3, 4), 2)
    one, other = np.zeros((3, 4)), np.zeros((5, 4))
    total = x + 1
    LinnetManager().store(
        [total, total * 2], [one, other], lock=threading.Lock(), regions=[None, (slice(2, 5), slice(None))]
    )
    assert len(runs) == 1
    np.testing.assert_array_equal(one, np.arange(12.0).reshape(3, 4) + 1)
    np.testing.assert_array_equal(other[2:], 2 * one)
    np.testing.assert_array_equal(other[:2], 0)


def test_store_mistakes() -> None:
    x = cut(np.zeros(4), 2)
    with pytest.raises(InputError, match="1 arrays, 2 targets, 1 regions: one for each"):
        LinnetManager().store([x], [np.zeros(4), np.zeros(4)])
    with pytest.raises(InputError, match="one slice for each axis, no steps"):
        LinnetManager().store(x, np.zeros(8), regions=(slice(0, 8, 2),))
    with pytest.raises(TypeError, match="store takes arrays of linnet's, not ndarray"):
        LinnetManager().store(np.zeros(4), np.zeros(4))
