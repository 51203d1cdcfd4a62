"""A report: data about runs, as a page, as JSON, as a picture, as a few lines."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet.errors import InputError
from linnet.reports.page import html_page
from linnet.tiles.amounts import human

_PICTURES = (".svg", ".png", ".pdf")


@dataclass(frozen=True, slots=True)
class Report:
    """What ran, and how it went.

    >>> Report({"title": "fit.py", "jobs": []})
    Report('fit.py', 0 runs)
    """

    data: dict[str, Any]
    """Everything that the page shows."""

    def html(self) -> str:
        """The page: one file, which needs nothing else."""
        return html_page(self.data["title"], self.data)

    def json(self) -> str:
        """The same as data."""
        return json.dumps(self.data, indent=1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report: `.html` (the data beside it, as `.json`), `.json`, `.svg`, `.png` or `.pdf`."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind in (".html", ".htm", ""):
            target.write_text(self.html(), encoding="utf-8")
            target.with_suffix(".json").write_text(self.json(), encoding="utf-8")
        elif kind == ".json":
            target.write_text(self.json(), encoding="utf-8")
        elif kind in _PICTURES:
            from linnet.reports.figure import draw

            draw(self.data, target)
        else:
            raise InputError(
                f"{str(path)!r}: a report is written as .html, .json, .svg, .png or .pdf, not as {kind}"
            )
        return target

    def __str__(self) -> str:
        lines = [self.data["title"]]
        for job in self.data["jobs"]:
            seconds = "" if job["seconds"] is None else f" in {job['seconds']:.2f} s"
            lines.append(
                f"  {job['program']}: {job['state']}{seconds}, {job['done']:,} of {job['tasks']:,} tasks"
                + (f" on {job['workers']} worker{'s' * (job['workers'] != 1)}" if job["workers"] else "")
            )
            lines += [
                f"    {kernel['name']}: {kernel['tasks']:,} tasks, {kernel['seconds']:.3f} s"
                for kernel in job["kernels"][:5]
            ]
            if job["samples"] and job["samples"][-1][5]:
                read, written = job["samples"][-1][5:7]
                lines.append(f"    {human(read)} read, {human(written)} written by tasks")
        return "\n".join(lines)

    def framed(self) -> str:
        """The page in a frame, for notebooks."""
        page = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:0"></iframe>'

    def _repr_html_(self) -> str:
        return self.framed()

    def __repr__(self) -> str:
        runs = len(self.data["jobs"])
        return f"Report({self.data['title']!r}, {runs} run{'s' * (runs != 1)})"
