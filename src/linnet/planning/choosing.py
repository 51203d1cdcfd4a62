"""Which policy places the tasks: whole plans compete on one cost model, and the cheapest is taken.

A plan costs the seconds it takes in virtual time, after its inputs were brought to their nodes, each node
loading its own; and those that everything it moves would take on one link of the network, one after another.
So no plan is taken that moves more than a rival by what takes longer than the time it saves: a network is
seldom all one's own. One that leaves more nodes idle is no rival in bytes (one node alone moves nothing): it
is taken if it is also as fast. Plans that need more memory than a node has come last.

Most need not be simulated. A grid has a closed form that its time cannot go much below; of a placement one
can count what its busiest node computes and receives. Whatever cannot win by these is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.planning.bounds import Bound, bound_of
from linnet.planning.cluster import Cluster
from linnet.planning.placement import Placement, Policy, wanted, with_along
from linnet.planning.plan import Cost, Plan
from linnet.planning.policies.boxes import Boxes
from linnet.planning.policies.grid import Summa
from linnet.planning.policies.locality import Locality
from linnet.planning.policies.lshs import MOST, Improved, Thesis
from linnet.planning.policies.owner import Owner
from linnet.planning.policies.round_robin import RoundRobin
from linnet.planning.policies.spreading import creating
from linnet.planning.simulate import task_seconds
from linnet.planning.views import duration
from linnet.planning.workload import Workload
from linnet.tiles import human

Seconds = NDArray[np.float64]

FAMILIES: dict[str, Callable[[Workload, Cluster], Iterable[Policy]]] = {
    "owner": Owner.variants,
    "locality": Locality.variants,
    "grid": Summa.variants,
    "boxes": Boxes.variants,
    "lshs-improved": lambda work, cluster: [Improved()],
    "lshs": lambda work, cluster: [Thesis()],
    "round-robin": lambda work, cluster: [RoundRobin()],
}
"""Policies by name; most have a variant for every grid of nodes that can matter."""

_SETTLED = 1.02
"""A plan that moves nothing and is this close to what all workers need at least is not worth beating."""
_LARGE = 200_000
"""Tasks from which on policies without a closed form are tried with one grid only."""
_SIMULATED = 4_000_000
"""Tasks simulated in all: after that only so many candidates as `_AT_LEAST`."""
_AT_LEAST = 3
_NOT_NEEDED = "not needed: the plan taken is as good as one can be"


@runtime_checkable
class _Estimated(Protocol):
    """A policy with a closed form."""

    def estimate(self, work: Workload, cluster: Cluster) -> tuple[float, int]: ...


def choose(
    work: Workload, cluster: Cluster, policy: str | Policy = "auto", seconds: Seconds | None = None
) -> Plan:
    """The cheapest plan of all policies, or of the one that is named.

    `policy` may also be a policy of your own; `seconds` are the times of tasks, if they are known.

    >>> from linnet.testing import kernels as programs
    >>> from linnet.tiles import TiledArray
    >>> work = Workload.of(programs.doubled.bind(N=8), {"B": TiledArray.from_numpy(np.zeros(8000), 1000)})
    >>> plan = choose(work, Cluster(4))
    >>> plan.policy, plan.bytes_moved, plan.lower_bound
    ('owner 4', 0, 0)
    """
    check_policy(policy)
    whole, work = work, work.lean()
    competition = _Competition(work, cluster, seconds)
    if not isinstance(policy, str):
        competition.force(policy)
    elif cluster.count == 1:
        competition.force(_OneNode())
    elif policy == "auto":
        competition.hold(_candidates(work, cluster))
    else:
        policies = list(FAMILIES[policy](work, cluster))
        if not policies:
            raise InputError(
                f'policy "{policy}" places statements that join two operands, such as a matrix product, and '
                f'{work.bound.program.name!r} has none; use policy="auto"'
            )
        competition.hold(policies)
    plan = competition.plan()
    plan.placement = with_along(whole, plan.placement)
    return plan


def check_policy(policy: object, *others: str) -> None:
    """Refuse what is no policy: neither one of those by name, or of `others`, nor something that places."""
    names = ("auto", *others, *FAMILIES)
    known = policy in names if isinstance(policy, str) else callable(getattr(policy, "place", None))
    if not known:
        listed = ", ".join(f'"{name}"' for name in names)
        raise InputError(f"policy {policy!r} is not known; give one of {listed}, or a policy of your own")


class _OneNode:
    """All there is to choose on one node."""

    name = "one node"

    def place(self, work: Workload, cluster: Cluster) -> Placement:
        homes = np.where((work.producer >= 0) | (np.diff(work.reader_start) > 0), 0, -1)
        return Placement(np.zeros(work.count, np.int32), homes.astype(np.int32))


def _candidates(work: Workload, cluster: Cluster) -> Iterator[Policy]:
    """All policies, those first that are likely to be good."""
    for name, variants in FAMILIES.items():
        if (name == "lshs" and work.count > MOST) or (name == "boxes" and cluster.grid is not None):
            continue
        variants_of_policy = sorted(variants(work, cluster), key=_unevenness)
        estimated = bool(variants_of_policy) and isinstance(variants_of_policy[0], _Estimated)
        yield from islice(variants_of_policy, 1 if work.count > _LARGE and not estimated else None)


def _unevenness(policy: Policy) -> tuple[int, int]:
    """Grids without layers first, then those whose sides are most alike."""
    grid: tuple[int, ...] = getattr(policy, "grid", None) or ()
    return prod(grid[2:]), sum(grid)


@dataclass(slots=True)
class _Entry:
    """A policy, and where it put the tasks if that is known yet."""

    policy: Policy
    placement: Placement | None
    least: float
    """Seconds that it takes at least."""
    moved: int = 0
    """Bytes that it moves, if that was counted or has a closed form."""


@dataclass(slots=True)
class _Competition:
    """Plans of one workload on one cluster."""

    work: Workload
    cluster: Cluster
    seconds: Seconds | None
    costs: dict[str, Cost] = field(default_factory=dict[str, Cost])
    plans: list[Plan] = field(default_factory=list[Plan])
    """Those that were simulated, and need the least memory above what there is."""
    bound: Bound = field(init=False)
    _move: Seconds = field(init=False)
    _outside: NDArray[np.bool_] = field(init=False)
    """Tiles that come from outside: inputs that lie on no node yet, and what tasks without operands make."""
    _seen: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _tasks: int = 0

    def __post_init__(self) -> None:
        work, between = self.work, self.cluster.between
        self.bound = bound_of(work, self.cluster)
        self._move = between.latency + work.tile_bytes / between.bandwidth
        self._outside = (work.given_homes < 0) & (np.diff(work.reader_start) > 0)
        written = work.producer >= 0
        self._outside[written] = creating(work)[work.producer[written]]

    def force(self, policy: Policy) -> None:
        """Take a policy's plan."""
        self._simulate(policy.name, policy.place(self.work, self.cluster))

    def hold(self, policies: Iterable[Policy]) -> None:
        """Find the cheapest plan."""
        entries: list[_Entry] = []
        for policy in policies:
            if self._settled():
                self._leave(_Entry(policy, None, 0.0), _NOT_NEEDED)
            else:
                entry = self._entry(policy)
                if not self.plans and entry.placement is not None:
                    self._simulate(policy.name, entry.placement)
                else:
                    entries.append(entry)
        for entry in sorted(entries, key=lambda each: each.least):
            self._try(entry)

    def _entry(self, policy: Policy) -> _Entry:
        if isinstance(policy, _Estimated):
            return _Entry(policy, None, *policy.estimate(self.work, self.cluster))
        return self._counted(policy, policy.place(self.work, self.cluster))

    def _try(self, entry: _Entry) -> None:
        if self._settled():
            self._leave(entry, _NOT_NEEDED)
        elif self._beaten(entry):
            self._leave(entry, f"takes at least {duration(entry.least)}, moves {human(entry.moved)}")
        elif self._tasks >= _SIMULATED and len(self._seen) >= _AT_LEAST:
            self._leave(entry, "not simulated: others looked better")
        elif entry.placement is None:
            self._try(self._counted(entry.policy, entry.policy.place(self.work, self.cluster)))
        else:
            self._simulate(entry.policy.name, entry.placement)

    def _leave(self, entry: _Entry, why: str) -> None:
        self.costs[entry.policy.name] = Cost(entry.least, entry.moved, 0, why)

    def _beaten(self, entry: _Entry) -> bool:
        """Whether a plan that takes so long, and moves so much, cannot win."""
        if not self.plans or self.plans[0].cost.over:
            return False
        used = self.cluster.count if entry.placement is None else _used(entry.placement)
        enough = used <= max(_used(plan.placement) for plan in self.plans)
        return enough and entry.least + self._sending(entry.moved) > self._price(self._cheapest().cost)

    def _sending(self, moved: int) -> float:
        """Seconds that so many bytes take, one after another."""
        return moved / self.cluster.between.bandwidth

    def _price(self, cost: Cost) -> float:
        """Seconds of a plan, and those of all it moves."""
        return cost.total + self._sending(cost.bytes_moved)

    def _cheapest(self) -> Plan:
        """The one to take: of those on the most nodes, and of those that are no slower."""
        used = [_used(plan.placement) for plan in self.plans]
        shared = [plan for plan, nodes in zip(self.plans, used, strict=True) if nodes == max(used)]

        def price(plan: Plan) -> tuple[float, int]:
            return self._price(plan.cost), plan.cost.bytes_moved

        slowest = min(shared, key=price).cost.total
        return min([plan for plan in self.plans if plan in shared or plan.cost.total <= slowest], key=price)

    def _settled(self) -> bool:
        """Whether there is a plan that moves nothing and whose workers are busy nearly all the time."""
        return any(
            not (plan.cost.bytes_moved or plan.cost.over) and plan.cost.total <= _SETTLED * self._floor()
            for plan in self.plans
        )

    def _floor(self) -> float:
        """What all workers together need at least, inputs loaded by all nodes alike."""
        work, cluster = self.work, self.cluster
        fastest = max(range(cluster.count), key=lambda n: cluster.nodes[n].flops)
        taken = self._task_seconds(np.full(work.count, fastest, np.int32))
        return float(taken.sum()) / cluster.workers + float(self._move[self._outside].sum()) / cluster.count

    def _task_seconds(self, nodes: NDArray[np.int32]) -> Seconds:
        return task_seconds(self.work, self.cluster, nodes) if self.seconds is None else self.seconds

    def _loading(self, placement: Placement) -> float:
        """Seconds until every node has loaded what comes from outside."""
        loaded = self._outside & (placement.homes >= 0)
        times = np.bincount(placement.homes[loaded], self._move[loaded], self.cluster.count)
        return float(times.max())

    def _counted(self, policy: Policy, placement: Placement) -> _Entry:
        """A placement with what it takes at least: the work of its busiest node, or what that receives."""
        work, cluster = self.work, self.cluster
        taken = np.bincount(placement.nodes, self._task_seconds(placement.nodes), cluster.count)
        busy = taken / np.array([node.workers for node in cluster.nodes])
        tiles, readers = wanted(work, cluster, placement.nodes)
        away = placement.homes[tiles] != readers
        receiving = np.bincount(readers[away], self._move[tiles[away]], cluster.count)
        least = float(max(busy.max(), receiving.max())) + self._loading(placement)
        return _Entry(policy, placement, least, int(work.tile_bytes[tiles[away]].sum()))

    def _simulate(self, name: str, placement: Placement) -> None:
        """The cost of a placement, which is kept as long as it can win."""
        same = self._seen.setdefault(placement.nodes.tobytes() + placement.homes.tobytes(), name)
        if same != name:
            self.costs[name] = self.costs[same]._replace(pruned=f"the same as {same}")
            return
        self._tasks += self.work.count
        loading = self._loading(placement)
        plan = Plan(self.work, self.cluster, name, placement, {}, self.bound, self.seconds, loading)
        self.costs[name] = plan.cost
        over = min([plan.cost.over, *(each.cost.over for each in self.plans)])
        self.plans = [each for each in (*self.plans, plan) if each.cost.over == over]

    def plan(self) -> Plan:
        """The plan that is taken, with what the others would have cost."""
        plan = self._cheapest()
        used: list[int] = np.unique(plan.placement.nodes).tolist()
        if 0 < len(used) < self.cluster.count:  # idle nodes need not be fed
            plan.bound = bound_of(self.work, Cluster([self.cluster.nodes[node] for node in used]))
        plan.rivals = {name: cost for name, cost in self.costs.items() if name != plan.policy}
        return plan


def _used(placement: Placement) -> int:
    """How many nodes have something to do."""
    return int(np.count_nonzero(np.bincount(placement.nodes)))
