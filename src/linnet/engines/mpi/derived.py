"""A plan as a rank has it: made from what it was told, and kept for the next run of the same program."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import xxhash
from numpy.typing import NDArray

from linnet.engines.mpi.orders import Problem, read_problem
from linnet.engines.mpi.share import Left, Share, moves, outputs_of, share
from linnet.engines.task_list import TaskList as Calls
from linnet.errors import BudgetError, ProgramError
from linnet.planning.accounting import Transfers, transfers
from linnet.planning.choosing import choose
from linnet.planning.cluster import Cluster
from linnet.planning.placement import Placement
from linnet.planning.plan import Plan
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
    order: Numbers
    """Tasks, each after those it waits for, the most urgent first."""
    placement: Placement
    moved: Transfers
    left: Left
    """What is to be done: all of it, or what an earlier run has left."""
    share: Share
    calls: Calls
    """The kernel calls of tasks."""
    peaks: Numbers
    """Bytes of tiles that the plan expects on each rank at once."""
    plan: Plan | None
    """The plan itself, at the root, which tells of it."""
    checksum: int
    """Of the plan; ranks whose sums differ would wait for one another for ever."""


def derive(problem: Problem, rank: int) -> Derived:
    """Make the plan, and find one's part in it."""
    bound = problem.bound
    work = Workload.of(bound, problem.inputs, problem.home)
    plan = choose(work, problem.cluster, problem.policy)
    placement = plan.placement
    order = work.order
    _check_order(work, order)
    left = Left(np.ones(work.count, bool), np.zeros(0, np.int64))
    moved = transfers(work, problem.cluster, placement)
    moving = moves(work, order, placement, moved, problem.inputs, left)
    return Derived(
        bound,
        problem.inputs,
        problem.cluster,
        work,
        order,
        placement,
        moved,
        left,
        share(work, order, placement, moving, left, rank),
        Calls.of(bound),
        plan.peak_memory,
        plan if rank == 0 else None,
        _checksum(placement, moved),
    )


def going_on(derived: Derived, stored: bytes, rank: int) -> Derived:
    """The same plan, where some tiles were written down by an earlier run: a bit for each tile."""
    if not stored:
        return derived
    work, order, placement = derived.work, derived.order, derived.placement
    bits = np.unpackbits(np.frombuffer(stored, np.uint8), count=work.tiles).astype(bool)
    left = what_is_left(work, order, bits)
    moving = moves(work, order, placement, derived.moved, derived.inputs, left)
    return replace(derived, left=left, share=share(work, order, placement, moving, left, rank))


def what_is_left(work: Workload, order: Numbers, stored: NDArray[np.bool_]) -> Left:
    """Tasks that must run where some tiles are stored: those that outputs need and that are not there."""
    wanted = outputs_of(work) & (work.producer >= 0)
    active = np.zeros(work.count, bool)
    missing = wanted & ~stored
    for task in order[::-1].tolist():
        if missing[work.writes(task)].any():
            active[task] = True
            read = work.reads(task)
            wanted[read] = True
            missing[read] |= ~stored[read]
    return Left(active, np.flatnonzero(wanted & stored & (work.producer >= 0)))


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
    """Refuse a plan that needs more memory on a rank than it has."""
    peak = int(derived.peaks.max(initial=0))
    if memory is not None and peak > memory:
        raise BudgetError(
            f"{derived.bound.program.name} needs {human(peak)} of tiles at once on one rank, and the budget "
            f"is {human(memory)}; give memory={human(peak)!r} or more, start more ranks, or cut into smaller "
            "tiles"
        )
