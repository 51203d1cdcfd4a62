"""A few facts as a small table: how jobs, bags and programs look in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence


def table_as_html(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, marked: int = -1
) -> str:
    """A table with a headline; one of its rows may be marked.

    >>> "<td>1</td>" in table_as_html("Laws", ["AIC"], [["1"]]).replace(" style='text-align:left'", "")
    True
    """
    left = " style='text-align:left'"
    head = "".join(f"<th{left}>{html.escape(each)}</th>" for each in columns)
    body = "".join(
        f"<tr{' style=font-weight:bold' if place == marked else ''}>"
        + "".join(f"<td{left}>{html.escape(each)}</td>" for each in row)
        + "</tr>"
        for place, row in enumerate(rows)
    )
    whole = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f"<div><b>{html.escape(title)}</b><table>{whole}</table></div>"


def facts_as_html(title: str, facts: Mapping[str, str], share: float | None = None) -> str:
    """A table with a title, and a bar if a share is given.

    >>> "<b>Job</b>" in facts_as_html("Job", {"state": "running"}, 0.5)
    True
    """
    rows = "".join(
        f"<tr><td style='opacity:.65;text-align:left'>{html.escape(name)}</td>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in facts.items()
    )
    bar = ""
    if share is not None:
        bar = (
            "<div style='width:260px;height:8px;border-radius:4px;background:rgba(128,128,128,.25)'>"
            f"<div style='width:{100 * min(share, 1.0):.1f}%;height:8px;border-radius:4px;"
            "background:#2f6fde'></div></div>"
        )
    return f"<div><b>{html.escape(title)}</b>{bar}<table>{rows}</table></div>"
