"""What a launcher is: it starts workers for a job, somewhere, and then knows nothing of them.

Who is at work is told by the ledger. A worker is given a name before it is started, so that it counts
as one from then on, and is not started twice while it is on its way.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast, runtime_checkable

from linnet.errors import InputError

LONG = 1e8
"""Seconds that nobody waits: three years. No clock of a ledger or queue need go further."""
_MOST_BYTES = 2**62
_MOST_WIDTH = 1000


def check_number(name: str, given: object, least: float, most: float, expected: str) -> None:
    """Refuse what is no number, less than it may be, or more.

    >>> check_number("lease", float("nan"), 0, LONG, "seconds")
    Traceback (most recent call last):
    linnet.errors.InputError: lease=nan: give seconds, at most 100000000
    """
    if not isinstance(given, int | float) or isinstance(given, bool) or not least <= given <= most:
        raise InputError(f"{name}={given!r}: give {expected}, at most {most:.15g}")


def check_whole(name: str, given: object, least: int, most: int, expected: str) -> None:
    """Refuse what is no whole number, less than it may be, or more.

    >>> check_whole("width", 2.5, 1, 1000, "the number of batches in hand, at least 1")
    Traceback (most recent call last):
    linnet.errors.InputError: width=2.5: give the number of batches in hand, at least 1, at most 1000
    """
    if type(given) is not int or not least <= given <= most:
        raise InputError(f"{name}={given!r}: give {expected}, at most {most}")


def check_flag(name: str, given: object) -> None:
    """Refuse what is neither True nor False: the text "no" would count as True.

    >>> check_flag("delete", "no")
    Traceback (most recent call last):
    linnet.errors.InputError: delete='no': give True or False
    """
    if type(given) is not bool:
        raise InputError(f"{name}={given!r}: give True or False")


def check_texts(name: str, given: object, expected: str) -> None:
    """Refuse what is no sequence of texts; a single text would be taken for one of its characters each.

    >>> check_texts("files", "/data", "roots")
    Traceback (most recent call last):
    linnet.errors.InputError: files='/data': give a list of roots
    """
    if not isinstance(given, list | tuple) or not all(
        isinstance(each, str) for each in cast("Sequence[object]", given)
    ):
        raise InputError(f"{name}={given!r}: give a list of {expected}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What each worker may use; also to emulate a cloud function on one machine."""

    memory: int | None = None
    """Bytes of address space."""
    runtime: float | None = None
    """Seconds it may run."""
    cold_start: float = 0.0
    """Seconds it waits before it begins."""
    store_delay: float = 0.0
    """Seconds added to every request to the store."""
    cache: int | None = None
    """Bytes of tiles that the workers of one host keep in memory; None: a quarter of the host's."""
    width: int = 3
    """Batches of tasks in hand: one is read, one computed, one written. 1: one after the other."""
    timeout: float = 10.0
    """Seconds without work after which it goes."""

    def __post_init__(self) -> None:
        check_whole("width", self.width, 1, _MOST_WIDTH, "the number of batches in hand, at least 1")
        for name in ("cold_start", "store_delay", "timeout"):
            check_number(name, getattr(self, name), 0, LONG, "seconds, not negative")
        for name in ("memory", "cache"):
            if getattr(self, name) is not None:
                what = "bytes as a whole number, not negative, or None"
                check_whole(name, getattr(self, name), 0, _MOST_BYTES, what)
        if self.runtime is not None:
            check_number("runtime", self.runtime, 0, LONG, "seconds, not negative, or None")

    def with_memory(self, memory: int) -> Limits:
        """The same, with another limit of memory."""
        return replace(self, memory=memory)


@dataclass(frozen=True, slots=True)
class Order:
    """Workers to be started."""

    address: str
    """Of their job."""
    names: Sequence[str]
    """Of the workers, one for each."""
    limits: Limits = Limits()
    imports: Sequence[str] = ()
    """Modules that they may import, and no others."""
    files: Sequence[str] = ()
    """Roots of files that their kernels may use, and no others."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables for their environment, which belong nowhere else."""


class Launcher(Protocol):
    """Starts workers."""

    def start(self, order: Order) -> None:
        """Start these workers, and return without waiting for them."""
        ...

    def ended(self) -> list[str]:
        """Names of workers of which it knows, since the last call, that they ended, however that was."""
        ...

    def problem(self) -> str | None:
        """What the latest worker that failed said, and which one that was; None: none did, that is known."""
        ...

    def close(self) -> None:
        """Let go of what it holds; workers go on."""
        ...


@runtime_checkable
class Killing(Protocol):
    """A launcher that can also end workers."""

    def kill(self, names: Sequence[str]) -> None:
        """End those of these workers that it started and that still run, at once.

        They had time to leave: a kernel keeps them. What they had in hand is done again by others.
        """
        ...


@runtime_checkable
class Watching(Protocol):
    """A launcher that also knows who is on the way."""

    def coming(self) -> Collection[str]:
        """Names of workers it started that may still begin: they wait for a machine, or load their modules.

        Whether they have begun it need not know. While they are on the way nobody is started in their place.
        """
        ...


@runtime_checkable
class Billing(Protocol):
    """A launcher whose workers cost money."""

    @property
    def bill(self) -> tuple[float, float, int, int]:
        """Dollars, hours of servers, servers, and how many of these were lost, so far."""
        ...


def worker_names(count: int) -> list[str]:
    """Names for new workers, which no others have.

    >>> len(set(worker_names(3)))
    3
    """
    return [f"{socket.gethostname()}/{os.urandom(5).hex()}" for _ in range(count)]
