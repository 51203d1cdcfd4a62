"""The rows of a bag: one for each job, whatever it took. As Python values, CSV, Arrow or pandas."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linnet.errors import InputError, missing_extra
from linnet.reports.html_facts import table_as_html

COLUMNS = (
    "job", "state", "result", "exit_status", "attempts", "preemptions", "failures", "server", "hours",
    "dollars",
)  # fmt: skip
"""Columns beside the parameters; a parameter cannot have such a name."""

_SHOWN = 20
"""Rows that a notebook shows."""


class Table(Sequence[Mapping[str, Any]]):
    """Rows of a bag, by job. A row is a dictionary: parameters, and the columns of `COLUMNS`.

    `state` is "done", "failed", "dropped" (not run again), "stopped" (hopeless), "waiting" or "running";
    `hours` and
    `dollars` are those of all attempts.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], parameters: Sequence[str]) -> None:
        self._rows = list(rows)
        self.parameters: list[str] = list(parameters)
        """Names of the parameters."""
        self.columns: list[str] = [COLUMNS[0], *self.parameters, *COLUMNS[1:]]
        """Names of all columns."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            return self.column(place)
        return self._rows[place]  # pyright: ignore[reportUnknownVariableType]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._rows)

    def column(self, name: str) -> list[Any]:
        """The values of one column."""
        return [row.get(name) for row in self._rows]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file; lists and dictionaries as JSON."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in self._rows:
                writer.writerow([_cell(row.get(name)) for name in self.columns])

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` (extra `io`); a column of values of several kinds becomes JSON text."""
        try:
            import pyarrow  # pyright: ignore
        except ImportError as error:
            raise missing_extra("Arrow tables", "pyarrow", "io") from error
        arrow: Any = pyarrow
        columns: dict[str, Any] = {}
        for name in self.columns:
            values = self.column(name)
            try:
                columns[name] = arrow.array(values)
            except arrow.ArrowException:
                columns[name] = arrow.array([None if each is None else json.dumps(each) for each in values])
        return arrow.table(columns)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        try:
            import pandas  # pyright: ignore
        except ImportError as error:
            raise missing_extra("data frames", "pandas", "pandas") from error
        frame: Any = pandas
        return frame.DataFrame({name: self.column(name) for name in self.columns})

    def _repr_html_(self) -> str:
        shown = self._rows[:_SHOWN]
        rows = [[_text(row.get(name)) for name in self.columns] for row in shown]
        more = "" if len(shown) == len(self) else f", the first {_SHOWN} of them below"
        return table_as_html(f"{len(self):,} rows{more}", self.columns, rows)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns)}>"


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value)


def check_names(jobs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse parameters that have the name of a column."""
    taken = {name for job in jobs for name in job} & set(COLUMNS)
    if taken:
        raise InputError(
            f"parameters cannot be called {', '.join(sorted(taken))}: the table has columns of these names"
        )


def _text(value: Any) -> str:
    """A cell for people: nothing for nothing, numbers without digits that nobody reads."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(_cell(value))
