"""When to save a job's state, under a hazard that depends on the server's age.

V(w, a) is the expected time of w hours of work on a server of age a. The next i hours are done and saved,
which takes L = i + δ (the last part is not saved: L = i); with probability q = S(a+L)/S(a) the server lives
so long:

    V(w, 0) = min over i of [∫₀ᴸ S + (1−S(L))·R]/S(L) + V(w−i, L)
    V(w, a) = min over i of ∫ₐ^(a+L) S/S(a) + q·V(w−i, a+L) + (1−q)·(R + V(w, 0))

A server that is lost is replaced by a fresh one, at a cost of R, and work goes on from the last checkpoint;
servers are never changed of one's own will. Work is cut into steps of a minute, and V is tabulated by
increasing w. Ages are multiples of a step as well if δ is; otherwise V is interpolated between two of them.
Jobs of more than eight hours are cut into longer steps, of whole minutes, at most 480 of them.

Young and Daly's rule, an interval of √(2·δ·mean lifetime) throughout, and no checkpoint at all stand beside
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.fleet.laws import Floats
from linnet.fleet.model import Model

EXACT = 480
"""Steps a job is cut into, at most."""
AGES = 1500
"""Ages up to which each is tabulated."""


@dataclass(frozen=True)
class CheckpointPlan:
    """When to checkpoint, and what that is expected to take."""

    intervals: tuple[float, ...]
    """Hours of work between checkpoints while the server lives, without their cost; they sum to the work."""
    expected: float
    """Hours until the job is done, losses, checkpoints and restarts included."""
    young_daly: float
    """The same with an interval of √(2·cost·mean lifetime) throughout."""
    uninterrupted: float
    """The same without any checkpoint."""
    work: float
    """Hours of work."""
    cost: float
    """Hours a checkpoint takes."""
    restart: float
    """Hours a loss costs besides the work."""
    age: float
    """Age of the server the job begins on."""
    _table: _Table = field(repr=False, compare=False)
    """V for all that may be left."""

    def after_loss(self, left: float) -> tuple[float, ...]:
        """The intervals for what is left of the work, on a fresh server.

        Parameters
        ----------
        left : hours of work since the last checkpoint; between two steps of the grid the longer one is taken
        """
        if not 0 <= left <= self.work * (1 + 1e-12):
            raise InputError(f"left must lie between 0 and the {self.work} h of work, not {left!r}")
        steps = self._table.steps
        wanted = min(int(np.ceil(left / self.work * steps - 1e-9)), steps)
        return tuple(part * self.work / steps for part in self._table.parts(wanted))

    def __str__(self) -> str:
        parts = ", ".join(f"{60 * each:.0f}" for each in self.intervals)
        return (
            f"{self.work:g} h of work in parts of {parts} min: {self.expected:.3f} h expected "
            f"(Young-Daly {self.young_daly:.3f}, no checkpoint {self.uninterrupted:.3f})"
        )


def plan_checkpoints(
    model: Model, work: float, cost: float, restart: float, age: float, step: float
) -> CheckpointPlan:
    """The plan of least expected time; see `Model.checkpoints`."""
    for what, value in (("work", work), ("step", step)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{what} must be hours above 0, not {value!r}")
    for what, value in (("cost", cost), ("restart", restart), ("age", age)):
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{what} must be hours of at least 0, not {value!r}")
    if float(np.asarray(model.survival(age))) == 0:
        raise InputError(
            f"no server reaches an age of {age:g} h under this model, so no job can begin on one"
        )
    minutes = max(1, int(np.ceil(work / step - 1e-9)))
    steps = int(np.ceil(minutes / np.ceil(minutes / EXACT)))
    unit = work / steps
    best = _Table(model, steps, unit, cost, restart, np.arange(1, steps))
    expected, intervals = best.begin(age)
    daly = min(sqrt(2 * cost * model.mean) / unit, steps)
    always = max(1, round(daly))
    fixed = _Table(model, steps, unit, cost, restart, np.array([always]), free=False)
    none = float(np.asarray(model.expected_time(work, age, restart)))
    return CheckpointPlan(
        tuple(part * unit for part in intervals),
        expected,
        fixed.begin(age)[0],
        none,
        work,
        cost,
        restart,
        age,
        best,
    )


COARSE = 60
"""Steps of a schedule, which is made while servers wait for it."""
FAR = 0.999
"""Servers older than this share of all ever become are taken to be as old as that."""


class Schedule:
    """When jobs of one length save their state, whatever is left of them and however old their server is.

    The same recursion as `Model.checkpoints`, in coarser steps and for all ages at once, so that it is
    solved once for a bag.

    Parameters
    ----------
    model : how long servers live
    work : hours of a job
    cost : hours to save its state
    restart : hours that each loss costs besides the work done since the last checkpoint
    """

    def __init__(self, model: Model, work: float, cost: float, restart: float) -> None:
        self.model, self.work, self.cost = model, work, cost
        steps = max(1, min(COARSE, int(np.ceil(60 * work - 1e-9))))
        self.unit: float = work / steps
        """Hours of a step."""
        oldest = min(model.limit, float(np.asarray(model.quantile(FAR))), 1000 * work)
        self._table = _Table(
            model, steps, self.unit, cost, restart, np.arange(1, steps), oldest=max(oldest, 2 * work)
        )
        self._kept: dict[tuple[int, int], tuple[float, ...]] = {}

    def expected(self, age: float = 0.0) -> float:
        """Hours until a whole job is done that begins on a server of this age."""
        if age == 0:
            return float(self._table.fresh[-1])
        values: Floats = self._table.values[-1]
        return float(np.interp(age, self._table.grid, values))

    def intervals(self, left: float, age: float) -> tuple[float, ...] | None:
        """Hours of work between checkpoints, without their cost; None if no server becomes so old.

        Parameters
        ----------
        left : hours of work since the last checkpoint. A job that takes longer than was expected is taken to
            have a tenth of it left
        age : of the server, in hours; it is taken to a twentieth of the work
        """
        if float(np.asarray(self.model.survival(age))) == 0:
            return None
        left = max(left, self.work / 10)
        steps = min(int(np.ceil(left / self.unit - 1e-9)), self._table.steps)
        twentieth = self.work / 20
        key = steps, min(round(age / twentieth), int(self._table.grid[-1] / twentieth))
        if key not in self._kept:
            about = min(key[1] * twentieth, age)
            self._kept[key] = tuple(part * self.unit for part in self._table.parts(steps, about))
        found = self._kept[key]
        over = sum(found) - left
        if abs(over) <= 1e-9 * left:
            return found
        # The last part makes up for what the steps do not meet; every part is a step at least.
        return (*found[:-1], found[-1] - over)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What doing some parts at some ages leads to; an axis of ages and one of parts."""

    lives: Floats
    """Probability that the server lives until the part is saved."""
    spent: Floats
    """Expected hours until then, or until the loss."""
    place: NDArray[np.int64]
    """The age of the grid before the age reached."""
    share: Floats | None
    """How far that lies on the way to the next age of the grid; None if all are on the grid."""


class _Table:
    """V for all work left up to a number of steps, at all ages a job that begins on a fresh server can meet.

    `tried` are the parts that may be done next, besides all that is left; unless `free`, that is done only
    when it is no more than the last of them.
    """

    def __init__(
        self, model: Model, steps: int, unit: float, cost: float, restart: float, tried: NDArray[np.int64],
        free: bool = True, oldest: float | None = None,
    ) -> None:  # fmt: skip
        self.model, self.steps, self.unit, self.cost, self.restart = model, steps, unit, cost, restart
        self.tried, self.free = tried, free
        self.grid = self._ages(0.0, oldest)
        self.fresh = np.zeros(steps + 1)
        self.values = self._tabulate(self.grid, known=False)
        self.followed: dict[tuple[int, float], tuple[int, ...]] = {}

    def _ages(self, begin: float, oldest: float | None = None) -> Floats:
        """Ages a job that begins at this age can meet, or all up to the oldest; where they are many, ever
        further apart.
        """
        most = self.steps * self.unit + self.cost * self.steps if oldest is None else oldest - begin
        most = min(most, self.model.limit - begin) + 2 * self.unit
        if most / self.unit <= (AGES if oldest is None else AGES // 4):
            return np.round(begin + self.unit * np.arange(int(np.ceil(most / self.unit)) + 1), 11)
        near = self.unit * np.arange(120)
        far: Floats = np.asarray(np.geomspace(near[-1] + self.unit, most, 200), np.float64)
        if self.model.cap is not None:  # what happens shortly before the cap matters, too
            far = np.concatenate([far, self.model.cap - begin - self.unit * np.arange(-1, 120)])
        far = far[(far > near[-1]) & (far <= most)]
        return np.unique(np.round(begin + np.concatenate([near, far]), 11))

    def _parts(self, ages: Floats, lengths: Floats, grid: Floats) -> _Parts:
        """Ages are rounded, so that whoever would reach the cap reaches it."""
        until = np.round(ages[:, None] + lengths, 11)
        start = np.asarray(self.model.log_survival(ages))[:, None]
        alive = start > -np.inf
        log = np.where(alive, start, 0.0)
        lives = np.where(alive, np.exp(np.asarray(self.model.log_survival(until)) - log), 0.0)
        spent = np.asarray(self.model.integral(until)) - np.asarray(self.model.integral(ages))[:, None]
        place = np.clip(np.searchsorted(grid, until + 1e-10, side="right") - 1, 0, len(grid) - 2)
        share = np.clip((until - grid[place]) / (grid[place + 1] - grid[place]), 0.0, 1.0)
        share = np.where(share < 1e-6, 0.0, share)
        return _Parts(lives, np.where(alive, spent / np.exp(log), 0.0), place, share if share.any() else None)

    def _tabulate(self, grid: Floats, known: bool) -> Floats:
        """V on a grid of ages; unless `known`, the first of them is 0, and V there is found on the way."""
        values = np.zeros((self.steps + 1, len(grid)))
        saved = self._parts(grid, self.tried * self.unit + self.cost, grid)
        last = self._parts(grid, np.arange(self.steps + 1) * self.unit, grid)
        for left in range(1, self.steps + 1):
            count = int(np.searchsorted(self.tried, left))
            then = self._then(saved, count, left, values)
            if not known:
                self.fresh[left] = self._from_fresh(saved, last, count, left, then)
            lost = self.restart + self.fresh[left]
            whole = last.spent[:, left] + _times(1 - last.lives[:, left], lost)
            each = (
                saved.spent[:, :count]
                + saved.lives[:, :count] * then
                + _times(1 - saved.lives[:, :count], lost)
            )
            allowed = self.free or count == 0
            values[left] = np.minimum(each.min(axis=1, initial=np.inf), whole if allowed else np.inf)
        return values

    def _then(self, parts: _Parts, count: int, left: int, values: Floats) -> Floats:
        """V after each of the first parts, on a straight line between the ages of the grid."""
        rest = left - self.tried[:count]
        place = parts.place[:, :count]
        found = values[rest, place]
        if parts.share is None:
            return found
        share = parts.share[:, :count]
        return found + share * (values[rest, place + 1] - found)

    def _from_fresh(self, saved: _Parts, last: _Parts, count: int, left: int, then: Floats) -> float:
        best = np.inf
        if (self.free or count == 0) and last.lives[0, left] > 0:
            lives = last.lives[0, left]
            best = (last.spent[0, left] + (1 - lives) * self.restart) / lives
        lives = saved.lives[0, :count]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = (saved.spent[0, :count] + (1 - lives) * self.restart) / lives + then[0]
        return float(min(best, np.where(lives > 0, each, np.inf).min(initial=np.inf)))

    def begin(self, age: float) -> tuple[float, tuple[int, ...]]:
        """Expected time from a server of this age, and the parts while it lives."""
        if age == 0:
            return float(self.fresh[self.steps]), self.parts(self.steps)
        grid = self._ages(age)
        values = self._tabulate(grid, known=True)
        return float(values[self.steps, 0]), self._follow(self.steps, age, grid, values)

    def parts(self, left: int, age: float = 0.0) -> tuple[int, ...]:
        """The parts for so many steps left, on a server of an age of the grid; a fresh one, if not said."""
        if (left, age) not in self.followed:
            self.followed[left, age] = self._follow(left, age, self.grid, self.values)
        return self.followed[left, age]

    def _follow(self, left: int, age: float, grid: Floats, values: Floats) -> tuple[int, ...]:
        """The best parts one after the other; where the server is sure to be lost, those of a fresh one."""
        found: list[int] = []
        while left:
            at = np.round(np.array([age]), 11)
            part = self._next(left, at, grid, values)
            length = part * self.unit + (self.cost if part < left else 0.0)
            if age and self._parts(at, np.array([length]), grid).lives[0, 0] == 0:
                return (*found, *self.parts(left))
            found.append(part)
            left -= part
            age += part * self.unit + self.cost
        return tuple(found)

    def _next(self, left: int, age: Floats, grid: Floats, values: Floats) -> int:
        count = int(np.searchsorted(self.tried, left))
        saved = self._parts(age, self.tried[:count] * self.unit + self.cost, grid)
        last = self._parts(age, np.array([left * self.unit]), grid)
        lost = self.restart + self.fresh[left]
        if age[0] == 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                each = (saved.spent[0] + (1 - saved.lives[0]) * self.restart) / saved.lives[0]
                each = np.where(saved.lives[0] > 0, each + self._then(saved, count, left, values)[0], np.inf)
                whole = (last.spent[0, 0] + (1 - last.lives[0, 0]) * self.restart) / last.lives[0, 0]
            whole = whole if last.lives[0, 0] > 0 else np.inf
        else:
            then = self._then(saved, count, left, values)[0]
            each = saved.spent[0] + saved.lives[0] * then + _times(1 - saved.lives[0], lost)
            whole = float(last.spent[0, 0] + _times(1 - last.lives[0], lost)[0])
        if not count or (self.free and whole <= each.min()):
            return left
        return int(self.tried[int(np.argmin(each))])


def _times(probability: Floats, hours: float) -> Floats:
    """The product, nothing where the probability is 0 even if the hours are infinite."""
    if np.isfinite(hours):
        return probability * hours
    return np.where(probability > 0, np.inf, 0.0)
