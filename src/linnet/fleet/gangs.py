"""Several servers that are lost as one: a job on all of them ends when any is taken away."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linnet.fleet.laws import Floats
from linnet.fleet.model import Answer, Model, answer

_POINTS = 4000


class Gang(Model):
    """How long several servers of one age live together: their hazards add up.

    Parameters
    ----------
    of : how long each lives
    servers : how many they are
    """

    def __init__(self, of: Model, servers: int) -> None:
        self.of, self.servers = of, servers
        self.cap: float | None = of.cap
        # The integral of S to the power of how many they are, by the trapezoidal rule, finer near 0.
        end = min(of.limit, float(np.asarray(of.quantile(1 - 1e-9))), 1e6)
        self._ages: Floats = np.asarray(end * np.linspace(0, 1, _POINTS) ** 3, np.float64)
        alive = np.exp(self._log_survival(self._ages))
        parts = (alive[1:] + alive[:-1]) / 2 * np.diff(self._ages)
        self._areas: Floats = np.concatenate([[0.0], np.cumsum(parts)])

    @property
    def name(self) -> str:
        """What the law is called."""
        return f"{self.servers} of {self.of.name}"

    def _log_survival(self, t: Floats) -> Floats:
        return self.servers * np.asarray(self.of.log_survival(np.minimum(t, np.nextafter(self.limit, 0))))

    def _integral(self, t: Floats) -> Floats:
        return np.interp(t, self._ages, self._areas)

    def hazard(self, age: ArrayLike) -> Answer:
        """Losses per hour at this age; infinite from the cap on."""
        return answer(self.servers * np.asarray(self.of.hazard(age)))


def gang_model(model: Model, servers: int) -> Model:
    """How long so many servers live together."""
    return model if servers == 1 else Gang(model, servers)
