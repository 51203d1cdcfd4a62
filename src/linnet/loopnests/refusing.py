"""Refusals: what was written, where, why it cannot be, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from linnet.errors import LoopError
from linnet.programs.diagnostics import Diagnostic
from linnet.programs.grammar import At


@dataclass(frozen=True, slots=True)
class Origin:
    """The text that loops were read from."""

    name: str
    """The function, as users call it."""
    file: str
    lines: Sequence[str]

    def refuse(self, message: str, fix: str, at: At | None) -> NoReturn:
        """Raise a `LoopError` that points at a place of the text."""
        found = Diagnostic(message, fix, at)
        raise LoopError(f"loops {self.name!r}: {found.show(self.file, self.lines)}", (found,))
