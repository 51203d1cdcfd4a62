"""What tests of algorithms share: modules beside them, imported by name, and the ways to call a function."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import ways

# What is lazy on nodes is lazy, too: the way in between is left to the long run.
MARKS = {"lazily": pytest.mark.long, "on nodes": pytest.mark.slow}


@pytest.fixture(scope="session", params=[pytest.param(way, marks=MARKS.get(way, ())) for way in ways.WAYS])
def run(request):
    """`run("cholesky", a, tile=8)` is `linalg.cholesky`, given and run in one of several ways."""
    return functools.partial(ways.run, request.param)
