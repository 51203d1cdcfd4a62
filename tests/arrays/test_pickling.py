"""Pickles of lazy arrays: the expression, as data, and nothing computed."""

from __future__ import annotations

import functools
import os
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pickled_functions as functions
import pytest

import linnet as ln
from linnet.arrays.expression.nodes import Source, Stored
from linnet.engines import Threads

pytestmark = pytest.mark.slow

X = np.arange(35.0).reshape(7, 5) - 11
SPD = np.cov(np.random.default_rng(3).standard_normal((6, 40))) + np.eye(6)


def tiled(values: Any = X, chunks: Any = (3, 2)) -> Any:
    return ln.asarray(values, chunks=chunks)


EXPRESSIONS = {
    "in memory": lambda: tiled(),
    "one number": lambda: ln.asarray(3.5),
    "no elements": lambda: tiled(np.empty((0, 4)), 2) + 1,
    "element by element": lambda: np.sin(tiled()) * 2 + tiled()[:, ::-1],
    "reductions": lambda: tiled().mean(axis=0) + tiled().std(),
    "slices": lambda: (tiled() * 2)[1:, ::2] - (tiled() * 2)[:-1, ::2],
    "fancy indexing": lambda: (tiled() + 1)[[4, 0, 4]],
    "transposed": lambda: (tiled() + 1).T @ tiled(),
    "sorted": lambda: ln.sort(tiled() + 0, axis=0),
    "assigned": lambda: assigned(),
    "times": lambda: tiled(np.arange(7).astype("M8[D]"), 3) - np.datetime64("2000-01-01"),
    "complex of another order": lambda: tiled((X + 1j).astype(">c16"), 3) * 2,
    "random numbers": lambda: ln.random.default_rng(5).normal(size=(9, 4), chunks=4) + 1,
    "zeros": lambda: ln.zeros((50, 40), chunks=7) + tiled(np.arange(40.0), 7),
    "kept": lambda: (tiled() + 1).persist() * 2,
    "map_blocks": lambda: ln.map_blocks(functions.doubled, tiled() + 1),
    "arguments": lambda: ln.map_blocks(functions.shifted, tiled(), 2.5, scale=3.0),
    "places": lambda: ln.map_blocks(functions.numbered, tiled()),
    "overlap": lambda: ln.map_overlap(functions.smoothed, tiled(), {0: 1}),
    "partial": lambda: ln.map_blocks(functools.partial(functions.shifted, by=2), tiled()),
    "ufunc": lambda: ln.map_blocks(np.sqrt, abs(tiled())),
    "lines": lambda: ln.apply_along_axis(np.cumsum, 0, tiled()),
    "gufunc": lambda: ln.apply_gufunc(functions.extremes, "(i)->(),()", tiled())[1],
    "vectorize": lambda: ln.vectorize(functions.larger)(tiled(), 2.0),
    "piecewise": lambda: ln.piecewise(tiled(), [tiled() < 0], [functions.doubled, 7.0]),
    "solve": lambda: ln.linalg.solve(tiled(SPD, 2), tiled(SPD[:, :2], 2)) + 1,
    "cholesky": lambda: ln.linalg.cholesky(tiled(SPD, 2) * 2),
    "qr": lambda: ln.linalg.qr(tiled(X, 2))[1],
    "svd": lambda: ln.linalg.svd(tiled(SPD, 2))[1],
    "eigh": lambda: ln.linalg.eigh(tiled(SPD, 2))[0],
    "small det": lambda: ln.linalg.det(ln.asarray(SPD)),
    "stack": lambda: ln.linalg.inv(tiled(np.stack([SPD, SPD + 1]), (1, 6, 6))),
    "residuals": lambda: ln.linalg.lstsq(tiled(X + np.eye(7, 5), 3), tiled(X[:, 0], 3))[1],
    "tile program": lambda: functions.cholesky(A=tiled(SPD, 2)) + 1,
}


def assigned() -> Any:
    x = tiled() + 0
    x[1:4, 2] = -1
    x[x > 15] = 15
    return x


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that gets an entry whenever an engine runs something."""
    found: list[Any] = []
    run = Threads.run

    def counted(self: Any, program: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(program)
        return run(self, program, *args, **kwargs)

    monkeypatch.setattr(Threads, "run", counted)
    return found


@pytest.mark.threads
@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("protocol", [2, 5])
def test_the_expression_comes_back_and_nothing_is_computed(name: str, protocol: int, runs: list[Any]):
    array = EXPRESSIONS[name]()
    runs.clear()
    again = pickle.loads(pickle.dumps(array, protocol))
    assert not runs
    assert type(again.compute()) is type(array.compute())
    assert np.array_equal(again.compute(), array.compute(), equal_nan=True)
    assert again.chunks == array.chunks
    assert again.dtype == array.dtype


@pytest.mark.slow
def test_another_process_computes_the_same(tmp_path: Path):
    sent = {name: build() for name, build in EXPRESSIONS.items()}
    sent["a file"] = zarr_file(tmp_path)[:7, 3:5] + 1
    sent["a mapped file"] = mapped_file(tmp_path)[::2]
    (tmp_path / "sent").write_bytes(pickle.dumps(sent))
    script = (
        "import pickle, sys, numpy as np\n"
        "assert 'linnet' not in sys.modules\n"
        "found = pickle.load(open(sys.argv[1], 'rb'))\n"
        "np.savez(sys.argv[2], **{name: array.compute() for name, array in found.items()})\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, tmp_path / "sent", tmp_path / "found.npz"],
        check=True, timeout=170, env=_environment(),
    )  # fmt: skip
    with np.load(tmp_path / "found.npz") as found:
        for name, array in sent.items():
            assert np.array_equal(found[name], array.compute(), equal_nan=True), name


def _environment() -> dict[str, str]:
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


# ---- data: what is in memory, once


def test_only_what_is_read_travels():
    large = np.zeros((1000, 1000))
    assert len(pickle.dumps(ln.asarray(large, chunks=100)[:3, :3] + 1)) < 5_000


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (lambda x: x[1:] - x[:-1], 1),
        (lambda x: x[::-1] + x, 1),
        (lambda x: x.T + x.rechunk(77).T * x.T, 1),
        (lambda x: ln.asarray(np.lib.stride_tricks.sliding_window_view(x.compute(), 9, 1), chunks=50) + 0, 1),
        (lambda x: ln.asarray(np.broadcast_to(x[0].compute(), (300, 300)), chunks=50) + 0, 0.1),
        (lambda x: x[::30] + x[1::30], 0.1),
        (lambda x: ln.asarray(np.broadcast_to(2.0, (10**6, 10**6)))[5:7] + 1, 0.01),
    ],
)
def test_memory_that_arrays_share_travels_once(build: Any, most: float):
    values = np.random.default_rng(0).standard_normal((300, 300))
    array = build(ln.asarray(values, chunks=100))
    sent = pickle.dumps(array)
    assert len(sent) < most * values.nbytes + 8_000
    corner = (slice(0, 7),) * array.ndim
    assert np.array_equal(pickle.loads(sent)[corner].compute(), array[corner].compute())


def test_buffers_travel_beside_the_pickle():
    values = np.random.default_rng(0).standard_normal((300, 300))
    buffers: list[Any] = []
    sent = pickle.dumps(ln.asarray(values, chunks=100) + 1, 5, buffer_callback=buffers.append)
    assert len(sent) < 5_000
    assert [each.raw().nbytes for each in buffers] == [values.nbytes, 8]  # and the 1
    assert np.array_equal(pickle.loads(sent, buffers=buffers).compute(), values + 1)


def test_a_long_chain_needs_no_recursion():
    x = ln.zeros((4,), chunks=2)
    for _ in range(2_000):
        x = x + 1
    assert pickle.loads(pickle.dumps(x)).shape == (4,)


# ---- files


def zarr_file(folder: Path) -> Any:
    ln.to_zarr(ln.asarray(np.arange(2000.0 * 1000).reshape(2000, 1000), chunks=100), folder / "x.zarr")
    return ln.from_zarr(folder / "x.zarr", chunks=100)


def mapped_file(folder: Path) -> Any:
    np.save(folder / "x.npy", np.arange(90_000.0).reshape(300, 300))
    return ln.asarray(np.load(folder / "x.npy", mmap_mode="r"), chunks=70)[10:, 3:]


def test_files_travel_by_name(tmp_path: Path):
    x = zarr_file(tmp_path)
    part = (x - x.mean(axis=0))[:1000, ::2]
    sent = pickle.dumps(part)
    assert len(sent) < 8_000
    assert str(tmp_path / "x.zarr").encode() in sent
    assert np.array_equal(pickle.loads(sent).compute(), part.compute())


@pytest.mark.parametrize("key", [..., (slice(5, 0, -1), slice(None, None, 3)), (3,), (slice(0, 0),)])
def test_mapped_files_travel_by_name(tmp_path: Path, key: Any):
    x = mapped_file(tmp_path)[key]
    sent = pickle.dumps(x)
    assert len(sent) < 3_000
    again = pickle.loads(sent)
    assert np.array_equal(again.compute(), x.compute())
    assert again.chunks == x.chunks


def test_changes_that_are_in_memory_alone_travel_as_data(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros(6))
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[2] = 5
    assert pickle.loads(pickle.dumps(ln.asarray(private)))[2].compute() == 5


# ---- tiles that were kept


@pytest.mark.parametrize("engine", ["simulated", pytest.param("stateless", marks=pytest.mark.slow)])
def test_tiles_kept_elsewhere_travel_as_values(engine: str):
    chosen = {"cluster": ln.Cluster(nodes=2)} if engine == "simulated" else {}
    with ln.init(engine, **chosen):
        kept = (tiled() + 1).persist()
        sent = pickle.dumps(kept * 2)
        filled = pickle.dumps(ln.zeros((100, 100), chunks=50).persist())
    assert np.array_equal(pickle.loads(sent).compute(), (X + 1) * 2)
    assert isinstance(pickle.loads(pickle.dumps(pickle.loads(sent))).__node__.operands[0], Stored | Source)
    assert not pickle.loads(filled).sum().compute()


def test_no_budget_stands_in_the_way(tmp_path: Path):
    x = zarr_file(tmp_path)
    with ln.init(memory="4 MB"):
        assert len(pickle.dumps(x + 1)) < 5_000


# ---- functions


def local_function() -> Any:
    def inside(tile: Any) -> Any:
        return tile

    return inside


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: ln.map_blocks(lambda t: t + 1, tiled()), "<lambda>"),
        (lambda: ln.map_blocks(local_function(), tiled()) + 1, "local_function.<locals>.inside"),
        (lambda: ln.map_blocks(functools.partial(lambda t, k: t + k, k=1), tiled()), "<lambda>"),
        (lambda: ln.map_overlap(lambda t: t + 1, tiled(), 1).sum(), "<lambda>"),
        (lambda: ln.apply_gufunc(lambda t: (t.min(-1), t.max(-1)), "(i)->(),()", tiled())[0], "<lambda>"),
        (lambda: ln.vectorize(lambda a: a + 1)(tiled()), "<lambda>"),
        (lambda: ln.piecewise(tiled(), [tiled() > 0], [lambda t: -t]), "<lambda>"),
    ],
)
def test_functions_without_a_name_are_refused_by_name(build: Any, name: str):
    with pytest.raises(
        pickle.PicklingError, match=r"test_pickling.py, line \d+.* at the top of a module"
    ) as told:
        pickle.dumps(build())
    assert name in str(told.value)


def test_a_pickle_names_nothing_but_numpy_linnet_and_the_functions():
    """What pickle imports when it loads: there is no code in it."""
    allowed = ("numpy", "linnet", "pickled_functions", "functools", "_codecs", "__builtin__", "copy_reg")
    for name, build in EXPRESSIONS.items():
        for code, argument, _ in pickletools.genops(pickle.dumps(build(), 2)):
            if code.name == "GLOBAL":
                assert argument.partition(" ")[0].partition(".")[0] in allowed, (name, argument)
