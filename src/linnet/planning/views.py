"""A plan as text: a few lines that say what it does, and a table of its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.kernels import get as get_kernel
from linnet.tiles import human

if TYPE_CHECKING:
    from linnet.planning.plan import Plan

_COLUMNS = {
    "node": "node",
    "workers": "workers",
    "tasks": "tasks",
    "busy": "busy",
    "bytes_in": "received",
    "bytes_moved": "moved",
    "pruned": "not looked at to the end",
    "bytes_out": "sent",
    "peak_memory": "peak memory",
}


class Table(list[dict[str, Any]]):
    """Rows as dictionaries, which print as a table.

    >>> Table([{"node": 0, "bytes_in": 1500}, {"node": 1, "bytes_in": 0}])
    node  received
    0       1.5 kB
    1      0 bytes
    """

    def __str__(self) -> str:
        if not self:
            return "(no rows)"
        lines = [[_COLUMNS.get(name, name) for name in self[0]]]
        lines += [[_cell(name, value) for name, value in row.items()] for row in self]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """The table for a notebook."""
        if not self:
            return "<p>(no rows)</p>"
        head = "".join(f"<th>{escape(_COLUMNS.get(name, name))}</th>" for name in self[0])
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(_cell(name, value))}</td>" for name, value in row.items())
            + "</tr>"
            for row in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(name: str, value: Any) -> str:
    if name.startswith("bytes") or name.endswith("memory"):
        return human(value)
    if name == "busy":
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def duration(seconds: float) -> str:
    """Seconds in units people read.

    >>> duration(2.5e-5), duration(0.25), duration(72.0), duration(7_500.0)
    ('25.0 µs', '250.0 ms', '72.0 s', '2 h 5 min')
    """
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {round(seconds % 3600 / 60)} min"
    if seconds >= 1 or not seconds:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def lines(pairs: Iterable[tuple[str, str]], indent: str = "  ") -> list[str]:
    """Names and values, the values one below the other."""
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    return [f"{indent}{name.ljust(width)}  {value}" for name, value in listed]


def summary(plan: Plan) -> list[tuple[str, str]]:
    """What a plan comes to: names and values."""
    alone = plan.cluster.count == 1
    moved = f"{human(plan.bytes_moved)} between nodes, in {plan.transfers:,} transfers"
    if plan.lower_bound is not None:
        moved += f"; at least {human(plan.lower_bound)}"
        moved += f" ({plan.bytes_moved / plan.lower_bound:.2f} times)" if plan.lower_bound else ""
    busiest = int(np.argmax(plan.bytes_in)) if plan.cluster.count else 0
    fullest = int(np.argmax(plan.peak_memory))
    between = [
        ("moved", moved),
        ("received", f"at most {human(int(plan.bytes_in[busiest]))}, by node {busiest}"),
    ]
    fullest_node = "" if alone else f", on node {fullest}"
    return [
        ("tasks", f"{plan.tasks:,} on {_workers(plan)}"),
        *(() if alone else between),
        ("memory", f"at most {human(int(plan.peak_memory[fullest]))}{fullest_node}"),
        ("time", f"{duration(plan.seconds)}; workers are busy {_busy(plan).mean():.0%} of it"),
        *(() if alone else [("placed by", plan.policy)]),
        *(("gathered", each) for each in _gathered(plan)),
    ]


def _gathered(plan: Plan) -> Iterable[str]:
    """What is brought together for kernels that take whole arrays: how much, and where."""
    work = plan.work
    for statement in work.bound.program.statements:
        tasks = np.flatnonzero(work.statement == statement.number)
        if not len(tasks) or not get_kernel(statement.kernel).gathers:
            continue
        sizes = [int(work.tile_bytes[work.reads(task)].sum()) for task in tasks.tolist()]
        most = int(np.argmax(sizes))
        where = f"{human(sizes[most])} on node {plan.placement.nodes[tasks[most]]}, for {statement.kernel}"
        several = f"the largest of {len(tasks):,} tasks that take whole arrays"
        yield f"{where}: {'one task takes it whole' if len(tasks) == 1 else several}"


def _workers(plan: Plan) -> str:
    cluster = plan.cluster
    nodes = f"{cluster.count} node{'s' * (cluster.count != 1)}"
    return f"{nodes} with {cluster.workers} worker{'s' * (cluster.workers != 1)}"


def _busy(plan: Plan) -> Any:
    """The part of the time that each node's workers are in kernels."""
    timing = plan.simulated
    spent = np.bincount(
        plan.placement.nodes, weights=timing.finish - timing.start, minlength=plan.cluster.count
    )
    workers = np.array([node.workers for node in plan.cluster.nodes])
    return spent / (workers * plan.seconds) if plan.seconds else np.zeros(plan.cluster.count)


def text(plan: Plan) -> str:
    """The plan in a few lines."""
    return "\n".join([f"plan of {plan.work.bound.program.name}", *lines(summary(plan))])


def table(plan: Plan) -> Table:
    """What each node does."""
    busy = _busy(plan)
    tasks = np.bincount(plan.placement.nodes, minlength=plan.cluster.count)
    return Table(
        {
            "node": number,
            "workers": node.workers,
            "tasks": int(tasks[number]),
            "busy": float(busy[number]),
            "bytes_in": int(plan.bytes_in[number]),
            "bytes_out": int(plan.bytes_out[number]),
            "peak_memory": int(plan.peak_memory[number]),
        }
        for number, node in enumerate(plan.cluster.nodes)
    )


def rivals(plan: Plan) -> Table:
    """What each policy would have cost, the cheapest first."""
    costs = {plan.policy: plan.cost, **plan.rivals}
    ordered = sorted(costs.items(), key=lambda item: (bool(item[1].pruned), item[1].seconds))
    return Table(
        {
            "policy": name + (" (taken)" if name == plan.policy else ""),
            "time": duration(cost.seconds),
            "bytes_moved": cost.bytes_moved,
            "peak_memory": cost.peak_memory,
            "pruned": cost.pruned,
        }
        for name, cost in ordered
    )
