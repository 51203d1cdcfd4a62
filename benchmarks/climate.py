"""A climatology through xarray: on Linnet, and on Dask.

The data are made up: daily temperatures on a map, as models write them (CMIP6: float32, NaN where
there is none, a calendar without leap days, compressed chunks along time), 10 GB unless `--size` says
otherwise. Asked for are the mean of each month at each place, the anomalies from it, and their mean
over the area, day by day: 12 maps and one number for each day. Each library runs in a process of its
own, from opening the store to the values, by turns; memory is the peak of that process.

    python benchmarks/climate.py --size "1 GB" --folder /tmp
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, ordinary_memory, show

from linnet.tiles.amounts import amount, human

LATITUDES, LONGITUDES, CHUNK = 192, 288, 73
MEMORY = "2 GB"
"""What the process of a run may take in all,"""
BUDGET = "1.6 GB"
"""and what of it arrays may."""


def write(path: Path, size: int) -> int:
    """Make the store; how many days it has."""
    import xarray as xr
    import zarr

    days = max(CHUNK, size // (LATITUDES * LONGITUDES * 4) // CHUNK * CHUNK)
    latitude = np.linspace(-90, 90, LATITUDES, dtype=np.float32)
    rng = np.random.default_rng(0)
    weather = rng.normal(0, 3, (4 * CHUNK, LATITUDES, LONGITUDES)).astype(np.float32).round(1)
    base = (300 - 0.4 * np.abs(latitude))[:, None]
    labels = xr.Dataset(
        coords={
            "time": ("time", np.arange(days), {"units": "days since 1850-01-01", "calendar": "noleap"}),
            "lat": ("lat", latitude, {"units": "degrees_north"}),
            "lon": ("lon", np.arange(LONGITUDES) * 1.25, {"units": "degrees_east"}),
        }
    )
    labels.to_zarr(path, consolidated=False)
    group = zarr.open_group(path, mode="a")
    array = group.create_array(
        "tas", shape=(days, LATITUDES, LONGITUDES), chunks=(CHUNK, LATITUDES, LONGITUDES), dtype="f4",
        fill_value=np.nan, dimension_names=("time", "lat", "lon"), attributes={"units": "K"},
    )  # fmt: skip

    def fill(start: int) -> None:
        day = np.arange(start, start + CHUNK, dtype=np.float32)[:, None, None]
        cycle = -10 * np.sin(np.radians(latitude))[:, None] * np.cos(2 * np.pi * day / 365)
        first = int(np.random.default_rng(start).integers(3 * CHUNK))
        array[start : start + CHUNK] = (base + cycle + weather[first : first + CHUNK]).round(1)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fill, range(0, days, CHUNK)))
    return days


def climatology(tas: Any) -> Any:
    """Monthly means, and the mean anomaly of each day."""
    months = tas.groupby("time.month")
    normal = months.mean("time")
    anomaly = months - normal
    area = anomaly.weighted(np.cos(np.radians(tas.lat))).mean(("lat", "lon"))
    return normal.to_dataset(name="normal").assign(anomaly=area)


def child(path: str, library: str) -> None:
    """One run: seconds, peak of memory, and a sum of the results."""
    import xarray as xr

    from linnet.session import init

    if library == "linnet":
        init(memory=BUDGET)
    start = time.perf_counter()
    tas = xr.open_zarr(path, chunked_array_type=library, chunks={}, consolidated=False).tas
    made = climatology(tas).compute()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    check = [float(made.normal.mean()), float(abs(made.anomaly).mean()), float(made.anomaly.std())]
    print(json.dumps({"seconds": seconds, "peak": peak, "check": check}))


def run(path: Path, library: str) -> dict[str, Any]:
    """A run in a process of its own."""
    command = [sys.executable, __file__, "--child", library, "--folder", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ordinary_memory())
    if done.returncode:
        raise RuntimeError(f"the run on {library} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(path: Path, rounds: int, size: int) -> Row:
    """Both libraries by turns."""
    found: dict[str, list[dict[str, Any]]] = {"linnet": [], "dask": []}
    for _ in range(rounds):
        for library, runs in found.items():
            runs.append(run(path, library))
    ours, theirs = (min(found[name], key=lambda each: each["seconds"]) for name in ("linnet", "dask"))
    np.testing.assert_allclose(ours["check"], theirs["check"], rtol=1e-3, atol=1e-3)
    ratio, peak = ours["seconds"] / theirs["seconds"], max(each["peak"] for each in found["linnet"])
    measured = (
        f"{ratio:.2f}: {ours['seconds']:.1f} s against {theirs['seconds']:.1f} s; "
        f"memory {human(peak)} against {human(theirs['peak'])}"
    )
    kept = ratio <= 0.7 and peak <= amount(MEMORY)
    return Row(f"climatology, {human(size)}", f"<= 0.7 of Dask, within {MEMORY}", measured, kept, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", default="10 GB", help="of the data in memory")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the store is made (and removed)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(str(options.folder), options.child)
        return
    size = amount(options.size, "size")
    folder = Path(tempfile.mkdtemp(prefix="climate-", dir=options.folder))
    try:
        days = write(folder / "tas.zarr", size)
        row = measure(folder / "tas.zarr", options.rounds, days * LATITUDES * LONGITUDES * 4)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show([row], "climatology through xarray", options.json)


if __name__ == "__main__":
    main()
