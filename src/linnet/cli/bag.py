"""`linnet bag plan|run|status|resume|results|cancel`: a bag of jobs, described by a file.

    command: ./simulate --x {x} --y {y}        # or function: module:name
    parameters:
      x: [1, 2, 3]
      y: {span: [0, 1, 11]}                    # also {range: [0, 10, 2]}; or a list of parameter sets under
      jobs:
    sample: latin:50
    deadline: 12
    fleet:
      providers: [{kind: local, servers: 4}]
      lifetimes: {path: lifetimes.csv, cap: 24}
      prices: prices.csv

Every other option of `Bag` may stand there, too. JSON always works, YAML where PyYAML is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from linnet.fleet import Bag, Fleet, Status
    from linnet.fleet.planning import Plan

bag = typer.Typer(
    help="A bag of jobs on servers that may be taken away: its price before, its rows after.",
    no_args_is_help=True,
    add_completion=False,
)

File = Annotated[Path, typer.Argument(help="What to run: a YAML or JSON file.", dir_okay=False)]
Folder = Annotated[Path, typer.Argument(help="The bag's folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
InFolder = Annotated[Path | None, typer.Option(help="Where the bag lives; by default beside its file.")]


@bag.command()
def plan(
    file: File,
    hours: Annotated[float | None, typer.Option(help="How long a job takes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Price and time with quantiles, before anything is paid."""
    bag_of_file, fleet = read_bag(file)
    prices = bag_of_file.plan(fleet, hours=hours)
    typer.echo(_json(_plan_facts(prices)) if as_json else prices)


@bag.command()
def run(file: File, folder: InFolder = None) -> None:
    """Run it here until every job has its row; a bag that was run before goes on."""
    bag_of_file, fleet = read_bag(file, folder)
    typer.echo(f"bag in {bag_of_file.folder}")
    _finish(bag_of_file.run(fleet, progress=_show))


@bag.command()
def resume(
    folder: Folder,
    budget: Annotated[float | None, typer.Option(help="Dollars, if other than before.")] = None,
    deadline: Annotated[float | None, typer.Option(help="Hours, if other than before.")] = None,
) -> None:
    """Go on with a bag whose controller ended, or that was cancelled."""
    from linnet.fleet import Bag

    _finish(Bag.open(folder).resume(budget=budget, deadline=deadline, progress=_show))


@bag.command()
def status(folder: Folder, as_json: AsJson = False) -> None:
    """Progress, cost so far, what is left to pay and to wait, and the risk of the deadline."""
    from linnet.fleet import Bag

    now = Bag.open(folder).status()
    typer.echo(_json(_status_facts(now)) if as_json else now)


@bag.command()
def results(
    folder: Folder,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A CSV file, or .parquet.")] = None,
    as_json: AsJson = False,
) -> None:
    """One row for each job: parameters, result, attempts, preemptions, hours, dollars."""
    from linnet.errors import missing_extra
    from linnet.fleet import Bag

    table = Bag.open(folder).table()
    if as_json:
        text = _json([{name: row.get(name) for name in table.columns} for row in table])
        typer.echo(text) if output is None else output.write_text(text + "\n", encoding="utf-8")
    elif output is None:
        table.to_csv("/dev/stdout")
    elif output.suffix == ".parquet":
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise missing_extra("Parquet files", "pyarrow", "io") from error
        parquet.write_table(table.to_arrow(), output)
    else:
        table.to_csv(output)


@bag.command()
def cancel(folder: Folder) -> None:
    """Stop its jobs and give its servers back; rows stay, and `resume` goes on."""
    from linnet.fleet import Bag

    opened = Bag.open(folder)
    opened.cancel()
    typer.echo("the bag was told to end" if opened.storage.is_run() else opened.status(estimate=False))


def _json(data: Any) -> str:
    """As JSON; what it has no word for as text."""
    import json

    return json.dumps(data, indent=1, default=str)


def _plan_facts(plan: Plan) -> dict[str, Any]:
    """Quantiles of everything, and the same for what it is compared with."""
    spreads = {"dollars": plan.cost, "hours": plan.hours, "preemptions": plan.preemptions, "done": plan.done}
    facts: dict[str, Any] = {"jobs": plan.jobs, "deadline": plan.deadline, "budget": plan.budget}
    for name, spread in spreads.items():
        quantiles = {str(q): spread.quantile(q) for q in (0.1, 0.5, 0.9)}
        facts[name] = {"mean": spread.mean, **quantiles}
    facts["deadline_risk"] = plan.deadline_risk
    for name in ("on_demand", "restart_always", "no_preemption"):
        other: Plan | None = getattr(plan, name)
        if other is not None:
            facts[name] = {"dollars": other.cost.mean, "hours": other.hours.mean}
    return facts


def _status_facts(now: Status) -> dict[str, Any]:
    names = ("state", "jobs", "done", "failed", "dropped", "stopped", "running", "waiting", "preemptions")
    facts: dict[str, Any] = {name: getattr(now, name) for name in (*names, "servers", "hours", "deadline")}
    left = None if now.estimate is None else _plan_facts(now.estimate)
    return {
        **facts,
        "dollars": now.cost,
        "reasons": list(now.reasons),
        "left": left,
        "deadline_risk": now.deadline_risk,
    }


def _show(now: Status) -> None:
    typer.echo(now)


def _finish(made: Bag) -> None:
    typer.echo(made.report())
    if made.status(estimate=False).failed:
        raise typer.Exit(1)


def read_bag(path: Path, folder: Path | None = None) -> tuple[Bag, Fleet]:
    """The bag and the fleet that a file describes."""
    from linnet.cli.described import read_described
    from linnet.errors import FormatError
    from linnet.fleet import Bag, Fleet, Local

    keywords = read_described(path)
    command = keywords.pop("command", None) or keywords.pop("function", None)
    if command is None:
        raise FormatError(f"{path}: `command` is missing, a line with {{name}} for parameters, or `function`")
    if "jobs" in keywords and "parameters" in keywords:
        raise FormatError(f"{path} has both `jobs` and `parameters`; one of them says what to run")
    parameters = keywords.pop("jobs", None) or _axes(keywords.pop("parameters", {}), path)
    described = keywords.pop("fleet", None)
    place = folder or keywords.pop("folder", None) or path.with_suffix(".bag")
    keywords.pop("folder", None)
    try:
        bag_of_file = Bag(command, parameters, folder=place, **keywords)
    except TypeError as error:
        raise FormatError(f"{path}: {error}") from None
    return bag_of_file, Fleet([Local()]) if described is None else _fleet(described, path)


def _axes(axes: dict[str, Any], path: Path) -> dict[str, Any]:
    from linnet.errors import FormatError
    from linnet.fleet import span

    ranges: dict[str, Any] = {}
    for name, value in axes.items():
        if isinstance(value, dict):
            kind, numbers = next(iter(value.items())) if len(value) == 1 else ("", None)
            if kind not in ("span", "log_span", "range") or not isinstance(numbers, list):
                raise FormatError(
                    f"{path}: parameter {name} is {value!r}; a value, a list, {{span: [0, 1, 11]}}, "
                    "{log_span: [1, 100, 5]} or {range: [0, 10]} is expected"
                )
            value = range(*numbers) if kind == "range" else span(*numbers, log=kind == "log_span")
        ranges[name] = value
    return ranges


def _fleet(described: dict[str, Any], path: Path) -> Fleet:
    from linnet.errors import FormatError
    from linnet.fleet import Catalogue, Fleet, Lifetimes
    from linnet.fleet.fleet import provider_from_json

    unknown = described.keys() - {"providers", "lifetimes", "prices", "servers"}
    if unknown or not described.get("providers"):
        raise FormatError(
            f"{path}: a fleet has providers, and perhaps lifetimes, prices and servers; given: "
            f"{', '.join(described) or 'nothing'}"
        )
    model = None
    if "lifetimes" in described:
        lifetimes = described["lifetimes"]
        data: dict[str, Any] = {"path": lifetimes} if isinstance(lifetimes, str) else dict(lifetimes)
        law = data.pop("law", None)
        model = Lifetimes.from_csv(path.parent / data.pop("path"), **data).fit(law)
    prices = Catalogue.from_csv(path.parent / described["prices"]) if "prices" in described else None
    return Fleet(
        [provider_from_json(each) for each in described["providers"]],
        model=model,
        prices=prices,
        servers=described.get("servers"),
    )
