"""How a bag stands, for people: progress, cost so far, what is left, and why it waits."""

from __future__ import annotations

from dataclasses import dataclass

from linnet.fleet.planning import Plan


@dataclass(frozen=True)
class Status:
    """A bag as it is now. `print(status)` shows it."""

    state: str
    """"not begun", "running", "interrupted", "done", "cancelled" or "budget"."""
    jobs: int
    done: int
    failed: int
    dropped: int
    stopped: int
    running: int
    waiting: int
    preemptions: int
    servers: int
    cost: float
    """Dollars so far."""
    hours: float
    """Since the bag began."""
    reasons: tuple[str, ...] = ()
    """Why servers are not to be had, if they are not."""
    estimate: Plan | None = None
    """What is left to pay and to wait, if anything is known about it."""
    deadline: float | None = None
    refused: tuple[str, ...] = ()
    """Files of the inbox that ask for no jobs of this bag: where they are now, and why."""

    @property
    def deadline_risk(self) -> float | None:
        """Probability that the deadline is missed; None without one, or if nothing is known."""
        if self.deadline is None or self.estimate is None:
            return None
        return self.estimate.hours.above(self.deadline - self.hours)

    def __str__(self) -> str:
        text = (
            f"{self.state}: {self.done} of {self.jobs} jobs done, {self.running} running, {self.waiting} "
            f"waiting, "
            f"{self.failed} failed, {self.preemptions} preemptions, {self.servers} servers, "
            f"{self.cost:.4g} dollars and {_time(self.hours)} so far"
        )
        if self.estimate is not None and self.state in ("running", "interrupted"):
            left = self.estimate
            text += (
                f"; left: {left.cost.quantile(0.5):.4g} dollars (90%: {left.cost.quantile(0.9):.4g}), "
                f"{_time(left.hours.quantile(0.5))} (90%: {_time(left.hours.quantile(0.9))})"
            )
        if self.deadline_risk is not None:
            text += (
                f"; the deadline of {self.deadline:g} h is missed with probability {self.deadline_risk:.2f}"
            )
        return "\n".join(
            [
                text,
                *(f"no capacity: {each}" for each in self.reasons),
                *(f"set aside: {each}" for each in self.refused),
            ]
        )


def _time(hours: float) -> str:
    """Hours, or seconds where they are few.

    >>> _time(2.5), _time(0.1), _time(0.0002)
    ('2.5 h', '6 min', '0.72 s')
    """
    if hours >= 1:
        return f"{hours:.3g} h"
    return f"{hours * 60:.3g} min" if hours * 60 >= 1 else f"{hours * 3600:.3g} s"
