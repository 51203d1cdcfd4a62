"""A plan in a notebook: its numbers, who works when, and who sends what to whom, as inline pictures.

Pictures are SVG written by hand: they need no library, no script and no network, and what a mark means is in
its title. Where there are more tasks, workers or nodes than a picture can hold they are drawn as sums.
"""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.planning.views import duration, rivals, summary, table
from linnet.tiles import human

if TYPE_CHECKING:
    from linnet.planning.plan import Plan

COLOURS = ("#2f6f9f", "#c2571a", "#4b8b3b", "#8a5aa8", "#b8952a", "#3f8f8f", "#a8475f", "#6b6b6b")
"""One for each kernel; they come again where there are more."""
_WIDTH = 760
_LABEL = 70
_MOST_MARKS = 2000
"""Tasks that are drawn one by one."""
_MOST_LANES = 48
_MOST_CELLS = 32
_BINS = 230
_SHADES = 5


def html(plan: Plan) -> str:
    """The plan as a piece of HTML."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in summary(plan)
    )
    parts = [
        f"<b>plan of {escape(plan.work.bound.program.name)}</b>",
        f"<table>{rows}</table>",
        timeline(plan),
    ]
    if plan.cluster.count > 1:
        parts.append(matrix(plan))
    parts.append(_folded("nodes", table(plan).html()))
    if plan.rivals:
        parts.append(_folded("why this policy", rivals(plan).html()))
    return "<div>" + "\n".join(parts) + "</div>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


# ---- who works when


def timeline(plan: Plan) -> str:
    """A lane for each worker, with a mark for each task; time goes to the right."""
    lanes = _lanes(plan)
    count = int(lanes.max(initial=0)) + 1
    kernels = [statement.kernel for statement in plan.work.bound.program.statements]
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(dict.fromkeys(kernels))}
    height = 14 if count <= 16 else 8
    top = 20
    if len(lanes) <= _MOST_MARKS and count <= _MOST_LANES:
        drawn, rows = _marks(plan, lanes, colours, height, top), count
        legend = _legend(colours)
    else:
        rows = min(count, _MOST_LANES)
        drawn = _shades(plan, lanes, count, rows, height, top)
        legend = [f"<text x='{_LABEL}' y='12'>the darker, the more workers are busy</text>"]
    bottom = top + rows * height
    labels = _lane_labels(plan, count, rows, height, top)
    axis = [
        f"<text x='{_LABEL}' y='{bottom + 14}'>0 s</text>",
        f"<text x='{_WIDTH}' y='{bottom + 14}' text-anchor='end'>{duration(plan.seconds)}</text>",
    ]
    return _svg(_WIDTH + 4, bottom + 20, [*legend, *labels, *drawn, *axis], "who works when")


def _legend(colours: dict[str, str]) -> list[str]:
    """Which colour is which kernel."""
    entries: list[str] = []
    place = _LABEL
    for name, colour in list(colours.items())[: len(COLOURS)]:
        entries.append(f"<rect x='{place}' y='4' width='9' height='9' fill='{colour}'/>")
        entries.append(f"<text x='{place + 12}' y='12'>{escape(name)}</text>")
        place += 26 + 7 * len(name)
    return entries


def _lanes(plan: Plan) -> NDArray[np.int64]:
    """The lane of each task: workers of the first node, then of the second, …"""
    before = np.cumsum([0, *(node.workers for node in plan.cluster.nodes)])
    return (before[plan.placement.nodes] + plan.simulated.worker).astype(np.int64)


def _lane_labels(plan: Plan, count: int, rows: int, height: int, top: int) -> list[str]:
    """The name of a node where its lanes begin, as often as there is room."""
    labels: list[str] = []
    lane, last = 0, -100.0
    for number, node in enumerate(plan.cluster.nodes):
        y = top + lane * rows / max(count, 1) * height + 9
        if y - last >= 11 and lane < count:
            labels.append(f"<text x='{_LABEL - 6}' y='{y:.0f}' text-anchor='end'>node {number}</text>")
            last = y
        lane += node.workers
    return labels


def _marks(plan: Plan, lanes: NDArray[np.int64], colours: dict[str, str], height: int, top: int) -> list[str]:
    scale = (_WIDTH - _LABEL) / plan.seconds if plan.seconds else 0.0
    work, timing = plan.work, plan.simulated
    kernels = [statement.kernel for statement in work.bound.program.statements]
    marks: list[str] = []
    for task in range(work.count):
        kernel = kernels[int(work.statement[task])]
        start, finish = float(timing.start[task]), float(timing.finish[task])
        indices = ", ".join(map(str, work.tasks.task(task).indices))
        title = f"{kernel}({indices}), {duration(finish - start)}"
        marks.append(
            f"<rect x='{_LABEL + start * scale:.1f}' y='{top + lanes[task] * height}' "
            f"width='{max((finish - start) * scale, 0.5):.1f}' height='{height - 1}' "
            f"fill='{colours[kernel]}'><title>{escape(title)}</title></rect>"
        )
    return marks


def _shades(plan: Plan, lanes: NDArray[np.int64], count: int, rows: int, height: int, top: int) -> list[str]:
    """How busy workers are, from moment to moment; several lanes become one where there are too many."""
    row = lanes * rows // count
    share = busy(plan.simulated.start, plan.simulated.finish, row, rows, plan.seconds, _BINS)
    share /= np.maximum(np.bincount(np.arange(count) * rows // count, minlength=rows), 1)[:, None]
    width = (_WIDTH - _LABEL) / _BINS
    shades: list[str] = []
    for y in range(rows):
        level = np.ceil(share[y] * _SHADES - 0.1).astype(int)
        edges = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), _BINS]
        for first, last in itertools.pairwise(edges):
            if level[first]:
                shades.append(
                    f"<rect x='{_LABEL + first * width:.1f}' y='{top + y * height}' "
                    f"width='{(last - first) * width:.1f}' height='{height - 1}' fill='{COLOURS[0]}' "
                    f"fill-opacity='{level[first] / _SHADES:.3g}'/>"
                )
    return shades


def busy(
    start: NDArray[np.float64],
    finish: NDArray[np.float64],
    row: NDArray[np.int64],
    rows: int,
    seconds: float,
    bins: int,
) -> NDArray[np.float64]:
    """For each row and each of equal spans of time: how much of it tasks fill, added up.

    >>> busy(np.array([0.0, 1.5]), np.array([1.0, 2.0]), np.array([0, 1]), 2, 2.0, 2)
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    if not seconds:
        return np.zeros((rows, bins))
    # The time worked before a moment is a sum of ramps: each task adds one at its start, and takes one
    # away at its finish. Between moments it grows by what was worked there.
    edges = np.linspace(0.0, seconds, bins + 1)
    shares = np.zeros((rows, bins))
    for number in range(rows):
        mine = row == number
        worked = _ramps(start[mine], edges) - _ramps(finish[mine], edges)
        shares[number] = np.diff(worked) * bins / seconds
    return shares


def _ramps(begins: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each edge the sum of the times since those begins that lie before it."""
    begins = np.sort(begins)
    before = np.searchsorted(begins, edges)
    return before * edges - np.concatenate([[0.0], np.cumsum(begins)])[before]


# ---- who sends what to whom


def matrix(plan: Plan) -> str:
    """A square for each pair of nodes, the darker the more is sent from the one to the other."""
    amounts = plan.moved.between(plan.cluster.count)
    group = -(-len(amounts) // _MOST_CELLS)
    if group > 1:
        edges = np.arange(0, len(amounts), group)
        amounts = np.add.reduceat(np.add.reduceat(amounts, edges, axis=0), edges, axis=1)
    count = len(amounts)
    side = max(8, min(24, 320 // count))
    most = max(int(amounts.max(initial=0)), 1)
    left, top = 50, 34
    drawn = [
        f"<text x='{left}' y='12'>sent from row to column; darkest: {human(most)}</text>",
        f"<rect x='{left}' y='{top}' width='{count * side}' height='{count * side}' fill-opacity='0.06'/>",
    ]
    for y in range(count):
        if count <= 16 or y % 4 == 0:
            drawn.append(
                f"<text x='{left - 6}' y='{top + y * side + side * 0.7:.0f}' text-anchor='end'>"
                f"{y * group}</text>"
            )
            drawn.append(f"<text x='{left + y * side + 2}' y='{top - 4}'>{y * group}</text>")
        for x in np.flatnonzero(amounts[y]).tolist():
            amount = int(amounts[y, x])
            title = f"{_nodes(y, group)} to {_nodes(x, group)}: {human(amount)}"
            drawn.append(
                f"<rect x='{left + x * side}' y='{top + y * side}' width='{side - 1}' height='{side - 1}' "
                f"fill='{COLOURS[0]}' fill-opacity='{0.15 + 0.85 * amount / most:.2f}'>"
                f"<title>{escape(title)}</title></rect>"
            )
    return _svg(max(left + count * side + 4, 320), top + count * side + 6, drawn, "who sends to whom")


def _nodes(place: int, group: int) -> str:
    return f"node {place}" if group == 1 else f"nodes {place * group}–{(place + 1) * group - 1}"


def _svg(width: int, height: Any, content: list[str], title: str) -> str:
    inside = "\n".join(content)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{escape(title)}' "
        f"width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
        f"font-family='sans-serif' font-size='10' fill='currentColor' "
        f"style='display:block;max-width:100%;margin:6px 0'>\n{inside}\n</svg>"
    )
