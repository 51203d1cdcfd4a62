"""How fast kernels are on this machine, measured: what the simulator takes times from.

A kernel's rate grows with the size of its task, so it is measured at a few sizes and taken in between
along a straight line in the logarithm of the operations. Kernels that were not measured run at the rate of
the product with as many operations, but never faster than memory gives them their tiles.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.kernels import chol, gemm, syrk, trsm
from linnet.machine.blas_threads import one_blas_thread
from linnet.planning.cluster import Cluster
from linnet.planning.workload import Workload
from linnet.records import record

_VERSION = 1
_ALIKE = {"gemm_add": "gemm", "gemm_block": "gemm", "contract": "gemm",
          "downdate": "syrk", "downdate_lower": "syrk"}  # fmt: skip
"""Kernels that spend their time in the same routine of BLAS as a measured one."""
_TIMES = 5
"""The best of so many runs counts: a run can be disturbed, but not be faster than it is."""
_SEEN = 2e-3
"""Seconds that a clock can see well."""
_STREAM = 32 << 20
"""Bytes that are copied to see how fast memory is: more than caches hold."""

Rates = tuple[tuple[float, float], ...]
"""Operations of a task, and operations a second, in ascending order."""


@record
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
        """Operations a second of the product that was fastest."""
        return max(rate for _, rate in self.rates["gemm"])

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
        seconds = moved / self.memory
        for number, kernel in enumerate(kernels):
            tasks = work.statement == number
            busy = work.flops[tasks] / self._rate(kernel, work.flops[tasks])
            known = kernel in self.rates or kernel in _ALIKE
            # What was measured was measured with its tiles in memory.
            seconds[tasks] = busy if known else np.maximum(seconds[tasks], busy)
        return seconds

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
    """Measure kernels on square tiles of these sizes, with one thread; a few seconds on a usual machine.

    >>> found = calibrate(sizes=(16, 64))
    >>> sorted(found.rates), found.flops > 1e6
    (['chol', 'gemm', 'syrk', 'trsm'], True)
    """
    if not sizes or min(sizes) < 1:
        raise InputError(f"sizes={sizes!r}: give at least one size of a tile, above 0")
    calls = [call for size in sorted(set(sizes)) for call in _calls(size)]
    source, target = np.ones(_STREAM // 8), np.zeros(_STREAM // 8)
    copying = _Call("", 0.0, np.copyto, (target, source))
    best: dict[int, float] = {}
    with one_blas_thread():
        # Turn by turn: what disturbs the machine for a while disturbs all of them alike.
        for _ in range(_TIMES):
            for place, call in enumerate([*calls, copying]):
                best[place] = min(call.seconds(), best.get(place, float("inf")))
    rates: dict[str, list[tuple[float, float]]] = {}
    for place, call in enumerate(calls):
        rates.setdefault(call.kernel, []).append((call.flops, call.flops / best[place]))
    memory = 2 * _STREAM / best[len(calls)]
    return Calibration({name: tuple(pairs) for name, pairs in rates.items()}, memory)


class _Call(NamedTuple):
    """A call to be measured."""

    kernel: str
    flops: float
    function: Callable[..., Any]
    operands: tuple[Any, ...]

    def seconds(self) -> float:
        """Processor time it takes, since others may use the machine too; short calls are repeated."""
        repeats = 1
        while True:
            start = time.thread_time()
            for _ in range(repeats):
                self.function(*self.operands)
            taken = time.thread_time() - start
            if taken > _SEEN:
                return taken / repeats
            repeats *= 4


def _calls(size: int) -> Iterator[_Call]:
    a = np.asfortranarray(np.random.default_rng(0).standard_normal((size, size)))
    positive = np.asfortranarray(a @ a.T + size * np.eye(size))
    lower: Any = chol(positive)
    yield _Call("gemm", 2.0 * size**3, gemm, (a, a))
    yield _Call("chol", size**3 / 3, chol, (positive,))
    yield _Call("trsm", 1.0 * size**3, trsm, (lower, a))
    yield _Call("syrk", 2.0 * size**3, syrk, (positive, a, a))
