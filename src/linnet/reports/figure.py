"""The report as a picture for papers: tasks of each worker, and below it tasks and memory over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from linnet.errors import InputError, missing_extra

_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e")


def draw(data: dict[str, Any], path: Path) -> None:
    """Draw the last run that has tasks to draw."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("a report as a picture", "matplotlib", "plot") from error
    jobs = [each for each in data["jobs"] if each["spans"] or len(each["samples"]) > 1]
    if not jobs:
        raise InputError("nothing to draw: no run had a task of a millisecond or more")
    job = jobs[-1]
    lanes = max(len(job["lanes"]), 1)
    figure: Any = Figure(figsize=(7, 2.6 + 0.22 * min(lanes, 30)), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[max(lanes * 0.25, 1), 1.4])
    for kernel, name in enumerate(job["names"]):
        spans = [each for each in job["spans"] if each[0] == kernel]
        colour = _COLOURS[kernel % len(_COLOURS)]
        above.barh(
            [each[1] for each in spans],
            [each[3] for each in spans],
            left=[each[2] for each in spans],
            color=colour,
            height=0.8,
            label=name,
        )
    above.set_yticks(range(len(job["lanes"])), job["lanes"], fontsize=7)
    above.set_title(f"{job['program']}: {job['done']:,} tasks", fontsize=9)
    if job["names"]:
        above.legend(fontsize=6, ncols=1, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    times = [each[0] for each in job["samples"]]
    below.plot(times, [each[3] for each in job["samples"]], color="#4269d0", label="tasks under way")
    below.set_xlabel("seconds", fontsize=8)
    below.set_ylabel("tasks under way", fontsize=8, color="#4269d0")
    if any(each[7] for each in job["samples"]):
        other = below.twinx()
        other.plot(times, [each[7] / 1e9 for each in job["samples"]], color="#a463f2")
        other.set_ylabel("memory, GB", fontsize=8, color="#a463f2")
        other.set_ylim(bottom=0)
    figure.savefig(path, dpi=160)
