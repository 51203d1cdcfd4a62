"""Whether the tasks of a plan fit into the memory of their nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linnet.errors import BudgetError
from linnet.kernels import get as get_kernel
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.tiles import human


def check_memory(plan: Plan) -> None:
    """Refuse a plan with a task whose tiles alone are more than its node has memory for."""
    limits = np.array([np.inf if node.memory is None else node.memory for node in plan.cluster.nodes])
    if not np.isfinite(limits).any():
        return
    work, nodes = plan.work, plan.placement.nodes
    needed = _task_bytes(work)
    over = needed - limits[nodes]
    if not (over > 0).any():
        return
    worst = int(np.argmax(over))
    size, node = human(needed[worst]), int(nodes[worst])
    raise BudgetError(
        f"one task needs {size} at once, and node {node} has {human(limits[node])}; give the nodes "
        f"memory={size!r} or more, or cut into smaller tiles\n"
        f"  in {work.bound.where(work.tasks.task(worst))}"
    )


def _task_bytes(work: Workload) -> NDArray[np.float64]:
    """Bytes that each task needs while it runs: operands, results, and what its kernel declares besides."""
    scratch = np.array([get_kernel(each.kernel).scratch for each in work.bound.program.statements])
    read, written = (
        np.diff(np.concatenate([[0], np.cumsum(work.tile_bytes[tiles])])[start])
        for tiles, start in ((work.read, work.read_start), (work.write, work.write_start))
    )
    return read * (1 + scratch[work.statement]) + written
