"""A plan as a rank has it: made from what it was told, and kept for the next run of the same program."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xxhash

from linnet.engines.mpi.orders import Problem, read_problem
from linnet.engines.mpi.share import Share, moves, share
from linnet.engines.plan import Plan as Calls
from linnet.errors import BudgetError, ProgramError
from linnet.kernels import get as get_kernel
from linnet.planning.accounting import Transfers
from linnet.planning.choosing import choose
from linnet.planning.cluster import Cluster
from linnet.planning.placement import Placement
from linnet.planning.schedule import finishing
from linnet.planning.workload import Numbers, Workload
from linnet.programs import BoundProgram
from linnet.tiles import TiledArray, human

_KEPT = 200_000
"""Tasks of all plans that are kept together."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A plan and what this rank does in it."""

    bound: BoundProgram
    inputs: Mapping[str, TiledArray]
    """Without their tiles."""
    cluster: Cluster
    work: Workload
    placement: Placement
    share: Share
    calls: Calls
    """The kernel calls of tasks."""
    peak: int
    """Bytes of tiles that the plan expects on this rank at once."""
    checksum: int
    """Of the plan; ranks whose sums differ would wait for one another for ever."""


def derive(problem: Problem, rank: int) -> Derived:
    """Make the plan, and find one's part in it."""
    bound = problem.bound
    work = Workload.of(bound, problem.inputs, problem.home)
    plan = choose(work, problem.cluster, problem.policy)
    streams = any(get_kernel(each.kernel).streams for each in bound.program.statements)
    order = finishing(work.tasks) if streams else work.order
    _check_order(work, order)
    moving = moves(work, order, plan.placement, plan.moved, problem.inputs)
    return Derived(
        bound,
        problem.inputs,
        problem.cluster,
        work,
        plan.placement,
        share(work, order, plan.placement, moving, rank),
        Calls.of(bound),
        int(plan.peak_memory[rank]),
        _checksum(plan.placement, plan.moved),
    )


def _check_order(work: Workload, order: Numbers) -> None:
    """Refuse a program some tasks of which wait for one another."""
    place = np.empty(work.count, np.int64)
    place[order] = np.arange(work.count)
    parents = np.repeat(np.arange(work.count), np.diff(work.tasks.child_start))
    stuck = place[parents] >= place[work.tasks.child]
    if stuck.any():
        raise ProgramError(
            f"tasks of {work.bound.program.name} wait for one another and can never run; "
            "a tile is read before, in program order, it is written\n"
            f"  in {work.bound.where(work.tasks.task(int(work.tasks.child[stuck][0])))}"
        )


def _checksum(placement: Placement, moved: Transfers) -> int:
    made = xxhash.xxh3_64()
    for column in (placement.nodes, placement.homes, moved.tile, moved.source, moved.target):
        made.update(np.ascontiguousarray(column, np.int64).tobytes())
    return made.intdigest() >> 1  # it travels as a number with a sign


class Plans:
    """Plans that this rank has made, the latest last."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Derived] = OrderedDict()

    def get(self, packed: bytes, problem: Problem | None = None) -> Derived:
        """The plan for what is packed here; `problem` is the same, where it need not be unpacked."""
        with self._lock:
            found = self._kept.get(packed)
            if found is not None:
                self._kept.move_to_end(packed)
                return found
        found = derive(read_problem(packed) if problem is None else problem, self._rank)
        with self._lock:
            self._kept[packed] = found
            while len(self._kept) > 1 and sum(each.work.count for each in self._kept.values()) > _KEPT:
                self._kept.popitem(last=False)
        return found


def check_memory(derived: Derived, memory: int | None) -> None:
    """Refuse a plan that needs more memory on this rank than it has."""
    if memory is not None and derived.peak > memory:
        raise BudgetError(
            f"{derived.bound.program.name} needs {human(derived.peak)} of tiles at once on one rank, and the "
            f"budget is {human(memory)}; give memory={human(derived.peak)!r} or more, start more ranks, or "
            "cut into smaller tiles"
        )
