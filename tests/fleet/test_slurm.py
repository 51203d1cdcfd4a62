"""Slurm with real nodes: the suite of providers, and a bag that loses a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linnet.errors import InputError
from linnet.fleet import Bag, Fleet, Slurm
from linnet.fleet.providers.provider import Provider
from linnet.testing.providers import ProviderSuite, wait_for

HERE = str(Path(__file__).parent)


@pytest.fixture
def cluster(slurm: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for key, value in slurm.environment.items():
        monkeypatch.setenv(key, value)
    monkeypatch.syspath_prepend(HERE)
    yield slurm
    for node, state in slurm.states().items():
        if state.startswith("down"):
            slurm.give_back(node)
    wait_for(lambda: all(state == "idle" for state in slurm.states().values()), "idle nodes")


def node_of(cluster: Any, name: str) -> str:
    """The node on which a server is."""
    return cluster.run("squeue", "--noheader", f"--name={name}", "--format=%N")


@pytest.mark.slow
class TestSuite(ProviderSuite):
    @pytest.fixture
    def provider(self, cluster: Any) -> Provider:
        self.cluster = cluster
        return Slurm(2, poll=0.1)

    def take_away(self, provider: Provider, name: str) -> None:
        self.cluster.preempt(node_of(self.cluster, name))


@pytest.mark.slow
def test_a_node_set_down_is_a_preemption(tmp_path, cluster):
    bag = Bag("bag_jobs:square", {"x": list(range(6)), "seconds": 1.0}, folder=tmp_path / "bag", retries=0)
    taken: list[str] = []

    def take_one(now: Any) -> None:
        if not taken and now.running:
            names = cluster.run("squeue", "--noheader", "--states=R", "--format=%N").splitlines()
            if names:
                taken.append(names[0])
                cluster.preempt(names[0])

    table = bag.run(Fleet([Slurm(2, poll=0.1)]), progress=take_one).table()
    assert table["result"] == [{"square": x * x} for x in range(6)]
    assert table["failures"] == [0] * 6
    assert taken
    assert cluster.run("squeue", "--noheader", "--states=R,PD") == ""
    assert bag.state().measured["slurm"].boots >= 2  # the time in the queue is measured
    with pytest.raises(InputError, match="give how many servers"):
        Slurm(0)
