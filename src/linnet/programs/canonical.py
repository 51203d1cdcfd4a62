"""Generated text: its lines, and the canonical names used in it in place of the program's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from linnet.programs.expressions import transform
from linnet.programs.grammar import Expr, Lookup, Name
from linnet.programs.statements import Loop
from linnet.records import record


@dataclass(slots=True)
class Lines:
    """Python text being written, with its indentation."""

    depth: int = 1
    lines: list[str] = field(default_factory=list[str])

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)


@record
class Canonical:
    """What the names of one side of a pair are called in generated text."""

    sizes: Mapping[str, str]
    tables: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def rename(self, expr: Expr) -> Expr:
        def change(e: Expr) -> Expr | None:
            match e:
                case Name(id):
                    return Name(self.variables.get(id) or self.sizes[id])
                case Lookup(table, index):
                    return Lookup(self.tables[table], transform(index, change))
                case _:
                    return None

        return transform(expr, change)

    def loop(self, loop: Loop) -> Loop:
        return Loop(
            self.variables[loop.variable],
            self.rename(loop.start),
            self.rename(loop.stop),
            self.rename(loop.step),
            tuple(self.rename(g) for g in loop.guards),
        )

    def extended(self, names: Mapping[str, str]) -> Canonical:
        return Canonical(self.sizes, self.tables, {**self.variables, **names})


def is_size(name: str) -> bool:
    """Whether a canonical name is that of a size."""
    return name.startswith("p")
