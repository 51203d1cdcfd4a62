"""A model for each type and zone, where some of them have few data.

Groups with enough losses get a law of their own if its AIC is better. All others follow the law of all
servers with the hazard times a factor of their own. The factor is (losses + κ)/(expected losses + κ): a group
without data has the factor 1, one with many has its own rate. κ, how alike the groups are, is the one that
makes the losses of all groups likeliest when factors are drawn from a gamma distribution of mean 1 and
variance 1/κ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from linnet.errors import InputError
from linnet.fleet.fitting import log_likelihoods
from linnet.fleet.laws import Floats, Scaled
from linnet.fleet.model import FittedModel

if TYPE_CHECKING:
    from linnet.fleet.lifetimes import Lifetimes

Key: TypeAlias = "str | tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of one type or zone."""

    model: FittedModel
    """Its model."""
    servers: int
    """How many lifetimes it has."""
    lost: int
    """How many of them ended by preemption below the cap."""
    own: bool
    """Whether the law is its own, not that of all servers with a factor."""


class Pooled(Mapping[Key, FittedModel]):
    """Models by type and zone; a group nobody has seen has the model of all servers."""

    def __init__(self, everybody: FittedModel, groups: dict[Key, Group], alike: float) -> None:
        self.everybody = everybody
        self.groups = groups
        self.alike = alike

    def __getitem__(self, key: Key) -> FittedModel:
        group = self.groups.get(key)
        return self.everybody if group is None else group.model

    def __contains__(self, key: object) -> bool:
        return key in self.groups

    def __iter__(self) -> Iterator[Key]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __str__(self) -> str:
        lines = [f"{'group':<44} {'servers':>7} {'lost':>5}  law, mean lifetime"]
        for key, group in self.groups.items():
            name = key if isinstance(key, str) else ", ".join(key)
            source = "its own" if group.own else "all servers'"
            lines.append(
                f"{name:<44} {group.servers:>7} {group.lost:>5}  {group.model.name} ({source}), "
                f"{group.model.mean:.3g} h"
            )
        return "\n".join(lines)

    __repr__ = __str__


def pool(life: Lifetimes, by: tuple[str, ...], enough: int) -> Pooled:
    """Models for the groups of some lifetimes; see `Lifetimes.fit_groups`."""
    labels = {"type": life.types, "zone": life.zones}
    for each in by:
        if each not in labels:
            raise InputError(f"servers are grouped by 'type', 'zone' or both, not by {each!r}")
    members: defaultdict[Key, list[int]] = defaultdict(list)
    for i in range(len(life)):
        key = tuple(labels[each][i] for each in by)
        members[key[0] if len(key) == 1 else key].append(i)
    everybody = life.fit()
    data = life.observations
    hazard = -everybody.law.log_survival(data.hours)
    lost = np.array([int(data.lost[chosen].sum()) for chosen in members.values()], np.float64)
    expected = np.array([float(hazard[chosen].sum()) for chosen in members.values()])
    alike = _alike(lost, expected)
    groups: dict[Key, Group] = {}
    for (key, chosen), seen, meant in sorted(
        zip(members.items(), lost, expected, strict=True), key=lambda each: each[0]
    ):
        shrunk = 1.0 if np.isinf(alike) else (seen + alike) / (meant + alike)
        law = Scaled(everybody.law, float(shrunk))
        part = life.choose(set(chosen).__contains__)
        total = float(log_likelihoods(law, part.observations).sum())
        model = replace(everybody, law=law, log_likelihood=total, size=1, servers=len(part), comparison=None)
        own = seen >= enough and len(members) > 1
        if own:
            alone = part.fit()
            own = alone.aic < model.aic
            model = alone if own else model
        groups[key] = Group(model, len(part), int(seen), own)
    return Pooled(everybody, groups, alike)


def _alike(lost: Floats, expected: Floats) -> float:
    """The κ that makes the losses likeliest, a negative binomial for each group; infinity if all alike."""
    from scipy.special import gammaln

    grid = np.geomspace(0.05, 1e4, 400)[:, None]
    each = gammaln(lost + grid) - gammaln(grid) + grid * np.log(grid / (grid + expected))
    each = each + lost * np.log(np.maximum(expected, 1e-300) / (grid + expected))
    total = each.sum(axis=1)
    best = int(np.argmax(total))
    return float(np.inf) if best == len(grid) - 1 else float(grid[best, 0])
