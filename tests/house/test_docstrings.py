"""Docstrings of public functions: what they take, what they give, and an example of the function itself.

That examples run is seen where all docstrings are run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import linnet as ln

SPACES = ("", "linalg", "fft", "random", "stats")


def functions() -> Iterator[tuple[str, Any]]:
    """Public functions of ours, by the name that users write."""
    for space in SPACES:
        module = getattr(ln, space) if space else ln
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isfunction(public) and inspect.unwrap(public).__module__.startswith("linnet."):
                yield f"{space}.{name}".lstrip("."), public


def lacking(name: str, function: Any) -> list[str]:
    """What a docstring has not."""
    doc = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    shown = {name.rsplit(".", 1)[-1], function.__name__}  # or by its other name
    examples = [line for line in doc.splitlines() if line.startswith((">>>", "..."))]
    return [
        what
        for what, is_there in {
            "Parameters": "Parameters\n---" in doc or not signature.parameters,
            "Returns": "Returns\n---" in doc or signature.return_annotation in ("None", None),
            "an example of itself": any(
                re.search(rf"\b{re.escape(each)}\b", line) for line in examples for each in shown
            ),
        }.items()
        if not is_there
    ]


@pytest.mark.parametrize(("name", "function"), [pytest.param(*each, id=each[0]) for each in functions()])
def test_a_public_function_says_what_it_takes_and_gives_and_shows_it(name, function):
    missing = lacking(name, function)
    assert not missing, f"the docstring of ln.{name} lacks {', '.join(missing)}"
