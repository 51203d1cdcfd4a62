"""Models as data: a law's name and its numbers, so that a bag can be resumed by another process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from linnet.errors import FormatError
from linnet.fleet.empirical import KaplanMeier
from linnet.fleet.laws import (
    Exponential,
    GompertzMakeham,
    Hyperexponential,
    Law,
    Lomax,
    Scaled,
    SciSpot,
    Weibull,
)  # fmt: skip
from linnet.fleet.model import FittedModel, Model

_LAWS: dict[str, type[Law]] = {
    "exponential": Exponential,
    "weibull": Weibull,
    "gompertz-makeham": GompertzMakeham,
    "lomax": Lomax,
    "hyperexponential": Hyperexponential,
    "scispot": SciSpot,
}


def model_to_json(model: Model | None) -> dict[str, Any] | None:
    """A model as numbers and texts; one that has no formula as the staircase of its survival.

    >>> model_to_json(FittedModel(Exponential(0.5), cap=24))
    {'law': 'exponential', 'parameters': {'rate': 0.5}, 'cap': 24}
    """
    if model is None:
        return None
    if isinstance(model, FittedModel):
        factor, law = 1.0, model.law
        while isinstance(law, Scaled):
            factor, law = factor * law.factor, law.law
        name = next(key for key, kind in _LAWS.items() if type(law) is kind)
        found: dict[str, Any] = {"law": name, "parameters": law.parameters(), "cap": model.cap}
        return found if factor == 1 else {**found, "factor": factor}
    if isinstance(model, KaplanMeier):
        return {"law": "staircase", "times": np.asarray(model.ages).tolist(),
                "steps": np.asarray(model.left).tolist(), "cap": model.cap}  # fmt: skip
    raise FormatError(f"a model of type {type(model).__name__} cannot be stored with a bag")


def model_from_json(data: Mapping[str, Any] | None) -> Model | None:
    """The model that `model_to_json` wrote."""
    if data is None:
        return None
    if data.get("law") == "staircase":
        return KaplanMeier(np.array(data["times"]), np.array(data["steps"]), data["cap"])
    if data.get("law") not in _LAWS:
        raise FormatError(f"no law is called {data.get('law')!r}; there are {', '.join(_LAWS)}")
    numbers: dict[str, Any] = data["parameters"]
    given: dict[str, Any] = {
        key: tuple(cast("list[float]", value)) if isinstance(value, list) else value
        for key, value in numbers.items()
    }
    law: Law = _LAWS[data["law"]](**given)
    if data.get("factor", 1.0) != 1.0:
        law = Scaled(law, float(data["factor"]))
    return FittedModel(law, data.get("cap"))
