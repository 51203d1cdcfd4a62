"""Functions that jobs of the tests run, found by their import name."""

from __future__ import annotations

import os
import time
from typing import Any


def square(x: float, seconds: float = 0.0) -> dict[str, Any]:
    """The square of x, after a while."""
    time.sleep(seconds)
    return {"square": x * x}


def fail_first(x: int) -> int:
    """Fails unless it left a checkpoint before."""
    mark = os.path.join(os.environ["LINNET_CHECKPOINTS"], "was_here")
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise SystemExit(3)
    return x


def report_metric(x: int) -> int:
    """Says its metric for a long while; large ones are hopeless."""
    with open(os.environ["LINNET_METRICS"], "a") as file:
        for step in range(600 if x > 5 else 3):
            file.write(f"{step} {x}\n")
            file.flush()
            time.sleep(0.1 if x > 5 else 0.0)
    return x


def square_of(x: float, trial: int) -> dict[str, Any]:
    """The square of x, for one trial of a study."""
    return {"square": x * x}


def count_up(steps: int) -> dict[str, Any]:
    """Adds numbers, one in a while, and keeps how far it came."""
    from linnet.fleet import Checkpoint

    with Checkpoint() as kept:
        begun, total, done = kept.load([0, 0, 0])
        for step in range(begun, steps):
            time.sleep(0.05)
            total, done = total + step, done + 1
            kept.save([step + 1, total, done])
    return {"total": total, "begun_at": begun, "done": done}


def loss(x: float, fails: bool, trial: int) -> dict[str, float]:
    """What a study minimises; some of it cannot be computed."""
    if fails:
        raise SystemExit(3)
    return {"value": (x - 2) ** 2}
