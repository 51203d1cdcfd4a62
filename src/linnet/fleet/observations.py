"""What the fits see of lifetimes: how long each server was watched, and whether it was lost then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linnet.fleet.laws import Floats


@dataclass(frozen=True, slots=True)
class Observations:
    """Servers, the cap already applied."""

    hours: Floats
    """Age at the end of the watch, at most the cap."""
    lost: NDArray[np.bool_]
    """Whether it was preempted, below the cap."""
    earlier: Floats
    """The last age at which it was seen alive: the same as `hours`, unless lifetimes were polled."""

    def __getitem__(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Observations:
        return Observations(self.hours[chosen], self.lost[chosen], self.earlier[chosen])

    def __len__(self) -> int:
        return len(self.hours)
