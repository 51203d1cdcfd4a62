"""From a text file to a compressed Zarr array and statistics of it, within 64 MB of memory.

python examples/files.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import linnet as ln


def main() -> None:
    with tempfile.TemporaryDirectory() as name, ln.init(memory="64 MB"):
        folder = Path(name)
        made = ln.random.default_rng(0).normal(15.0, 8.0, (60_000, 20), chunks=(10_000, -1))
        stations = [f"station{number}" for number in range(20)]
        ln.to_csv(made, folder / "temperatures.csv", header=stations, fmt="%.3f")

        measured = ln.read_csv(folder / "temperatures.csv")
        target = folder / "temperatures.zarr"
        ln.to_zarr(measured.astype(np.float32), target, dimension_names=["time", "station"])
        kept = ln.from_zarr(target)

        small = sum(each.stat().st_size for each in target.rglob("*") if each.is_file())
        text = (folder / "temperatures.csv").stat().st_size
        print(f"{kept.shape[0]:,} rows: {text / 1e6:.1f} MB of text, {small / 1e6:.1f} MB as Zarr")
        print(f"mean temperature {float(kept.mean()):.2f}, of the first day {float(kept[:24].mean()):.2f}")
        warmest = int(kept.mean(axis=0).argmax())
        print(f"warmest: {stations[warmest]}")


if __name__ == "__main__":
    main()
