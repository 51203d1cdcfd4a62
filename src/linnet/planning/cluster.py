"""What a plan knows of the computers it is made for: nodes, their memory, and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from linnet.errors import InputError
from linnet.tiles import amount, count, human

FLOPS = 2e10
"""Operations a second of one worker, unless told otherwise: about a core of a server."""


@dataclass(frozen=True, slots=True)
class Link:
    """A way between two places: what a message costs, and what each byte of it costs.

    >>> Link(latency=1e-4, bandwidth=1e9).seconds(1_000_000)
    0.0011
    """

    latency: float
    """Seconds a message takes, however short."""
    bandwidth: float
    """Bytes a second."""

    def __post_init__(self) -> None:
        if not (self.latency >= 0 and self.bandwidth > 0):
            raise InputError(
                f"latency={self.latency}, bandwidth={self.bandwidth}: give seconds that are not negative, "
                "and bytes a second above 0"
            )

    def seconds(self, size: float) -> float:
        """Time for a message of so many bytes."""
        return self.latency + size / self.bandwidth


@dataclass(frozen=True, slots=True)
class Node:
    """One computer: its workers share its memory."""

    workers: int = 1
    """Tasks that run side by side."""
    memory: int | None = None
    """Bytes for tiles, also as "2 GB"; None: no limit is known."""
    flops: float = FLOPS
    """Floating-point operations a second, of one worker."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", count(self.workers))
        if self.memory is not None:
            object.__setattr__(self, "memory", amount(self.memory))
        if not self.flops > 0:
            raise InputError(f"flops={self.flops}: a worker does some operations a second; give more than 0")


BETWEEN = Link(latency=1e-4, bandwidth=1.25e9)
"""Between nodes, unless told otherwise: an Ethernet of 10 Gbit/s."""
WITHIN = Link(latency=0.0, bandwidth=1e10)
"""Between workers of one node: memory that both can read."""


@dataclass(frozen=True, init=False, repr=False)
class Cluster:
    """Nodes and what lies between them.

    >>> cluster = Cluster(nodes=4, workers=2, memory="8 GB")
    >>> cluster
    Cluster(nodes=4, workers=2, memory='8.0 GB')
    >>> cluster.count, cluster.workers
    (4, 8)
    >>> Cluster(nodes=[Node(workers=2), Node(workers=8, flops=4e10)]).workers
    10
    """

    nodes: tuple[Node, ...]
    """The nodes; plans call them by their place here."""
    grid: tuple[int, ...] | None = None
    """The nodes as a grid, if one was asked for; None: whatever suits the arrays."""
    between: Link = BETWEEN
    """From a node to another."""
    within: Link = WITHIN
    """From a worker to another on the same node."""
    dispatch: float = 0.0
    """Seconds that handing out one task takes, where one process hands out all of them."""

    def __init__(
        self,
        nodes: int | Sequence[Node] = 1,
        workers: int = 1,
        memory: float | str | None = None,
        *,
        grid: tuple[int, ...] | None = None,
        flops: float = FLOPS,
        between: Link = BETWEEN,
        within: Link = WITHIN,
        dispatch: float = 0.0,
    ) -> None:
        """`nodes` is how many there are, all with `workers`, `memory` and `flops`; or the nodes."""
        if isinstance(nodes, Sequence):
            described = tuple(nodes)
            if not described or {type(node) for node in described} != {Node}:
                raise InputError(f"nodes={nodes!r}: give a number of nodes, or a list of ln.Node")
        else:
            each = Node(workers, None if memory is None else amount(memory), flops)
            described = (each,) * count(nodes, "nodes", instead="a list of ln.Node")
        for name, link in (("between", between), ("within", within)):
            _check_link(name, link)
        if grid is not None:
            try:
                grid = tuple(grid)
            except TypeError:
                raise InputError(f"grid={grid!r}: give the nodes along each axis, such as (2, 3)") from None
            if prod(grid) != len(described) or min(grid, default=1) < 1:
                raise InputError(
                    f"grid={grid} has {prod(grid)} places for {len(described)} nodes; give one for each node"
                )
        if dispatch < 0:
            raise InputError(f"dispatch={dispatch}: seconds for a task cannot be negative")
        values = {
            "nodes": described,
            "grid": grid,
            "between": between,
            "within": within,
            "dispatch": dispatch,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.nodes)

    @property
    def workers(self) -> int:
        """Workers of all nodes together."""
        return sum(node.workers for node in self.nodes)

    def without(self, lost: Sequence[int]) -> Cluster:
        """The cluster that is left when nodes are gone."""
        left = [node for number, node in enumerate(self.nodes) if number not in set(lost)]
        return Cluster(left, between=self.between, within=self.within, dispatch=self.dispatch)

    def __repr__(self) -> str:
        first = self.nodes[0]
        parts = [f"nodes={self.count}", f"workers={first.workers}"]
        if len(set(self.nodes)) > 1:
            parts = [f"nodes={list(self.nodes)!r}"]
        elif first.memory is not None:
            parts.append(f"memory={human(first.memory)!r}")
        parts += [f"grid={self.grid}"] if self.grid is not None else []
        return f"Cluster({', '.join(parts)})"


def _check_link(name: str, link: object) -> None:
    if not isinstance(link, Link):
        raise InputError(f"{name}={link!r}: give an ln.Link(latency, bandwidth)")
