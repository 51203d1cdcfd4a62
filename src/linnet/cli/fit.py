"""`linnet fit LIFETIMES.csv`: laws of preemption compared, and drawn over the data."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from linnet.fleet import FittedModel, Lifetimes
    from linnet.fleet.comparison import Comparison


def fit(
    lifetimes: Annotated[
        Path, typer.Argument(help="A CSV file with lifetime_s or lifetime_h, and ended or event.")
    ],
    cap: Annotated[float | None, typer.Option(help="Hours after which every server is taken away.")] = None,
    polled: Annotated[
        float, typer.Option(help="Hours between two looks, if lifetimes were found by looking.")
    ] = 0.0,
    law: Annotated[str | None, typer.Option(help="Take this law, whatever the table says.")] = None,
    groups: Annotated[bool, typer.Option("--groups", help="Also a model for each type and zone.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Where the plot goes; by default beside where you are, named as the data."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table as JSON; a plot only where --plot asks for it.")
    ] = False,
) -> None:
    """Fit and compare laws of preemption; print the table and write the plot."""
    from linnet.errors import MissingExtraError
    from linnet.fleet import Lifetimes

    life = Lifetimes.from_csv(lifetimes, cap=cap, polled=polled)
    table = life.table()
    model = table.model if law is None else life.fit(law)
    if as_json:
        typer.echo(json.dumps(_facts(life, table, model), indent=1))
        if plot is not None:
            draw(life, model, plot)
        return
    typer.echo(table)
    typer.echo(f"\n{model}")
    for hours in (1, 6, 12):
        typer.echo(
            f"a job of {hours} h on a fresh server fails with probability "
            f"{model.failure_probability(hours):.3f}"
        )
    if groups:
        typer.echo(f"\n{life.fit_groups()}")
    path = plot or Path(f"{lifetimes.stem}.svg")
    try:
        draw(life, model, path)
    except MissingExtraError as missing:
        if plot is not None:
            raise
        typer.echo(f"\nno plot: {missing}", err=True)
    else:
        typer.echo(f"\nplot: {path}")


def _facts(life: Lifetimes, table: Comparison, model: FittedModel) -> dict[str, Any]:
    """The table and the model, as data."""
    return {
        "servers": table.servers,
        "preempted": table.lost,
        "cap": life.cap,
        "taken": model.name,
        "parameters": {name: float(value) for name, value in asdict(model.law).items()},
        "mean": float(model.mean),
        "failure_probability": {str(hours): float(model.failure_probability(hours)) for hours in (1, 6, 12)},
        "laws": [
            {
                "law": row.model.name,
                "parameters": row.model.size,
                "aic": row.model.aic,
                "validation": row.validation,
                "distance": row.distance,
                "mean": float(row.model.mean),
            }
            for row in table.rows
        ],
    }


def draw(life: Lifetimes, model: FittedModel, path: Path) -> None:
    """Survival and hazard of the data, of the model, and of the other laws of its table."""
    import numpy as np

    from linnet.errors import missing_extra

    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("drawing", "matplotlib", "plot") from error

    end = float(life.cap or life.hours.max())
    ages = np.linspace(0, end, 600)[:-1]
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    data = life.kaplan_meier()
    left.step(ages, np.asarray(data.survival(ages)), where="post", color="black", label="Kaplan-Meier")
    right.plot(
        ages, np.asarray(data.hazard(ages)), color="black", linewidth=0.8, label="Kaplan-Meier, 1 h mean"
    )
    others = [row.model for row in life.table().rows if row.model.name != model.name]
    for each, style in [
        *((other, {"linewidth": 0.6, "alpha": 0.6}) for other in others),
        (model, {"linewidth": 2.0}),
    ]:
        left.plot(ages, np.asarray(each.survival(ages)), label=each.name, **style)
        right.plot(ages[1:], np.asarray(each.hazard(ages[1:])), label=each.name, **style)
    left.set(xlabel="age in hours", ylabel="share of servers that live", ylim=(0, 1.02))
    right.set(xlabel="age in hours", ylabel="losses per hour", yscale="log")
    left.legend(fontsize="small")
    figure.savefig(path)
