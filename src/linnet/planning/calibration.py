"""How fast kernels are on this machine, measured: what the simulator takes times from.

A kernel's rate grows with the size of its task, so it is measured at a few sizes and taken in between
along a straight line in the logarithm of the operations. Kernels that were not measured run at the rate of
the product with as many operations, but never faster than memory gives them their tiles.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.kernels import chol, gemm, syrk, trsm
from linnet.kernels.blas import one_blas_thread
from linnet.planning.cluster import Cluster
from linnet.planning.workload import Workload

_VERSION = 1
_ALIKE = {"gemm_add": "gemm", "gemm_block": "gemm", "gemm_conjugate": "gemm", "contract": "gemm",
          "downdate": "syrk", "downdate_lower": "syrk"}  # fmt: skip
"""Kernels that spend their time in the same routine of BLAS as a measured one."""
_TIMES = 3
"""The best of so many runs counts: a run can be disturbed, but not be faster than it is."""
_STREAM = 32 << 20
"""Bytes that are copied to see how fast memory is: more than caches hold."""

Rates = tuple[tuple[float, float], ...]
"""Operations of a task, and operations a second, in ascending order."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Rates of kernels on one worker.

    >>> known = Calibration({"gemm": ((1e6, 1e10), (1e8, 2e10))}, memory=1e10)
    >>> known.rate("gemm", 1e7)
    15000000000.0
    >>> known.rate("gemm", 1e12) == known.flops == 2e10
    True
    """

    rates: Mapping[str, Rates]
    """Of each kernel that was measured; `gemm` must be among them."""
    memory: float
    """Bytes a second that one worker reads and writes."""

    def __post_init__(self) -> None:
        if "gemm" not in self.rates:
            raise InputError(
                f"a calibration needs rates of gemm; got {', '.join(self.rates) or 'none'}: measure it with "
                "calibrate()"
            )
        for name, rates in self.rates.items():
            sizes = [size for size, _ in rates]
            if not sizes or sizes != sorted(set(sizes)) or min(min(pair) for pair in rates) <= 0:
                raise InputError(
                    f"rates of {name}: {rates!r}; give pairs of operations of a task and operations a "
                    "second, above 0 and in ascending order"
                )
        if not self.memory > 0:
            raise InputError(f"memory={self.memory}: give bytes a second above 0")

    @property
    def flops(self) -> float:
        """Operations a second of the largest product that was measured."""
        return self.rates["gemm"][-1][1]

    def rate(self, kernel: str, flops: float) -> float:
        """Operations a second of a kernel in a task with so many."""
        return float(self._rate(kernel, np.array([flops]))[0])

    def _rate(self, kernel: str, flops: NDArray[np.float64]) -> NDArray[np.float64]:
        rates = self.rates.get(kernel) or self.rates.get(_ALIKE.get(kernel, "")) or self.rates["gemm"]
        sizes, speeds = zip(*rates, strict=True)
        return np.interp(np.log(np.maximum(flops, 1.0)), np.log(sizes), speeds)

    def seconds(self, work: Workload, cluster: Cluster) -> NDArray[np.float64]:
        """How long each task of a program takes on a worker of the cluster.

        Its workers are as fast as their `flops` say, compared with the product that was measured.
        """
        speeds = {node.flops for node in cluster.nodes}
        if len(speeds) > 1:
            raise InputError(
                f"{cluster!r}: a calibration is of one kind of worker; simulate nodes that are alike, or go "
                "without one"
            )
        return self._seconds(work) * self.flops / speeds.pop()

    def _seconds(self, work: Workload) -> NDArray[np.float64]:
        kernels = [statement.kernel for statement in work.bound.program.statements]
        moved = _sums(work.tile_bytes, work.read_start, work.read)
        moved += _sums(work.tile_bytes, work.write_start, work.write)
        made = moved / self.memory
        for number, kernel in enumerate(kernels):
            tasks = work.statement == number
            busy = work.flops[tasks] / self._rate(kernel, work.flops[tasks])
            known = kernel in self.rates or kernel in _ALIKE
            # What was measured was measured with its tiles in memory.
            made[tasks] = busy if known else np.maximum(made[tasks], busy)
        return made

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file."""
        content = {"version": _VERSION, "memory": self.memory, "rates": self.rates}
        Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read what `save` wrote."""
        try:
            content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["version"] != _VERSION:
                raise ValueError(f"version {content['version']}, expected {_VERSION}")
            rates = {
                str(name): tuple((float(n), float(r)) for n, r in pairs)
                for name, pairs in content["rates"].items()
            }
            return cls(rates, float(content["memory"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path} holds no calibration ({type(error).__name__}: {error}); make one with "
                "calibrate().save(path)"
            ) from error


def _sums(
    values: NDArray[np.int64], starts: NDArray[np.int64], places: NDArray[np.int32]
) -> NDArray[np.float64]:
    """For each row the sum of the values at its places."""
    total = np.concatenate([[0], np.cumsum(values[places])])
    return (total[starts[1:]] - total[starts[:-1]]).astype(np.float64)


def calibrate(sizes: Sequence[int] = (64, 128, 256, 512, 1024)) -> Calibration:
    """Measure kernels on square tiles of these sizes, with one thread; about a second on a usual machine.

    >>> found = calibrate(sizes=(16, 64))
    >>> sorted(found.rates), found.flops > 1e6
    (['chol', 'gemm', 'syrk', 'trsm'], True)
    """
    if not sizes or min(sizes) < 1:
        raise InputError(f"sizes={sizes!r}: give at least one size of a tile, above 0")
    measured: dict[str, list[tuple[float, float]]] = {"gemm": [], "chol": [], "trsm": [], "syrk": []}
    random = np.random.default_rng(0)
    with one_blas_thread():
        for size in sorted(set(sizes)):
            a = np.asfortranarray(random.standard_normal((size, size)))
            positive = a @ a.T + size * np.eye(size)
            lower: Any = chol(positive)
            calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
                "gemm": (gemm, (a, a), 2.0 * size**3),
                "chol": (chol, (positive,), size**3 / 3),
                "trsm": (trsm, (lower, a), 1.0 * size**3),
                "syrk": (syrk, (positive, a, a), 2.0 * size**3),
            }
            for name, (function, operands, flops) in calls.items():
                measured[name].append((flops, flops / _best(function, *operands)))
    source, target = np.ones(_STREAM // 8), np.zeros(_STREAM // 8)
    memory = 2 * _STREAM / _best(np.copyto, target, source)
    return Calibration({name: tuple(pairs) for name, pairs in measured.items()}, memory)


def _best(function: Callable[..., Any], *operands: Any) -> float:
    """Seconds of a call, the shortest of a few; short calls are repeated until a clock can see them."""
    repeats = 1
    best = float("inf")
    for _ in range(_TIMES):
        while True:
            start = time.perf_counter()
            for _ in range(repeats):
                function(*operands)
            taken = time.perf_counter() - start
            if taken > 2e-3:
                break
            repeats *= 4
        best = min(best, taken / repeats)
    return best
