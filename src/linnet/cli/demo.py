"""`linnet demo`: the main job, end to end, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def demo(
    size: Annotated[
        int | None,
        typer.Option(min=1, help="Rows of the matrix; by default what this machine does in seconds."),
    ] = None,
    tile: Annotated[int | None, typer.Option(min=1, help="Rows of a tile.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; by default one per core.")] = None,
    compare: Annotated[bool, typer.Option(help="Also run np.linalg.cholesky, on all its threads.")] = False,
    record: Annotated[Path | None, typer.Option(help="Write every event of the run to this file.")] = None,
) -> None:
    """Factorise the covariance matrix of many points by tiles, and verify the result."""
    from linnet.algorithms.cholesky import cholesky
    from linnet.cli import covariance, machine, sizing
    from linnet.engines import Threads
    from linnet.events import Events, Metrics, Recorder, show_progress
    from linnet.tiles import human

    engine = Threads(workers)
    free = machine.free_memory()
    chosen = sizing.choose(size, tile, engine.workers, free)
    _line("machine", f"{engine.workers} threads, {human(free)} of memory free")
    bound = cholesky.bind(N=chosen.tiles)
    _line(
        "matrix",
        f"covariance of {chosen.size:,} points: {chosen.size:,}×{chosen.size:,} float64, "
        f"{chosen.tiles}×{chosen.tiles} tiles of {chosen.tile}",
    )
    _line("program", f"{bound!r}: {bound.count():,} tasks")
    events, metrics = Events(), Metrics()
    with show_progress(events):
        matrix = covariance.matrix(chosen.size, chosen.tile, engine, events)
        metrics.listen(events)
        if record is None:
            factor = engine.run(bound, {"A": matrix}, events=events)["O"]
        else:
            with Recorder(record) as recorder:
                stop = recorder.listen(events)
                factor = engine.run(bound, {"A": matrix}, events=events)["O"]
                stop()
    rate = chosen.size**3 / 3 / metrics.seconds / 1e9
    _line("factorised", f"in {metrics.seconds:.2f} s: {rate:.1f} GFLOP/s")
    for name, each in metrics.kernels.items():
        _line("", f"{name}: {each.tasks:,} tasks, {each.seconds:.2f} s of {engine.workers} threads' time")
    residual, bound_on_it = covariance.residual(matrix, factor)
    _line("verified", f"|Ax - L(Lᵀx)| / |A||x| = {residual:.1e}, must be below {bound_on_it:.1e}")
    _line("memory", f"{human(machine.peak_memory())} at its peak")
    if record is not None:
        _line("recorded", str(record))
    if compare:
        _compare(matrix, factor, metrics.seconds)
    if not residual < bound_on_it:
        typer.echo("linnet: error: the factorisation is wrong", err=True)
        raise typer.Exit(1)


def _compare(matrix: Any, factor: Any, seconds: float) -> None:
    """Time NumPy on the same matrix in one piece."""
    import time

    import numpy as np

    from linnet.cli import machine
    from linnet.errors import InputError
    from linnet.tiles import human

    needed, free = 2 * 8 * matrix.shape[0] ** 2, machine.free_memory()
    if needed > free:
        raise InputError(
            f"NumPy would need {human(needed)} more for this matrix, and {human(free)} "
            "is free; choose a smaller --size to compare"
        )
    whole = matrix.to_numpy()  # np.linalg.cholesky too reads the lower triangle only
    start = time.perf_counter()
    theirs = np.linalg.cholesky(whole)
    numpy_seconds = time.perf_counter() - start
    del whole
    difference = max(
        float(np.abs(theirs[factor.layout.slices(index)] - tile).max())
        for index, tile in factor.tiles.items()
    )
    _line(
        "NumPy",
        f"{numpy_seconds:.2f} s, so {numpy_seconds / seconds:.2f} times ours; differs by {difference:.1e}",
    )


def _line(label: str, text: str) -> None:
    typer.echo(f"{label:<11} {text}")
