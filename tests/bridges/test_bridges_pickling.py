"""Pickles and Dask's tokens of arrays over those of other libraries: nothing is computed for them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet as ln

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from dask.base import tokenize  # noqa: E402

VALUES = np.arange(42.0).reshape(7, 6)


def over_dask() -> Any:
    return ln.asarray(da.from_array(VALUES, chunks=3) + 1)


# ---- tokens


@pytest.mark.timeout(60)
def test_an_array_over_dask_has_a_token(runs: list[Any]):
    x = over_dask()
    assert tokenize(x) == tokenize(x)
    assert tokenize((x - x.mean(axis=0))[2:]) == tokenize((over_dask() - over_dask().mean(axis=0))[2:])
    assert tokenize(x) != tokenize(x * 2)
    assert not runs


def same(values: Any = VALUES, chunks: Any = 4) -> Any:
    return ln.asarray(values, chunks=chunks)


def plus(tile: Any, more: int) -> Any:
    return tile + more


@pytest.mark.parametrize(
    "build",
    [
        lambda: same(),
        lambda: same(np.arange(3), -1),
        lambda: (same() + 1).T @ same(),
        lambda: same(VALUES[::2, ::-1]).sum(),
        lambda: ln.map_blocks(plus, same(), 1),
        lambda: ln.map_blocks(lambda t: t + 1, same()),
        lambda: ln.random.default_rng(3).normal(size=9, chunks=4),
        lambda: ln.linalg.qr(same(VALUES, (3, 6)))[0],
        lambda: ln.linalg.lstsq(same(), same(VALUES[:, 0]))[1],
        lambda: ln.asarray(np.broadcast_to(1.5, (100, 100)), chunks=50) * 2,
        lambda: ln.zeros((0, 3)) + 1,
    ],
)
def test_tokens_are_those_of_the_expression(build: Any, runs: list[Any]):
    found = {tokenize(each) for each in (build(), build())}
    assert len(found) == 1
    assert not runs


def test_tokens_are_the_same_after_a_pickle():
    for array in (
        same(),
        same(VALUES.T[1:]) + same(VALUES.T[:-1]),
        ln.linalg.cholesky(same(VALUES @ VALUES.T)),
    ):
        assert tokenize(pickle.loads(pickle.dumps(array))) == tokenize(array)


def test_tokens_tell_apart_what_differs(tmp_path: Path):
    x = same()
    np.save(tmp_path / "x.npy", VALUES)
    arrays = [
        x, x.rechunk(3), x.astype("f4"), x + 1, x + 2, same(VALUES + 1), x[1:], x[:-1], x.sum(), x.sum(axis=0),
        ln.map_blocks(plus, x, 1), ln.map_blocks(plus, x, 2), ln.map_blocks(lambda t: t + 1, x),
        ln.map_blocks(lambda t: t + 2, x), ln.random.default_rng(3).normal(size=9, chunks=4),
        ln.random.default_rng(4).normal(size=9, chunks=4), ln.from_npy(tmp_path / "x.npy"),
        ln.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"))[1:], x.persist() * 2, *ln.linalg.qr(x),
    ]  # fmt: skip
    assert len({tokenize(each) for each in arrays}) == len(arrays)


def test_an_array_that_was_written_to_has_another_token():
    values = VALUES.copy()
    x = same(values)
    before = tokenize(x)
    x[0, 0] = 99
    assert tokenize(x) != before


@pytest.mark.slow
def test_tokens_are_the_same_in_another_process():
    text = (
        "print(tokenize(same() + 1), tokenize(over_dask()), tokenize(ln.linalg.qr(same(VALUES, (3, 6)))[0]))"
    )
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from {__name__} import *; {text}"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True
    )
    here = (same() + 1, over_dask(), ln.linalg.qr(same(VALUES, (3, 6)))[0])
    assert done.stdout.split() == [tokenize(each) for each in here]


@pytest.mark.slow
def test_tiles_that_are_kept_elsewhere_stay_there():
    with ln.init("stateless"):
        kept = (same() + 1).persist()
        assert tokenize(kept) == tokenize(kept)
        assert tokenize(kept) != tokenize((same() + 1).persist())


# ---- pickles


@pytest.mark.timeout(60)
def test_an_array_over_dask_is_pickled_as_dask_pickles_it(runs: list[Any]):
    x = over_dask() * 2
    sent = pickle.dumps(x)
    again = pickle.loads(sent)
    assert not runs
    assert np.array_equal(again.compute(), (VALUES + 1) * 2)
    assert again.chunks == x.chunks


def _foreign() -> dict[str, Any]:
    pandas, pyarrow, sparse = (pytest.importorskip(name) for name in ("pandas", "pyarrow", "scipy.sparse"))
    frame = pandas.DataFrame({"a": np.arange(70_000), "b": np.arange(70_000) / 2})
    missing = pandas.Series(pandas.array([1, None, 3] * 30_000, dtype="Int64"))
    return {
        "frame": (frame, frame.to_numpy()),
        "series": (missing, missing.to_numpy(float, na_value=np.nan)),
        "arrow": (pyarrow.table({"a": [1, 2] * 30_000}), np.array([[1], [2]] * 30_000)),
        "sparse": (sparse.coo_array(np.eye(300)), np.eye(300)),
    }


@pytest.mark.parametrize("kind", ["frame", "series", "arrow", "sparse"])
def test_tables_and_sparse_arrays_are_pickled(kind: str, runs: list[Any]):
    given, expected = _foreign()[kind]
    x = ln.asarray(given, chunks=(100,) * expected.ndim if kind == "sparse" else None)
    again = pickle.loads(pickle.dumps(x))
    assert not runs
    assert np.array_equal(again.compute(), expected, equal_nan=True)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_cubed_is_pickled_where_cubed_is():
    cubed = pytest.importorskip("cubed")
    cloudpickle = pytest.importorskip("cloudpickle")
    x = ln.asarray(cubed.from_array(VALUES, chunks=3)) + 1
    assert np.array_equal(pickle.loads(cloudpickle.dumps(x)).compute(), VALUES + 1)


@pytest.mark.slow
def test_a_store_that_xarray_opened_is_pickled_by_name(store: Path, runs: list[Any]):
    xarray = pytest.importorskip("xarray")
    opened = xarray.open_zarr(
        store, chunked_array_type="linnet", chunks={}, consolidated=False, decode_times=False
    )
    name = next(iter(opened.data_vars))
    part = opened[name][..., :2] * 2
    sent = pickle.dumps(part.data)
    assert not runs
    assert len(sent) < 20_000
    assert np.array_equal(pickle.loads(sent).compute(), part.values, equal_nan=True)
    again = pickle.loads(pickle.dumps(opened))
    assert isinstance(again[name].data, ln.Array)
    assert np.array_equal(again[name].values, opened[name].values, equal_nan=True)


def test_blocks_for_dask_hold_the_expression():
    x = ln.to_dask(same(np.zeros((300, 300)), 100)[:2] + 1)
    assert len(pickle.dumps(x)) < 20_000
    assert pickle.loads(pickle.dumps(x)).sum().compute() == 600
