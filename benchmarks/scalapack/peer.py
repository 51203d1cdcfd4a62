"""ScaLAPACK on the cores of this machine, for comparison.

    python benchmarks/scalapack/peer.py potrf 8192

Builds the driver (needs the Debian packages in packages.txt; `make bench` installs them as
root) and prints the best of three rounds on two ranks, one BLAS thread each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np  # noqa: F401 (its BLAS is asked)
from threadpoolctl import threadpool_info

HERE = Path(__file__).resolve().parent
FLOPS = {
    "potrf": lambda n: n**3 / 3,
    "gemm": lambda n: 2 * n**3,
    "qr": lambda n: 8 * n**3 / 3,
    "getrf": lambda n: 2 * n**3 / 3,
}


def build() -> Path:
    """The driver, compiled once per process tree."""
    if shutil.which("mpif90") is None or shutil.which("mpirun") is None:
        packages = " ".join((HERE / "packages.txt").read_text().split())
        raise SystemExit(
            f"ScaLAPACK is not here; as root: apt-get install --no-install-recommends {packages}"
        )
    target = Path(tempfile.mkdtemp(prefix="scalapack-")) / "driver"
    command = ["mpif90", "-O2", "-o", target, HERE / "driver.f90", "-lscalapack-openmpi", "-lopenblas"]
    subprocess.run(command, check=True, cwd=target.parent)
    return target


def _core() -> str | None:
    """The processor that NumPy's BLAS sees: an older one, as of a distribution, may take it for another."""
    found = [each for each in threadpool_info() if each["internal_api"] == "openblas"]
    return found[0]["architecture"] if found else None


def seconds(driver: Path, operation: str, n: int, block: int = 128, rounds: int = 3, ranks: int = 2) -> float:
    """Best time of `rounds` runs."""
    launch = ["mpirun", "--oversubscribe", "-np", str(ranks)]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        launch.append("--allow-run-as-root")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if core := _core():
        environment["OPENBLAS_CORETYPE"] = core
    arguments = [str(driver), operation, str(n), str(block), str(rounds)]
    done = subprocess.run([*launch, *arguments], check=True, capture_output=True, text=True, env=environment)
    best, norm, info = done.stdout.split()
    if int(info) != 0 or not float(norm) > 0:
        raise SystemExit(f"{operation} {n}: info {info}, norm {norm}")
    return float(best)


def main() -> None:
    operation, n = sys.argv[1], int(sys.argv[2])
    best = seconds(build(), operation, n)
    print(f"{operation} {n}: {best:.3f} s, {FLOPS[operation](n) / best / 1e9:.1f} GFLOP/s on two ranks")


if __name__ == "__main__":
    main()
