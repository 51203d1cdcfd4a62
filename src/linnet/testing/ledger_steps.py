"""What the suites for ledgers share: the ledger under test, and tasks run on it in one call."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

import pytest

from linnet.workers.ledger import Begun, Child, Completed, Completion, Ledger, Start

ME = "here/1"


def begun(ledger: Ledger, name: str, parents: Sequence[str] = (), *, worker: str = ME) -> Begun:
    """An attempt at a task that can run."""
    (found,) = ledger.begin([Start(name, parents)], worker)
    assert found.state == "run", f"{name}: {found}"
    return found


def ran(
    ledger: Ledger,
    name: str,
    parents: Sequence[str] = (),
    children: Sequence[str | Child] = (),
    seconds: float = 0.0,
) -> Completed:
    """A task begun and completed; children given by name alone wait for nobody else."""
    token = begun(ledger, name, parents).token
    told = [Child(child, 1) if isinstance(child, str) else child for child in children]
    seed = name.startswith("@")
    (found,) = ledger.complete([Completion(name, token, told, parents, counted=not seed, seconds=seconds)])
    return found


def chain(ledger: Ledger, *names: str) -> None:
    """Tasks done, each the only parent of the next; the last one is ready."""
    ran(ledger, "@", (), names[:1])
    for (name, child), parent in zip(itertools.pairwise(names), ("", *names), strict=False):
        ran(ledger, name, [parent] if parent else [], [child])


class LedgerFixtures:
    """A subclass gives the fixture `another`."""

    silence: float = 0.3
    """After how many seconds the ledgers of `another` take a worker for silent."""

    @pytest.fixture
    def another(self) -> Callable[[], Ledger]:
        """Opens the ledger under test; called again, for one more holder."""
        pytest.fail("a subclass of LedgerSuite gives the fixture `another`")

    @pytest.fixture
    def ledger(self, another: Callable[[], Ledger]) -> Ledger:
        """The ledger under test, with a job of ten tasks."""
        found = another()
        found.create(10)
        return found

    @pytest.fixture
    def later(self) -> Callable[[float], None]:
        """Lets seconds pass for the ledger."""
        return time.sleep
