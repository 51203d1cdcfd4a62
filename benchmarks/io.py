"""Reading and writing files against the libraries that do nothing else, in the same run on the same cores.

Text: a CSV file of 50 float columns into one NumPy array, against pandas, polars and pyarrow. Zarr: zstd,
chunks of 8 MB, on the local disk, against Dask, and against the slower of the disk and the codec: the disk
is timed on the same compressed bytes, the codec on the same chunks in memory, both with one thread a
core. What is read is summed, so that fresh memory for a result of gigabytes is not what is
measured. S3: a real store (SeaweedFS) on this machine, against obstore moving the same objects.

Sizes are those that are promised: 1 GB of text, 4 GB of Zarr, on 25 GB of disk (the store keeps what was
overwritten for a while). All of it takes a quarter of an hour; `--only csv` a minute.

Rounds are interleaved and the best of each counts. Files stay in the cache of the system for all alike.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln

_CHUNK = 1 << 20
"""Elements of a chunk: 8 MB."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the files are."""

    csv_rows: int = 1_050_000
    zarr_chunks: int = 512
    s3_chunks: int = 512
    rounds: int = 2


QUICK = Sizes(csv_rows=20_000, zarr_chunks=16, s3_chunks=8, rounds=1)


def timed(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The best time of each, taken by turns."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            gc.collect()
            begun = time.perf_counter()
            result = run()
            times[name].append(time.perf_counter() - begun)
            del result
    return {name: min(each) for name, each in times.items()}


def at_most(what: str, target: float, ours: float, theirs: float, who: str) -> Row:
    """A row whose ratio of times must not exceed a target."""
    ratio = ours / theirs
    text = f"{ratio:.2f}  ({ours:.2f} s; {who} {theirs:.2f} s)"
    return Row(what, f"≤ {target}", text, ratio <= target, {"ratio": ratio, "linnet": ours, who: theirs})


def at_least(what: str, target: float, ours: float, limit: float, size: int, who: str) -> Row:
    """A row whose share of what is possible must reach a target."""
    share = limit / ours
    text = f"{share:.0%}  ({size / ours / 1e6:.0f} MB/s; {who} {size / limit / 1e6:.0f} MB/s)"
    return Row(what, f"≥ {target:.0%}", text, share >= target, {"share": share, "linnet": ours, who: limit})


# ---- text


def text(sizes: Sizes, folder: Path) -> list[Row]:
    """A numeric CSV file into an array."""
    import pandas
    import polars
    import pyarrow.csv

    path = folder / "x.csv"
    values = ln.random.default_rng(0).standard_normal((sizes.csv_rows, 50))
    ln.to_csv(values, path, header=[f"c{k}" for k in range(50)])
    size = path.stat().st_size / 1e9

    def arrow() -> Any:
        table = pyarrow.csv.read_csv(path)
        found = np.empty(table.shape)
        for number, column in enumerate(table.columns):
            found[:, number] = column
        return found

    times = timed(
        {
            "linnet": lambda: ln.read_csv(path).compute(),
            "polars": lambda: polars.read_csv(path).to_numpy(),
            "pyarrow": arrow,
        },
        sizes.rounds,
    )
    times |= timed({"pandas": lambda: pandas.read_csv(path).to_numpy()}, 1)
    path.unlink()
    what = f"CSV of {size:.2f} GB, 50 columns, into an array"
    ours = times["linnet"]
    return [
        at_most(what, 0.4, ours, times["pandas"], "pandas"),
        at_most(what, 1.0, ours, times["polars"], "polars"),
        at_most(what, 1.0, ours, times["pyarrow"], "pyarrow"),
    ]


# ---- Zarr


def chunks_of(count: int) -> Any:
    """Chunks that zstd makes a fifth of: walks in steps of a 64th. Few of them, seen again and again."""
    few = min(count, 32)
    steps = np.random.default_rng(0).integers(-50, 50, (few, _CHUNK))
    return np.broadcast_to(np.cumsum(steps, axis=1) / 64, (count // few, few, _CHUNK))


def zarr_local(sizes: Sizes, folder: Path) -> list[Row]:
    """Zarr on the local disk."""
    import dask.array as da
    import numcodecs
    import zarr

    values = chunks_of(sizes.zarr_chunks)
    size, flat = values.nbytes, values.reshape(-1, _CHUNK) if values.shape[0] == 1 else values[0]
    codec = numcodecs.Zstd(level=0)
    ours, theirs, plain = folder / "ours.zarr", folder / "theirs.zarr", folder / "plain"
    cut = (1, 1, _CHUNK)

    def dask_write() -> None:
        target = zarr.create_array(str(theirs), shape=values.shape, chunks=cut, dtype="f8", overwrite=True)
        da.store(da.from_array(values, chunks=cut), target, lock=False)

    packed = [bytes(codec.encode(chunk)) for chunk in flat]
    numbers = [k % len(packed) for k in range(sizes.zarr_chunks)]

    def disk_write() -> None:
        shutil.rmtree(plain, ignore_errors=True)
        plain.mkdir()
        _each(lambda k: (plain / str(k)).write_bytes(packed[k % len(packed)]), range(sizes.zarr_chunks))

    written = timed(
        {
            "linnet": lambda: ln.to_zarr(ln.asarray(values, chunks=cut), ours, overwrite=True),
            "dask": dask_write,
            "codec": lambda: _each(lambda k: codec.encode(flat[k]), numbers),
            "disk": disk_write,
        },
        sizes.rounds,
    )
    room = [np.empty(_CHUNK) for _ in range(2)]
    read = timed(
        {
            "linnet": lambda: float(ln.from_zarr(ours).sum()),
            "dask": lambda: float(da.from_zarr(str(theirs)).sum().compute()),
            "codec": lambda: _each(lambda k: codec.decode(packed[k], room[k % 2].view("u1")), numbers),
            "disk": lambda: _each(lambda k: (plain / str(k)).read_bytes(), range(sizes.zarr_chunks)),
        },
        sizes.rounds,
    )
    rows: list[Row] = []
    for what, times in (("write", written), ("read", read)):
        name = f"{what} Zarr, {size / 1e9:.1f} GB, zstd, chunks of 8 MB"
        slower = max(("codec", "disk"), key=times.__getitem__)
        rows.append(at_least(name, 0.8, times["linnet"], times[slower], size, slower))
        rows.append(at_most(name, 1.0, times["linnet"], times["dask"], "dask"))
    return rows


def _each(function: Callable[[int], Any], numbers: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(function, numbers):
            pass


# ---- S3


@contextmanager
def s3_server(folder: Path) -> Iterator[Any]:
    """The store that the tests use."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from servers.s3 import S3Server  # pyright: ignore[reportMissingImports]

    folder.mkdir()
    with S3Server(folder) as server:
        yield server


def s3(sizes: Sizes, folder: Path) -> list[Row]:
    """Zarr in an object store: not compressed, so that nothing but the way there and back is measured."""
    import obstore
    from obstore.store import S3Store

    values = chunks_of(sizes.s3_chunks)
    flat = values[0]
    numbers = range(sizes.s3_chunks)
    with s3_server(folder / "s3") as server:
        # A disk whose writes are throttled lets the store answer late.
        given = server.options | {"client_options": server.options["client_options"] | {"timeout": "300s"}}
        store = S3Store(server.bucket, **given)
        url = f"{server.url}/x.zarr"

        def write() -> None:
            tiles = ln.asarray(values, chunks=(1, 1, _CHUNK))
            ln.to_zarr(tiles, url, compressors=None, overwrite=True, storage_options=given)

        def put(k: int) -> None:
            obstore.put(store, f"plain/{k}", flat[k % len(flat)].view(np.uint8))

        written = timed({"linnet": write, "obstore": lambda: _each(put, numbers)}, sizes.rounds)
        read = timed(
            {
                "linnet": lambda: float(ln.from_zarr(url, storage_options=given).sum()),
                "obstore": lambda: _each(lambda k: obstore.get(store, f"plain/{k}").bytes(), numbers),
            },
            sizes.rounds,
        )
    rows: list[Row] = []
    for what, times in (("write", written), ("read", read)):
        name = f"{what} Zarr in S3, {values.nbytes / 1e9:.1f} GB, chunks of 8 MB"
        rows.append(at_least(name, 0.8, times["linnet"], times["obstore"], values.nbytes, "obstore"))
    return rows


SECTIONS: dict[str, Callable[[Sizes, Path], list[Row]]] = {"csv": text, "zarr": zarr_local, "s3": s3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small files: does it still run?")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the system's folder)")
    parser.add_argument("--json", type=Path)
    for name, default in (("csv-rows", 1_050_000), ("zarr-chunks", 512), ("s3-chunks", 512), ("rounds", 2)):
        parser.add_argument(f"--{name}", type=int, help=f"default {default:,}")
    given = parser.parse_args()
    sizes = QUICK if given.quick else Sizes()
    told = {name: getattr(given, name) for name in Sizes.__slots__ if getattr(given, name) is not None}
    sizes = Sizes(**{**{name: getattr(sizes, name) for name in Sizes.__slots__}, **told})
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for name in given.only:
            rows += SECTIONS[name](sizes, Path(folder))
    show(rows, "Files", given.json)


if __name__ == "__main__":
    main()
