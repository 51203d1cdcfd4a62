"""How much of the loss of servers strikes many at once: zones that are reclaimed."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from linnet.errors import InputError

if TYPE_CHECKING:
    from linnet.fleet.lifetimes import Lifetimes


def share_together(life: Lifetimes, window: float) -> float:
    """The share of the hazard that servers of a type and zone have in common.

    In the model of common shocks a loss is a shock with this probability, and a shock takes everybody who
    lives. So it is the share of others living at a loss that are lost within the window, less the share that
    is lost in a window of that length anyhow, which the mean hazard of the data tells.
    """
    if not window > 0:
        raise InputError(f"window must be hours above 0, not {window!r}")
    if all(at is None for at in life.launched):
        raise InputError(
            "launch times are needed to tell which servers were lost together; give launched=, or a "
            "file with a column launch_time"
        )
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for i, at in enumerate(life.launched):
        if at is not None:
            groups[life.types[i], life.zones[i]].append(i)
    rate = float(life.preempted.sum()) / float(life.hours.sum())
    usual = -np.expm1(-2 * window * rate)
    living = struck = 0
    for members in groups.values():
        begin = np.array([life.launched[i] for i in members], np.float64)
        end = begin + life.hours[members]
        lost = life.preempted[members]
        for i in np.flatnonzero(lost):
            # Alive just before the window around this loss, and not censored within it.
            others = (begin <= end[i] - window) & (end > end[i] - window) & (lost | (end > end[i] + window))
            others[i] = False
            living += int(others.sum())
            struck += int((others & lost & (end <= end[i] + window)).sum())
    if not living:
        raise InputError(
            "no two servers of one type and zone lived at the same time, so nothing is known of "
            "losses together"
        )
    return float(np.clip((struck / living - usual) / (1 - usual), 0.0, 1.0))
