"""What is wrong with a program: collected first, shown together.

Each diagnostic points at its place and says what to write instead, so that one run
shows a user everything there is to mend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from linnet.errors import ProgramError
from linnet.programs.grammar import At
from linnet.records import record


@record
class Diagnostic:
    """One thing wrong with a program."""

    message: str
    """What was written, and why it cannot be."""
    hint: str = ""
    """What to write instead."""
    at: At | None = None

    @property
    def line(self) -> int:
        return self.at.line if self.at else 0

    @property
    def column(self) -> int:
        """Column of the caret, from 1 as editors count."""
        return self.at.column + 1 if self.at else 0

    def show(self, file: str, source: Sequence[str]) -> str:
        """The diagnostic as text: place, message, source line, caret, hint."""
        place = f"{file}:{self.line}:{self.column}" if self.at else file
        lines = [f"{place}: {self.message}"]
        if self.at and 0 < self.line <= len(source):
            text = source[self.line - 1].rstrip()
            body = text.lstrip()
            indent = len(text) - len(body)
            width = max(1, min(self.at.end, len(text)) - self.at.column)
            lines.append(f"    {body}")
            lines.append("    " + " " * max(0, self.at.column - indent) + "^" * width)
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


@dataclass(slots=True)
class Findings:
    """Diagnostics as they are found; `raise_if_any` shows them all."""

    name: str
    file: str
    source: Sequence[str]
    found: list[Diagnostic] = field(default_factory=list[Diagnostic])
    what: str = "tile program"
    """What the source is, in the first line of the message."""

    def add(self, message: str, hint: str = "", at: At | None = None) -> None:
        one = Diagnostic(message, hint, at)
        if one not in self.found:
            self.found.append(one)

    def raise_if_any(self, error: type[ProgramError] = ProgramError) -> None:
        """Raise `error` with everything found, in source order."""
        if not self.found:
            return
        ordered = sorted(self.found, key=lambda d: (d.line, d.column))
        head = f"{self.what} {self.name!r}: " + (
            "1 problem" if len(ordered) == 1 else f"{len(ordered)} problems"
        )
        text = "\n\n".join(d.show(self.file, self.source) for d in ordered)
        raise error(f"{head}\n\n{text}", tuple(ordered))
