"""A worker from its address to its end: parts opened, job understood, limits set."""

from __future__ import annotations

import importlib
import re
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import cast

import threadpoolctl

from linnet.errors import JobError
from linnet.kernels.arrays.user_functions import allow
from linnet.kernels.compiled import identity
from linnet.machine.blas_threads import one_blas_thread
from linnet.machine.fortran import routine
from linnet.tiles.amounts import total_memory
from linnet.tiles.codec import Compression
from linnet.workers.cache import TileCache, cache_for
from linnet.workers.files import check_files
from linnet.workers.job_parts import Parts, reopened
from linnet.workers.launcher import Limits
from linnet.workers.spec import JobSpec
from linnet.workers.store import Store
from linnet.workers.stores.delayed import Delayed
from linnet.workers.traffic import Traffic
from linnet.workers.worker import Ending, Worker

_REMOTE_THREADS = 8
"""Tiles on their way at a time where the store is not on this machine."""


def serve(
    address: str,
    name: str = "",
    limits: Limits | None = None,
    allowed: Sequence[str] = (),
    *,
    files: Sequence[str] = (),
    any_blas: bool = False,
    started: Callable[[Worker], None] | None = None,
) -> Ending:
    """Work on a job until there is nothing more to do.

    Modules that are `allowed` may be imported, and files under the roots `files` used. `started` is handed
    the worker when everything is set for it, before it begins.
    """
    limits = limits or Limits()
    if limits.cold_start:
        time.sleep(limits.cold_start)
    limit_memory(limits)
    with ExitStack() as stack:
        parts, spec = reopened(address, create=False)
        stack.callback(parts.close)
        import_kernels(spec, allowed)
        check_files(spec.program, files)
        check_blas(spec, any_blas)
        warm_up(spec)
        traffic, cache = open_traffic(parts, spec, limits)
        if cache is not None:
            stack.callback(cache.close)
        stack.callback(traffic.close)
        worker = Worker(parts, spec, traffic, limits, name, files)
        stack.enter_context(one_blas_thread())
        if started is not None:
            started(worker)
        return worker.run()


def limit_memory(limits: Limits) -> None:
    """Let this process have no more memory than it may."""
    if limits.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory, resource.getrlimit(resource.RLIMIT_AS)[1]))


def open_traffic(parts: Parts, spec: JobSpec, limits: Limits) -> tuple[Traffic, TileCache | None]:
    """The way to a job's tiles."""
    store: Store = Delayed(parts.store, limits.store_delay) if limits.store_delay else parts.store
    size = limits.cache if limits.cache is not None else total_memory() // 4
    cache = cache_for(parts.store, parts.folder, size) if size else None
    near = parts.store.url.startswith(("file:", "memory:")) and not limits.store_delay
    compression = cast("Compression | None", spec.options.compression)
    return Traffic(store, cache, compression, 1 if near else _REMOTE_THREADS), cache


def check_imports(spec: JobSpec, allowed: Sequence[str]) -> None:
    """Refuse a job that asks for other modules than allowed: who starts workers decides, not the job."""
    for module in spec.options.imports:
        if module not in allowed:
            raise JobError(
                f"the job wants its workers to import {module!r}, which is not allowed; if you trust that "
                f"module, start them with --allow {module}, or attach with imports=[{module!r}]"
            )


def import_kernels(spec: JobSpec, allowed: Sequence[str]) -> None:
    """Import the modules a job asks for, as far as they are allowed."""
    check_imports(spec, allowed)
    for module in spec.options.imports:
        try:
            importlib.import_module(module)
            allow(module)
        except ImportError as error:
            raise JobError(
                f"the job's kernels are in {module!r}, which cannot be imported here: {error}; "
                "install it where workers run"
            ) from error


def warm_up(spec: JobSpec) -> None:
    """Do what the first tasks would have to do otherwise, while others wait for them: loading BLAS and LAPACK
    takes a third of a second, and making the solvers of a long program as much."""
    spec.bound.prepare()
    routine("gemm", "d")
    routine("potrf", "d")


def blas_core() -> str:
    """The names of the BLAS core and of the compiled core in use: with others, bits may differ.

    What other libraries of the process brought along (OpenMP of scikit-learn, MKL of PyTorch) runs no kernel.
    """
    libraries: list[dict[str, str]] = [
        each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"
    ]
    own = [each for each in libraries if re.search("numpy|scipy", each["filepath"])]
    cores = {f"{each['internal_api']}/{each.get('architecture', '')}" for each in own or libraries}
    return " ".join([*sorted(cores), identity()])


def check_blas(spec: JobSpec, any_blas: bool) -> None:
    """Refuse a worker whose results could differ in their last bits."""
    here = blas_core()
    if spec.options.blas and not any_blas and here != spec.options.blas:
        raise JobError(
            f"the job was begun with the BLAS and compiled core {spec.options.blas!r}, this worker has "
            f"{here!r}: results could differ in their last bits; allow it with --any-blas"
        )
