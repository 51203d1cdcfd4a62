"""`linnet provision ADDRESS`: keep workers at a job, from any machine, until it ends."""

from __future__ import annotations

from typing import Annotated

import typer


def provision(
    address: Annotated[str, typer.Argument(help="Address of the job, as `job.address` tells it.")],
    workers: Annotated[int, typer.Option(min=1, help="Workers while anything is to be done.")] = 2,
    most: Annotated[
        int | None, typer.Option(min=1, help="Workers when much is ready; by default no more.")
    ] = None,
    launcher: Annotated[
        str, typer.Option(help="What starts them: processes, threads, slurm, lithops, ….")
    ] = "processes",
    allow: Annotated[
        list[str] | None, typer.Option(help="A module with kernels that the job may import; repeatable.")
    ] = None,
    allow_files: Annotated[
        list[str] | None,
        typer.Option(help="A folder, file, or beginning of a URL that kernels may use; repeatable."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds without work after which a worker goes.")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Start those that are missing, and exit.")] = False,
) -> None:
    """See to it that a job has workers until it ends. What dies is replaced; the job keeps all it has."""
    from linnet.workers import provisioner
    from linnet.workers.client import attach
    from linnet.workers.files import check_files
    from linnet.workers.job_parts import reopened
    from linnet.workers.launcher import Limits
    from linnet.workers.launchers import make_launcher
    from linnet.workers.serving import check_imports

    policy = provisioner.Policy(most=max(workers, most or workers), least=workers)
    limits = Limits(timeout=timeout)
    starter = make_launcher(launcher)
    parts, spec = reopened(address)
    try:
        check_imports(spec, allow or ())
        check_files(spec.program, allow_files or ())
        if once:
            seen = provisioner.provision(parts, starter, policy, limits, allow or (), allow_files or ())
            typer.echo(
                f"{seen.started} workers started, {seen.workers + seen.started} in all; "
                f"the job is {parts.ledger.status().state}"
            )
            return
    finally:
        parts.close()
    with attach(
        address,
        workers=policy,
        launcher=starter,
        limits=limits,
        imports=allow or (),
        files=allow_files or (),
    ) as job:
        job.wait()
        typer.echo(str(job.progress()))
