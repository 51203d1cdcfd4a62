"""Rules that say which jobs are hopeless, by the names under which bags store them."""

from __future__ import annotations

import importlib

from linnet.errors import InputError
from linnet.fleet.policies import STOP_RULES, StopRule
from linnet.fleet.specification import Program


def rule_name(stop: str | StopRule) -> str:
    """Of a rule, as it is stored with a bag."""
    if callable(stop):
        return Program.of(stop).function
    if stop not in STOP_RULES and ":" not in stop:
        raise InputError(
            f'stop={stop!r}: give "median", or a function (own metric, others\' metrics) -> bool'
        )
    return stop


def rule_of(name: str | None) -> StopRule | None:
    """The rule of this name."""
    if name is None or name in STOP_RULES:
        return None if name is None else STOP_RULES[name]
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
