"""Lifetimes of servers as they were observed: how long each lived, and whether it was taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linnet.errors import InputError
from linnet.fleet.comparison import Comparison, compare, fitted
from linnet.fleet.empirical import KaplanMeier, kaplan_meier
from linnet.fleet.fitting import FAMILIES
from linnet.fleet.laws import Floats
from linnet.fleet.model import FittedModel
from linnet.fleet.observations import Observations
from linnet.fleet.pooling import Pooled, pool
from linnet.fleet.reading import read_lifetimes, read_price_spells

SECOND = 1 / 3600
"""A lifetime of 0 counts as a second: no law gives a loss before the start a finite likelihood."""


class Lifetimes:
    """Lifetimes of servers in hours, some of them cut short by who watched them (censored).

    Parameters
    ----------
    hours : how long each server was seen to live
    preempted : for each, whether it was taken away then; a server that its user stopped was not. None: all
        were
    cap : the age at which every server is taken away; a server seen to reach it counts as having reached it
    types, zones : for each server, if known
    launched : for each server, hours since some common moment (or None), if known
    polled : hours between two looks, where lifetimes were found by looking: a server that was gone at x was
        lost
        between x − polled and x

    Examples
    --------
    >>> from linnet.fleet import Lifetimes
    >>> life = Lifetimes([0.5, 2, 7, 24, 24], [True, True, False, True, True], cap=24)
    >>> len(life), life.preempted.sum()
    (5, np.int64(2))
    >>> life.kaplan_meier().survival([1, 3, 23])
    array([0.8, 0.6, 0.6])
    """

    def __init__(
        self,
        hours: ArrayLike,
        preempted: ArrayLike | None = None,
        *,
        cap: float | None = None,
        types: Sequence[str] | None = None,
        zones: Sequence[str] | None = None,
        launched: Sequence[float | None] | None = None,
        polled: float = 0.0,
    ) -> None:
        seen = np.atleast_1d(np.asarray(hours, np.float64))
        ended = np.ones(seen.shape, np.bool_) if preempted is None else np.atleast_1d(np.asarray(preempted))
        if seen.ndim != 1 or not len(seen):
            raise InputError(f"lifetimes must be a list of at least one number, not of shape {seen.shape}")
        if ended.shape != seen.shape or not np.all((ended == 0) | (ended == 1)):
            raise InputError(f"preempted must be {len(seen)} values of true or false, one for each lifetime")
        if not np.all((seen >= 0) & np.isfinite(seen)):
            raise InputError(
                f"lifetimes must be hours of at least 0; {seen[~(seen >= 0) | ~np.isfinite(seen)][0]} is not"
            )
        if cap is not None and not (np.isfinite(cap) and cap > 0):
            raise InputError(f"cap must be a number of hours above 0, or None, not {cap!r}")
        if not (np.isfinite(polled) and polled >= 0):
            raise InputError(f"polled must be hours between two looks, at least 0, not {polled!r}")
        for what, given in (("types", types), ("zones", zones), ("launched", launched)):
            if given is not None and len(given) != len(seen):
                raise InputError(f"{what} has {len(given)} values for {len(seen)} lifetimes")
        self.cap: float | None = None if cap is None else float(cap)
        self.polled: float = float(polled)
        self.types: tuple[str, ...] = tuple(types) if types is not None else ("",) * len(seen)
        self.zones: tuple[str, ...] = tuple(zones) if zones is not None else ("",) * len(seen)
        self.launched: tuple[float | None, ...] = (
            tuple(launched) if launched is not None else (None,) * len(seen)
        )
        self._seen, self._ended = np.maximum(seen, SECOND), ended.astype(np.bool_)

    @classmethod
    def from_csv(cls, path: str | PathLike[str], cap: float | None = None, polled: float = 0.0) -> Lifetimes:
        """Read lifetimes from a file.

        Columns: `lifetime_s` or `lifetime_h`; `ended` (`preempted`, anything else is censored) or `event` (1
        or 0); if they are there, `machine_type` or `gpu`, `zone`, `launch_time` (ISO 8601). Others are not
        looked at.

        Parameters
        ----------
        path : the file
        cap, polled : as for `Lifetimes`
        """
        rows = read_lifetimes(path)
        return cls(
            [row.hours for row in rows],
            [row.preempted for row in rows],
            cap=cap,
            types=[row.type for row in rows],
            zones=[row.zone for row in rows],
            launched=_since_first([row.launched for row in rows]),
            polled=polled,
        )

    @classmethod
    def from_prices(
        cls, path: str | PathLike[str], bid: float | Mapping[str, float], cap: float | None = None
    ) -> Lifetimes:
        """Lifetimes on a market where a server is lost when its price passes the bid.

        A server begins whenever the price of its type in its zone comes down to the bid or below (or the
        history begins there), and is lost when the price passes the bid. What lives when the history ends is
        censored.

        Parameters
        ----------
        path : a file with columns `timestamp`, `zone`, `instance_type`, `usd_per_hour`, in any order of rows
        bid : dollars per hour, or a mapping from types to these; types it leaves out are left out
        cap : as for `Lifetimes`
        """
        rows = read_price_spells(path, bid)
        return cls(
            [row.hours for row in rows],
            [row.preempted for row in rows],
            cap=cap,
            types=[row.type for row in rows],
            zones=[row.zone for row in rows],
            launched=_since_first([row.launched for row in rows]),
        )

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        capped = "" if self.cap is None else f", cap {self.cap:g} h"
        return (
            f"<Lifetimes: {len(self)} servers, {int(self.preempted.sum())} preempted below any cap{capped}>"
        )

    @cached_property
    def observations(self) -> Observations:
        """What fits see: ages with the cap applied."""
        limit = np.inf if self.cap is None else self.cap
        age = np.minimum(self._seen, limit)
        lost = self._ended & (self._seen < limit)
        earlier = np.where(lost & (self.polled > 0), np.maximum(age - self.polled, 0.0), age)
        return Observations(age, lost, earlier)

    @property
    def hours(self) -> Floats:
        """How long each server was seen to live, at most the cap."""
        return self.observations.hours

    @property
    def preempted(self) -> NDArray[np.bool_]:
        """Which servers were taken away below the cap."""
        return self.observations.lost

    def where(self, type: str | None = None, zone: str | None = None) -> Lifetimes:
        """The servers of one type, of one zone, or of one type in one zone."""
        return self.choose(
            lambda i: (type is None or self.types[i] == type) and (zone is None or self.zones[i] == zone),
            f"type {type!r}, zone {zone!r}",
        )

    def since(self, hours: float) -> Lifetimes:
        """The servers launched at or after a moment, in hours since the first launch."""
        launched = self.launched
        return self.choose(
            lambda i: (at := launched[i]) is not None and at >= hours, f"launched since {hours} h"
        )

    def choose(self, wanted: Callable[[int], bool], what: str = "the condition") -> Lifetimes:
        """The servers whose index is wanted."""
        chosen = [i for i in range(len(self)) if wanted(i)]
        if not chosen:
            raise InputError(f"none of the {len(self)} servers matches {what}")
        return Lifetimes(
            self._seen[chosen],
            self._ended[chosen],
            cap=self.cap,
            types=[self.types[i] for i in chosen],
            zones=[self.zones[i] for i in chosen],
            launched=[self.launched[i] for i in chosen],
            polled=self.polled,
        )

    def kaplan_meier(self) -> KaplanMeier:
        """The staircase that the data are, as a model; Turnbull's estimate where lifetimes were polled."""
        return kaplan_meier(self.observations, self.cap)

    def table(self, laws: Sequence[str] | None = None) -> Comparison:
        """Fit every law (or those named) and compare AIC, cross-validation and distance to Kaplan–Meier."""
        names = [_law(name) for name in laws] if laws is not None else list(FAMILIES)
        if laws is None:
            if self._table is None:
                self._table = compare(self.observations, self.cap, self.kaplan_meier(), names)
            return self._table
        return compare(self.observations, self.cap, self.kaplan_meier(), names)

    _table: Comparison | None = None

    def fit(self, law: str | None = None) -> FittedModel:
        """Fit a law of preemption.

        Parameters
        ----------
        law : "exponential", "weibull", "gompertz-makeham", "lomax", "hyperexponential2", "hyperexponential3"
            or
            "scispot"; None for the best of them, whose `comparison` is the table it was chosen from

        Returns
        -------
        FittedModel
        """
        if law is None:
            return self.table().model
        return fitted(_law(law), self.observations, self.cap)[0]

    def fit_groups(self, *by: str, enough: int = 100) -> Pooled:
        """A model for each type and zone, from all data where a group has few.

        Parameters
        ----------
        by : "type", "zone", or both (the default)
        enough : losses from which on a group gets a law of its own

        Returns
        -------
        Pooled, a mapping from (type, zone), or from the one asked for, to models
        """
        return pool(self, by or ("type", "zone"), enough)

    def together(self, window: float = 0.1) -> float:
        """The share of losses that strike a whole zone at once, for `Model.gang_failure`.

        When a server is lost, which share of the others of its type and zone is lost within `window` hours,
        beyond what would be lost in that time anyhow? Needs launch times.

        Parameters
        ----------
        window : hours within which losses count as one

        Returns
        -------
        float between 0 and 1
        """
        from linnet.fleet.correlation import share_together

        return share_together(self, window)


def _law(name: str) -> str:
    if name not in FAMILIES:
        raise InputError(f"no law is called {name!r}; there are {', '.join(FAMILIES)}")
    return name


def _since_first(moments: Sequence[datetime | None]) -> list[float | None] | None:
    known = [moment for moment in moments if moment is not None]
    if not known:
        return None
    first = min(known)
    return [None if moment is None else (moment - first).total_seconds() / 3600 for moment in moments]
