"""`linnet worker ADDRESS`: a stateless worker for a job."""

from __future__ import annotations

import gc
from typing import Annotated

import typer


def worker(
    address: Annotated[str, typer.Argument(help="Address of the job, as `job.address` tells it.")],
    name: Annotated[str, typer.Option(help="Name of the worker; made up if not given.")] = "",
    width: Annotated[int, typer.Option(help="Batches of tasks in hand; 1: nothing overlaps.")] = 3,
    timeout: Annotated[float, typer.Option(help="Seconds without work after which it goes.")] = 10.0,
    runtime: Annotated[float | None, typer.Option(help="Seconds it may run.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory it may use, such as '2 GB'.")] = None,
    cache: Annotated[
        str | None, typer.Option(help="Memory for tiles, shared by the workers of this host.")
    ] = None,
    cold_start: Annotated[float, typer.Option(help="Seconds to wait first.")] = 0.0,
    store_delay: Annotated[float, typer.Option(help="Seconds added to each request to the store.")] = 0.0,
    allow: Annotated[
        list[str] | None, typer.Option(help="A module with kernels that the job may import; repeatable.")
    ] = None,
    allow_files: Annotated[
        list[str] | None,
        typer.Option(help="A folder, file, or beginning of a URL that kernels may use; repeatable."),
    ] = None,
    secrets: Annotated[
        str | None,
        typer.Option(help="File of mode 0600 with secret variables of the environment, which is removed."),
    ] = None,
    grace: Annotated[
        float, typer.Option(help="Seconds for what it computes, when it is told to stop.")
    ] = 30.0,
    any_blas: Annotated[
        bool,
        typer.Option("--any-blas", help="Work with another BLAS than the client's."),
    ] = False,
) -> None:
    """Work on a job until it ends or there is nothing to do."""
    from linnet.tiles.amounts import amount
    from linnet.workers.launcher import Limits
    from linnet.workers.secrets import take
    from linnet.workers.serving import serve
    from linnet.workers.worker import Worker
    from linnet.workers.worker_exit import Leaving

    limits = Limits(
        memory=None if memory is None else amount(memory),
        runtime=runtime,
        cold_start=cold_start,
        store_delay=store_delay,
        cache=None if cache is None else (0 if cache == "0" else amount(cache, "cache")),
        width=width,
        timeout=timeout,
    )

    if secrets is not None:
        take(secrets)
    leaving = Leaving(grace)

    def started(made: Worker) -> None:
        nonlocal name
        name = made.name
        leaving.watch(made)
        # What is loaded by now stays: to look for garbage in it again and again costs short tasks much.
        gc.freeze()

    try:
        ending = serve(
            address, name, limits, allow or (), files=allow_files or (), any_blas=any_blas, started=started
        )
    except BaseException:
        leaving.ended(1)
        raise
    typer.echo(f"worker {name}: {ending}")
    leaving.ended(0)
