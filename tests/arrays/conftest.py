"""What all tests of arrays share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import linnet as ln
from linnet.arrays.lowering import evaluate

# The strategies are modules beside the tests, imported by name.
sys.path.insert(0, str(Path(__file__).parent))

# Arrays in tests are small: they would never be computed in the tiles they are cut into.
evaluate.TINY = 0


@pytest.fixture(autouse=True, scope="module")
def _on_nodes(request: pytest.FixtureRequest) -> Iterator[None]:
    nodes: int = request.config.getoption("--nodes")
    if not nodes:
        yield
        return
    with ln.init(engine="simulated", cluster=ln.Cluster(nodes=nodes)):
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nodes"):
        items[:] = [item for item in items if item.get_closest_marker("threads") is None]
