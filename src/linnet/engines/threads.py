"""The engine on the cores of this machine: threads around kernels that let go of the lock."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.budget import Budget
from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.engines.lifetime import Kept, Lifetime
from linnet.engines.mapped_tiles import Scratch, mapped_zeros
from linnet.engines.run import Run
from linnet.engines.run_events import JOBS, Telling
from linnet.engines.worker_blas import blas_threads
from linnet.errors import InputError
from linnet.events import Events, Sink
from linnet.machine import large_arrays
from linnet.machine.allocator import freed_at_once
from linnet.programs import BoundProgram
from linnet.tiles import TiledArray, amount, count, human


class Threads:
    """Runs bound programs on threads of this process.

    >>> import numpy as np
    >>> from linnet.programs import TileProgram
    >>> double = TileProgram.from_source('''
    ... def double(A: In, B: Out, N: int):
    ...     for i in range(N):
    ...         B[i] = add(A[i], A[i])
    ... ''')
    >>> a = TiledArray.from_numpy(np.arange(5), tile=2)
    >>> Threads(workers=2).run(double.bind(N=3), {"A": a})["B"].to_numpy()
    array([0, 2, 4, 6, 8])
    """

    cluster = None
    """It plans for no nodes."""

    tells_tasks = True
    """Whether events of single tasks cost little."""

    shares_memory = True

    def __init__(
        self,
        workers: int | None = None,
        *,
        memory: float | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        deterministic: bool = False,
        processes: bool = False,
    ) -> None:
        """`workers` is how many tasks run side by side; None: one per core.

        `memory`, in bytes or as "2 GB", bounds what tiles take; those needed latest go to
        files in `scratch` (None: the system's folder for temporary files). Arrays given in
        memory do not count; arrays given as `np.memmap` do, as far as they are read. On top
        of it come buffers of BLAS and what kernels need while they run: the measured peak of
        resident memory is up to 1.1 times the budget and 4 MB a worker, under glibc. Other
        allocators may keep more of what is freed.

        A task that runs alone gets all cores. With `deterministic=True` only tasks do whose
        kernels declare that their results have the same bits on any number of threads. No kernel
        around BLAS does: the bits of OpenBLAS's products, solves and factorisations change.

        With `processes=True` as many processes make the calls of parallel functions, `ln.submit_call` and
        `ln.map`: pure Python runs in one thread of a process at a time. Programs run on threads as ever.
        """
        self.workers: int = (
            available_cores() if workers is None else count(workers, instead="None for one per core")
        )
        self.memory: int | None = None if memory is None else amount(memory)
        self.scratch: str | None = None if scratch is None else os.fspath(scratch)
        self.deterministic = deterministic
        if not isinstance(processes, bool):
            raise InputError(f"processes={processes!r}: give True or False; workers= says how many")
        self.processes: bool = processes
        self._life = Lifetime()

    def check(self) -> None:
        """Refuse to go on if it was closed."""
        self._life.check()

    def keep(self, kept: Kept) -> None:
        """Something that ends when the engine is closed."""
        self._life.check()
        self._life.keep(kept)

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run every task of the program; see `Engine.run`.

        Ctrl-C breaks the run off: no further task starts, kernels in flight get a second
        to end, and `KeyboardInterrupt` goes to the caller.
        """
        self.check()
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        telling = Telling(Events() if events is None else events, f"{bound.program.name}-{next(JOBS)}")
        budget = None
        if self.memory is not None:
            budget = Budget(self.memory, Scratch(self.scratch), Scratch(self.scratch))
        allocator = nullcontext() if budget is None else freed_at_once(budget.bytes)
        with allocator, blas_threads(self.workers) as blas:
            return Run(
                bound,
                inputs,
                out or {},
                telling,
                blas,
                workers=self.workers,
                budget=budget,
                deterministic=self.deterministic,
            ).outcome()

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
        """It makes no plan: whoever is free takes the most urgent task."""

    def close(self) -> None:
        """Run nothing any more; results are in memory, and stay. The threads belong to all engines."""
        self._life.end(repr(self))

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`; in a scratch file if it would take more than half of the budget."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if self.memory is not None and size > self.memory // 2:
            return mapped_zeros(shape, dtype, self.scratch)
        return large_arrays.zeros(shape, dtype)

    def __repr__(self) -> str:
        options = [f"workers={self.workers}"]
        options += [f"memory={human(self.memory)!r}"] if self.memory is not None else []
        options += ["deterministic=True"] if self.deterministic else []
        options += ["processes=True"] if self.processes else []
        return f"Threads({', '.join(options)})"


def available_cores() -> int:
    """The cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
