"""What a bound program will be like to run: tasks, work, parallelism and working set over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import islpy as isl
import numpy as np
import numpy.typing as npt

from linnet.errors import ProgramError, missing_extra
from linnet.programs.counting import NoClosedForm, counts_along, fixed
from linnet.programs.enumeration import Enumerator, TooManyRows
from linnet.programs.grammar import In, Temp
from linnet.programs.integer_sets import IN, OUT, SET, NotAffine, greatest
from linnet.programs.levels import Formula, affine_levels, asap_levels, level_function
from linnet.programs.statements import Access, Statement
from linnet.programs.work import Tile, total_bytes, total_flops

if TYPE_CHECKING:
    from linnet.programs.bound import BoundProgram

_MOST_TASKS = 20_000_000
"""Programs without a formula for their levels are listed up to this many tasks."""

Steps = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Profile:
    """A program over time, when every task takes one step and runs as early as it can."""

    name: str
    tasks: int
    by_kernel: Mapping[str, int]
    """Number of tasks of each kernel."""
    flops: float | None
    """Floating-point operations; None unless tile shapes are given and every kernel declares its own."""
    bytes: int | None
    """Bytes of all tiles read and written by tasks, were nothing cached; None without tile shapes."""
    parallelism: Steps
    """Number of tasks that can run at each step."""
    working_set: Steps
    """Number of tiles alive at each step: inputs until read for the last time; other tiles from the
    step that writes them until then."""
    listed: bool = field(repr=False)
    """Whether every task had to be listed; False when formulas were found and proved."""

    @property
    def critical_path(self) -> int:
        """Number of steps: tasks on the longest chain."""
        return len(self.parallelism)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw parallelism and working set over time (needs matplotlib); save to `path` if given."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise missing_extra("drawing", "matplotlib", "plot") from error
        figure: Any = Figure(figsize=(7.5, 3.4), layout="constrained")
        left: Any = figure.add_subplot()
        right: Any = left.twinx()
        for axes, values, color, label in (
            (left, self.parallelism, "#2f6f9f", "tasks that can run"),
            (right, self.working_set, "#c2571a", "tiles alive"),
        ):
            steps, low, mean, high = _smoothed(values)
            axes.fill_between(steps, low, high, color=color, alpha=0.22, linewidth=0)
            axes.plot(steps, mean, color=color, linewidth=1.5)
            axes.set_ylabel(label, color=color)
            axes.set_ylim(bottom=0)
        left.set_xlabel("step of the critical path")
        left.margins(x=0)
        left.set_title(f"{self.name}: {self.tasks:,} tasks, {self.critical_path:,} steps", fontsize=10)
        if path is not None:
            figure.savefig(path)
        return figure


def _smoothed(values: Steps) -> tuple[Any, Any, Any, Any]:
    """Steps, and the least, mean and greatest value around each: phases of a few steps would be a blur."""
    steps = np.arange(len(values))
    width = len(values) // 100
    if width < 2:
        return steps, np.zeros(len(values)), values, values
    window = np.lib.stride_tricks.sliding_window_view(np.pad(values, width, mode="edge"), 2 * width + 1)
    return steps, window.min(axis=1), window.mean(axis=1), window.max(axis=1)


def profile(bound: BoundProgram, tile: Tile | None, dtype: Any) -> Profile:
    """The profile of a bound program; see Profile."""
    by_kernel: dict[str, int] = {}
    for statement, count in zip(bound.program.statements, bound.counts, strict=True):
        by_kernel[statement.kernel] = by_kernel.get(statement.kernel, 0) + count
    parts = _from_formulas(bound) or _from_listing(bound)
    parallelism, working_set, listed = parts
    return Profile(
        bound.program.name,
        bound.count(),
        by_kernel,
        None if tile is None else total_flops(bound, tile),
        None if tile is None else total_bytes(bound, tile, np.dtype(dtype).itemsize),
        parallelism,
        working_set,
        listed,
    )


# ---- without listing ---------------------------------------------------------------


def _from_formulas(bound: BoundProgram) -> tuple[Steps, Steps, bool] | None:
    formulas = affine_levels(bound.program)
    if formulas is None:
        return None
    try:
        timed = [_timed_domain(bound, s, formulas) for s in bound.program.statements]
        last = max((greatest(t, 0) for t in timed if not t.is_empty()), default=-1)
        steps = np.arange(last + 1)
        parallelism = sum((counts_along(t, steps) for t in timed), np.zeros(last + 1, dtype=np.int64))
        change = np.zeros(last + 2, dtype=np.int64)
        for array in bound.program.arrays:
            for born, read_last in _lifetimes(bound, array, formulas):
                change[:-1] += counts_along(_time_first(born), steps)
                change[1:] -= counts_along(_time_first(read_last), steps)
    except (NotAffine, NoClosedForm, isl.Error):
        return None
    return parallelism, np.cumsum(change)[:-1], False


def _timed_domain(bound: BoundProgram, statement: Statement, formulas: Sequence[Formula]) -> Any:
    """Tasks of a statement with their level in front: a set over (level, loop variables)."""
    sets = bound.program.proof.sets
    dims = len(statement.loops) + 1
    level = level_function(sets, statement, formulas[statement.number], dims, 1)
    points = sets.domain(statement.number).insert_dims(SET, 0, 1)
    points = points.intersect(sets.space(dims)[2][0].eq_set(level))
    return fixed(sets, points, bound.sizes)


def _lifetimes(bound: BoundProgram, array: str, formulas: Sequence[Formula]) -> list[tuple[Any, Any]]:
    """Pairs of maps from tiles: to the step from which, and to the step until which, they are alive."""
    born = _levels_of_tiles(bound, array, "writes", formulas)
    read = _levels_of_tiles(bound, array, "reads", formulas)
    last = read.lexmax() if read is not None else None
    if isinstance(bound.program.arrays[array], In):
        if last is None:
            return []
        zero = isl.Set.universe(last.range().get_space()).fix_val(SET, 0, 0)
        start = isl.Map.from_domain_and_range(last.domain(), zero)
        return [(start, last)]
    if born is None:
        return []
    if last is None:
        return [(born, born)]
    unread = born.subtract_domain(last.domain())
    return [(born, last.intersect_domain(born.domain())), (isl.Map.empty(unread.get_space()), unread)]


def _time_first(tiles: Any) -> Any:
    """A map tile → step as a set over (step, tile)."""
    return tiles.reverse().wrap().flatten()


def _levels_of_tiles(bound: BoundProgram, array: str, kind: str, formulas: Sequence[Formula]) -> Any | None:
    """Tile → level of a task that writes (or reads) it, at the bound sizes."""
    sets = bound.program.proof.sets
    role = bound.program.arrays[array]
    levels: Any = None
    for statement in bound.program.statements:
        accesses: tuple[Access, ...] = getattr(statement, kind)
        for slot, access in enumerate(accesses):
            if access.array != array:
                continue
            tiles = sets.access(statement.number, kind, slot)
            if kind == "reads" and isinstance(role, Temp) and role.of:
                tiles = tiles.subtract(tiles.fix_val(OUT, 0, 0))  # version 0 is another array's tile
            level = level_function(sets, statement, formulas[statement.number], tiles.dim(IN))
            relation = tiles.reverse().apply_range(isl.Map.from_pw_aff(level))
            relation = fixed(sets, relation, bound.sizes)
            levels = relation if levels is None else levels.union(relation)
    return levels


# ---- with listing ------------------------------------------------------------------


def _from_listing(bound: BoundProgram) -> tuple[Steps, Steps, bool]:
    if bound.count() > _MOST_TASKS:
        raise ProgramError(
            f"the profile of {bound!r} needs a list of {bound.count():,} tasks (at most {_MOST_TASKS:,}), "
            "because the levels of its tasks have no formula; bind it to smaller sizes"
        )
    try:
        return _listed(bound, replace(bound.enumerator(), most=4 * _MOST_TASKS))
    except TooManyRows as error:
        raise ProgramError(f"the profile of {bound!r} needs a list of too many tiles: {error}") from error


def _listed(bound: BoundProgram, enumerator: Enumerator) -> tuple[Steps, Steps, bool]:
    arrays = enumerator.arrays()
    level = asap_levels(arrays)
    steps = int(level.max()) + 1 if len(level) else 0
    parallelism = np.bincount(level, minlength=steps).astype(np.int64)
    change = np.zeros(steps + 1, dtype=np.int64)
    for array in bound.program.arrays:
        _listed_lifetimes(bound, enumerator, array, arrays.offsets, level, change)
    return parallelism, np.cumsum(change)[:steps], True


def _listed_lifetimes(
    bound: BoundProgram, enumerator: Enumerator, array: str, offsets: Any, level: Any, change: Any
) -> None:
    """Add +1 at the step each tile of an array comes alive, -1 after the step that reads it last."""
    role = bound.program.arrays[array]
    based = isinstance(role, Temp) and role.of is not None
    times: dict[str, list[Any]] = {"writes": [], "reads": []}
    for statement in bound.program.statements:
        table = enumerator.columns(statement.loops, statement.guards)
        for kind, rows in times.items():
            for access in getattr(statement, kind):
                if access.array != array:
                    continue
                row, index = enumerator.tiles(table, access)
                tasks = np.arange(len(table[""])) if row is None else row
                when = level[offsets[statement.number] + tasks]
                both = np.column_stack([*index, when])
                rows.append(both[both[:, 0] != 0] if based and kind == "reads" else both)
    width = next((r.shape[1] for rows in times.values() for r in rows), 1)
    writes, reads = (
        np.vstack(rows) if rows else np.zeros((0, width), dtype=np.int64) for rows in times.values()
    )
    which, count = _numbered(np.vstack([writes, reads])[:, :-1])
    born = np.full(count, -1, dtype=np.int64)
    born[which[: len(writes)]] = writes[:, -1]
    last = born.copy()
    np.maximum.at(last, which[len(writes) :], reads[:, -1])
    if isinstance(role, In):
        born[:] = 0
    else:  # tiles that nobody writes are a fill value, not a tile
        last, born = last[born >= 0], born[born >= 0]
    np.add.at(change, born, 1)
    np.subtract.at(change, last + 1, 1)


def _numbered(rows: Any) -> tuple[Any, int]:
    """A number for each different row, and how many there are; one column after another."""
    number = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        _, number = np.unique(number * (high - low + 1) + (column - low), return_inverse=True)
    return number, int(number.max()) + 1 if len(number) else 0
