"""What a ledger is: the state of one job, changed in steps that are atomic and can be repeated.

The rules, which every ledger keeps:

- Edges are marked by name, never counted: a mark made twice is one mark, and a mark on a task that is
  done has no effect.
- The first attempt that completes a task publishes its token, and that token stays. Tiles are stored
  under the token of their attempt, so readers that ask which token was published never meet the tiles
  of another.
- `complete` returns every child that has all its marks and is not done, also when it is repeated; the
  caller puts these into the queue before it takes its own task out. Tasks that are ready but were not
  heard of for longer than a lease (their enqueuer died) are given by `overdue` to any idle worker.
- A task is done when its last page of children is marked: the done bit is set last.
- What the results of a task call for (`chosen`) is marked, and the job's total raised, by the one
  completion that makes the task done, in the same step: between them there is nothing to be lost, and
  an attempt that came later changes nothing, even if it saw other results.
- The tiles of a task may be deleted when all its children are done. Should somebody need them again
  (another tile was lost), `reopen` makes the task run again.
- Every token belongs to an epoch. `resume` begins a new one; tokens of the old change nothing. But what they
  changed before stays, and whoever asks again, because the answer was lost, is told that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

State = Literal["running", "finished", "failed", "stopped", "cancelled"]

NO_FACTS: Mapping[str, float] = MappingProxyType({})
SLOW = "slow:"
"""How the fact begins that a worker is in a kernel for far too long; the name of the task follows."""
PAGE = 1000
"""Children that one call of `complete` marks at most."""
EVERY_STATEMENT = 10**6
"""More than the statements of any program."""
EPOCHS_BEYOND = 1024
"""How far beyond the newest token a ledger built anew begins: more epochs than may have passed unseen."""


class Start(NamedTuple):
    """A task somebody wants to run."""

    name: str
    parents: Sequence[str] = ()
    """Tasks whose tiles it reads."""
    extra: bool = False
    """Whether it is run beside another attempt that is believed to be alive, only slow."""


class Begun(NamedTuple):
    """What a worker must know to run a task."""

    state: Literal["run", "done", "wait", "halt"]
    """run it; it is done already; a parent is not (it will be put into the queue again when that is);
    the job does not go on."""
    token: int = 0
    """Of this attempt."""
    attempt: int = 0
    """How many attempts were begun, this one included."""
    deaths: int = 0
    """How many workers died while they computed it."""
    published: tuple[int, ...] = ()
    """The tokens of its parents, in their order; 0: done, but its tiles were not kept (`reopen` it)."""


class Child(NamedTuple):
    """A task that waits for the one completed."""

    name: str
    needs: int
    """How many tasks it waits for in all."""


class Completion(NamedTuple):
    """A task whose tiles are stored."""

    name: str
    token: int
    children: Sequence[Child] = ()
    """Those that wait for it, or a page of them."""
    parents: Sequence[str] = ()
    """Those it waited for."""
    last: bool = True
    """Whether this page is the last: then the task is done."""
    counted: bool = True
    """Whether it is one of the tasks of the program; seeds are not."""
    seconds: float = 0.0
    """How long its kernel took."""
    chosen: Sequence[Child] = ()
    """More that wait for it, because its results say so: told only with the last page."""
    total: int = 0
    """Tasks of the job in all from then on, if that is more than before."""


class Completed(NamedTuple):
    """What became of a completion."""

    token: int
    """The token that is published: another one if somebody was first; 0: this attempt is of an old
    epoch, or was begun before the task was reopened, and counts no more (release its entry). One that was
    published in an old epoch is told so again: its tiles must stay."""
    ready: tuple[str, ...] = ()
    """Children that have all they wait for and are not done."""


class Waiting(NamedTuple):
    """A task that is not done, in a ledger built anew."""

    name: str
    needs: int
    """How many tasks it waits for in all."""
    marked: Sequence[str] = ()
    """Those of them that are done."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """One worker, as it told of itself."""

    name: str
    host: str = ""
    started: float = 0.0
    """By the ledger's clock, as `beat`."""
    beat: float = 0.0
    """When it was last heard of."""
    left: bool = False
    """Whether it is gone for sure: it said so, or whoever started it saw it end."""
    facts: Mapping[str, float] = field(default_factory=lambda: NO_FACTS)
    """What it counted: tasks, bytes read and written, …"""
    died: bool = False
    """Whether it was seen to end without a word."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a job stands."""

    state: State
    reason: str = ""
    """Why it failed or stopped."""
    failed: str = ""
    """Name of the task that failed."""
    epoch: int = 1
    total: int = 0
    """Tasks in all."""
    done: int = 0
    """Tasks done."""
    begun: int = 0
    """Attempts begun; beyond `done` lie those that run now, and those that were lost."""
    now: float = 0.0
    """The ledger's clock."""
    first: float = 0.0
    """When the first task was begun."""
    last: float = 0.0
    """When the latest was completed."""
    kinds: Mapping[int, tuple[int, float]] = field(default_factory=lambda: MappingProxyType({}))
    """For each statement: tasks done, and seconds in their kernels."""

    @property
    def seconds(self) -> float:
        """From the first task begun to now, or to the last one done if the job has ended.

        >>> Status("running", now=9.0, first=2.0, last=8.0).seconds, Status("finished", now=9.0).seconds
        (7.0, 0.0)
        """
        until = self.now if self.state == "running" else self.last
        return max(0.0, until - self.first) if self.first else 0.0


def is_known(name: str, known: int) -> bool:
    """Whether a task never heard of is done: in ledgers built anew those of the statements below `known` are.

    >>> is_known("2.0", 3), is_known("3.0", 3), is_known("@2", 3)
    (True, False, False)
    """
    return known > 0 and name[0] != "@" and int(name.partition(".")[0]) < known


class Ledger(Protocol):
    """The state of one job."""

    url: str
    """Where it is; never with a secret."""

    def create(self, total: int) -> None:
        """Begin a job of so many tasks: state running, epoch 1, the seed `@` ready.

        AddressError if there is a job of this name: of several who call this at once, one begins it.
        """
        ...

    def status(self) -> Status:
        """How the job stands; AddressError if there is none."""
        ...

    def begin(self, starts: Sequence[Start], worker: str) -> list[Begun]:
        """Give each task a token and the tokens of its parents.

        An earlier attempt that was `computing`, by a worker not heard of since, is counted as a death.
        """
        ...

    def computing(self, name: str, token: int) -> None:
        """This attempt is inside its kernel: should its worker fall silent now, the task is to blame.

        Only the latest attempt of a task counts, here and in `forget`.
        """
        ...

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        """The tasks' tiles are stored; see the rules above."""
        ...

    def forget(self, name: str, token: int) -> None:
        """This attempt is not in its kernel: that returned, or the worker stopped, or the store failed."""
        ...

    def fail(self, name: str, token: int, reason: str) -> None:
        """A task failed for good, and with it the job; of an old epoch, or done meanwhile: no effect."""
        ...

    def halt(self, state: Literal["stopped", "cancelled"], reason: str) -> None:
        """Stop a running job; `resume` goes on."""
        ...

    def resume(self) -> list[str]:
        """Begin a new epoch, running; returns the names of all tasks that are ready.

        Attempts, deaths and marks of computing are forgotten.
        """
        ...

    def reopen(self, name: str, token: int, parents: Sequence[str], reader: str) -> bool:
        """A tile of a task was lost, as `reader` found: let the task run again, and the reader wait.

        True if the task is to be put into the queue, now or because it was not done anyway; False if it
        is done with another token, or the reader is done: the reader should begin again. What is left of
        the token is discarded; attempts begun before count no more, since they may have marked the reader.
        `parents` are those of the task; an empty reader stands for nobody.
        """
        ...

    def overdue(self, seconds: float, limit: int) -> list[str]:
        """Ready tasks of which nothing was heard for so long; each is told once in that time."""
        ...

    def stragglers(self, factor: float, least: float, limit: int) -> list[str]:
        """Tasks under way for `factor` times their kind's usual time, and `least` seconds; each told once."""
        ...

    def touch(self, names: Sequence[str], worker: str, facts: Mapping[str, float] = NO_FACTS) -> Status:
        """The worker lives and works on these; the answer says whether the job goes on.

        `facts` replace those it told before.
        """
        ...

    def leave(self, worker: str, *, died: bool = False) -> None:
        """The worker goes, in order, or was seen to have `died`, unless it left before; what it counted is
        kept."""
        ...

    def workers(self, within: float | None = None) -> list[WorkerInfo]:
        """Workers that were heard of in the last seconds and did not leave; None: all there ever were."""
        ...

    def discarded(self, grace: float, limit: int) -> list[tuple[str, int]]:
        """Tasks, with their tokens, whose tiles nobody needs, since `grace` seconds; each is told once."""
        ...

    def published(self, names: Sequence[str]) -> list[int]:
        """The published token of each task; 0: none."""
        ...

    def restore(
        self,
        total: int,
        done: Sequence[tuple[str, int]],
        waiting: Sequence[Waiting],
        known: int = EVERY_STATEMENT,
    ) -> None:
        """Begin anew from what is stored: these tasks are done, under these tokens (0: their tiles are
        not needed again), these wait, and all others of the statements below `known` are done. Tokens that
        somebody may still hold are of an old epoch."""
        ...

    def log(self, lines: Sequence[str]) -> None:
        """Keep lines of text, such as events, in the order in which they come."""
        ...

    def lines(self, after: int) -> tuple[list[str], int]:
        """Lines from a position on, 1,000 at most; and the position to ask from next."""
        ...

    def grouped(self) -> AbstractContextManager[object]:
        """What is done inside is made durable at once, where the ledger can; otherwise step by step."""
        ...

    def drop(self) -> None:
        """Forget the job altogether."""
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...
