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
