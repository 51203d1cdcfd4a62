"""How little must move between nodes, in closed form, whatever the plan.

Two assumptions, without which one node could do everything and nothing would move: all nodes take part, in
products with equal shares; and every input lies on one node when the program begins, every result on one
when it ends.

For products the bounds are those of Al Daas, Ballard, Grigori, Kumar and Rouse ("Tight memory-independent
parallel matrix multiplication communication lower bounds", SPAA 2022), which hold however much memory there
is, and Irony, Toledo and Tiskin's (JPDC 2004) with the constant of Smith et al. ("A tight I/O lower bound
for matrix multiplication", 2019), which hold where it is short. For Cholesky the update of the trailing
matrix is bounded by the symmetric inequality of Al Daas, Ballard, Grigori, Kumar, Rouse and Verite (SPAA
2023), for QR by that of Ballard, Demmel, Holtz and Schwartz (SIMAX 2011). For everything else there is the
bound of connected tasks: a connected group that is spread over k nodes needs k − 1 messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from linnet.planning.cluster import Cluster
from linnet.planning.policies.joins import Join, joins
from linnet.planning.workload import Workload

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bound:
    """What must move at least."""

    kind: str
    """What the program was recognised as."""
    bytes: int | None
    """Between all nodes together; None if no bound is known."""
    per_node: float = 0.0
    """Bytes into one node, on average."""
    memory_dependent: float = 0.0
    """Bytes in all because memory is short; 0 where it is not."""
    why: str = ""
    """Where there is no bound: why."""
    nodes: int = 0
    """How many nodes it is for."""


UNKNOWN = Bound("nothing that was looked at", None)
"""Where nobody has looked for a bound."""


# Closed forms: items into one node, on average over the nodes.


def product(rows: float, columns: float, summed: float, nodes: int) -> float:
    """A product of dense matrices, whatever the memory.

    The three cases are a cut along the longest axis alone, along the two longest, and along all three.

    >>> round(product(64, 64, 64, 16), 1)  # 3(n³/P)^⅔ − 3n²/P
    1167.2
    >>> product(1000, 4, 4, 10) * 10  # XᵀY: one 4 × 4 tile leaves every node but the last
    144.0
    >>> product(1024, 1024, 4, 16)  # XYᵀ: 2(√k − 1) times what a node holds of one factor
    1536.0
    """
    long, middle, short = sorted((rows, columns, summed), reverse=True)
    if nodes * middle <= long:
        return (1 - 1 / nodes) * middle * short
    if nodes * short**2 <= long * middle:
        return 2 * sqrt(long * middle * short**2 / nodes) - (long + middle) * short / nodes
    held = (long * middle + long * short + middle * short) / nodes
    return 3 * (long * middle * short / nodes) ** (2 / 3) - held


def product_with_memory(rows: float, columns: float, summed: float, nodes: int, memory: float) -> float:
    """A product where a node holds no more than `memory` items.

    Smith et al. count what goes in and out; what one node receives another sends, so half of it is received.

    >>> product_with_memory(4096, 4096, 4096, 16, 2**14)
    33538048.0
    """
    return max(0.0, rows * columns * summed / (nodes * sqrt(memory)) - memory)


def cholesky(size: int, nodes: int) -> float:
    """Cholesky, whatever the memory: its products, each of two elements of L for one of the matrix.

    A set of V products touches x elements of L and y of the matrix with x·√(2y) ≥ 2V, so x + y is at least
    3(V/√2)^⅔; each element is at home on one node, in both roles.

    >>> round(cholesky(4096, 16))
    855883
    """
    products = size * (size - 1) * (size - 2) / 6 / nodes
    return max(0.0, 3 * (products / sqrt(2)) ** (2 / 3) - size**2 / nodes)


def cholesky_with_memory(size: int, nodes: int, memory: float) -> float:
    """Cholesky where a node holds at most `memory` items (Beaumont et al., SPAA 2022; halved, as above)."""
    products = size * (size - 1) * (size - 2) / 6 / nodes
    return max(0.0, products / sqrt(2 * memory) - memory)


def qr(rows: int, columns: int, nodes: int) -> float:
    """QR of a tall matrix, whatever the memory."""
    products = _qr_products(rows, columns) / nodes
    return max(0.0, products ** (2 / 3) / 2 - 2 * rows * columns / nodes)


def qr_with_memory(rows: int, columns: int, nodes: int, memory: float) -> float:
    """QR of a tall matrix where a node holds no more than `memory` items."""
    return max(0.0, _qr_products(rows, columns) / (8 * nodes * sqrt(memory)) - memory)


def _qr_products(rows: int, columns: int) -> float:
    return rows * columns**2 - columns**3 / 3


def messages(pieces: int, nodes: int) -> int:
    """Messages that `nodes` need to work on so many groups of connected tasks.

    >>> messages(pieces=1, nodes=8), messages(pieces=100, nodes=8)
    (7, 0)
    """
    return max(0, nodes - pieces)


# Which of them holds for a program.


def bound_of(work: Workload, cluster: Cluster) -> Bound:
    """The bound that holds for a workload, if all nodes of the cluster take part."""
    if cluster.count == 1:
        return Bound("one node", 0, nodes=1)
    return replace(_recognised(work, cluster), nodes=cluster.count)


def _recognised(work: Workload, cluster: Cluster) -> Bound:
    run = set(np.unique(work.statement).tolist())
    kernels = {each.kernel for number, each in enumerate(work.bound.program.statements) if number in run}
    found = joins(work)
    if "chol" in kernels and found:
        return _cholesky(work, cluster)
    if {"panel_qr", "reflect"} <= kernels:
        return _qr(work, cluster)
    if found:
        return _product(work, cluster, found)
    return _pieces(work, cluster)


def _cholesky(work: Workload, cluster: Cluster) -> Bound:
    matrix = _matrix(work)
    if matrix is None:
        return Bound("Cholesky", None, why="its matrix is no input")
    size = _side(work, matrix)
    limit = _memory(work, cluster)
    short = cholesky_with_memory(size, cluster.count, limit) if limit else 0.0
    return _made(work, cluster, f"Cholesky of {size}×{size}", cholesky(size, cluster.count), short)


def _qr(work: Workload, cluster: Cluster) -> Bound:
    matrix = _matrix(work)
    if matrix is None:
        return Bound("QR", None, why="its matrix is no input")
    rows, columns = _lengths(work, matrix)
    if rows < columns:
        return Bound("QR of a wide matrix", None, why="closed forms are known for tall matrices")
    limit = _memory(work, cluster)
    short = qr_with_memory(rows, columns, cluster.count, limit) if limit else 0.0
    return _made(work, cluster, f"QR of {rows}×{columns}", qr(rows, columns, cluster.count), short)


def _product(work: Workload, cluster: Cluster, found: list[Join]) -> Bound:
    factors = {(join.left, join.right) for join in found}
    (left, right), *others = sorted(factors)
    if others or left == right or not {left, right} <= set(work.names):
        why = "a factor times itself" if left == right and not others else "several products in one program"
        return Bound("products", None, why=f"{why}: closed forms are known for one product of two matrices")
    result = _result(work, found)
    if (
        not _dense(work, found, left, right)
        or result < work.tile_items[work.kept & (work.producer >= 0)].sum()
    ):
        return Bound("products", None, why="a part of a product or a stack of them, or other results besides")
    a, b = (int(work.tile_items[_tiles(work, name)].sum()) for name in (left, right))
    if 0 in (a, b, result):
        return Bound("a product without elements", 0, nodes=cluster.count)
    sizes = sqrt(a * result / b), sqrt(b * result / a), sqrt(a * b / result)
    limit = _memory(work, cluster)
    short = product_with_memory(*sizes, cluster.count, limit) if limit else 0.0
    kind = f"product of {sizes[0]:.0f}×{sizes[2]:.0f} and {sizes[2]:.0f}×{sizes[1]:.0f}"
    return _made(work, cluster, kind, product(*sizes, cluster.count), short)


def _result(work: Workload, found: list[Join]) -> int:
    """Items of the result of a product."""
    row, column = (np.concatenate([getattr(j, name) for j in found]) for name in ("row", "column"))
    tasks = np.concatenate([join.tasks for join in found])
    tasks = tasks[np.unique(row * (int(column.max()) + 1) + column, return_index=True)[1]]
    start = np.concatenate([[0], np.cumsum(work.tile_items[work.write])])
    return int((start[work.write_start[tasks + 1]] - start[work.write_start[tasks]]).sum())


def _dense(work: Workload, found: list[Join], left: str, right: str) -> bool:
    """Whether every tile of the first factor meets every column, and every one of the second every row."""
    rows, columns = (
        len(np.unique(np.concatenate([getattr(j, n) for j in found]))) for n in ("row", "column")
    )
    joining = np.zeros(work.count, bool)
    for join in found:
        joining[join.tasks] = True
    read = work.tile_array[work.read[np.repeat(joining, np.diff(work.read_start))]]
    (a, a_reads), (b, b_reads) = (
        (len(_tiles(work, name)), int((read == work.names.index(name)).sum())) for name in (left, right)
    )
    return a_reads == a * columns and b_reads == b * rows


def _pieces(work: Workload, cluster: Cluster) -> Bound:
    """The bound of connected pieces: tiles that two tasks share tie them together."""
    from scipy.sparse import coo_array  # late: these take longer to load than all of Linnet
    from scipy.sparse.csgraph import connected_components

    readers = np.diff(work.reader_start)
    ties = np.where(work.producer >= 0, readers > 0, readers > 1)
    if not work.count or not ties.any():
        return Bound("element-wise", 0)
    tiles = np.repeat(np.arange(work.tiles), readers)
    producer = work.producer[tiles]
    first = work.reader[np.minimum(work.reader_start[:-1], max(len(work.reader) - 1, 0))][tiles]
    ends = np.where(producer >= 0, producer, first)
    links = coo_array((np.ones(len(tiles), np.int8), (ends, work.reader)), (work.count, work.count))
    pieces = int(connected_components(links, directed=False)[0])
    least = int(work.tile_bytes[ties].min())
    needed = messages(pieces, min(cluster.count, work.count))
    connected = "all tasks connected" if pieces == 1 else f"{pieces} groups of connected tasks"
    kind = connected if needed else "element-wise"
    return Bound(kind, needed * least, needed * least / cluster.count)


def _made(work: Workload, cluster: Cluster, kind: str, free: float, short: float) -> Bound:
    """A bound from items into one node: without a limit of memory, and with it."""
    size = _itemsize(work)
    per_node = max(free, short) * size
    # What is rounded up must not be what rounding errors left.
    total = ceil(per_node * cluster.count * (1 - 1e-12))
    return Bound(kind, total, per_node, short * size * cluster.count)


def _itemsize(work: Workload) -> int:
    """Bytes of the smallest kind of number among the tiles."""
    full = work.tile_items > 0
    return int((work.tile_bytes[full] // work.tile_items[full]).min()) if full.any() else 1


def _memory(work: Workload, cluster: Cluster) -> float | None:
    """Items that the largest node holds; None if one has no limit."""
    limits = [node.memory for node in cluster.nodes]
    known = [limit for limit in limits if limit is not None]
    return max(known) / _itemsize(work) if len(known) == len(limits) else None


def _tiles(work: Workload, name: str) -> Numbers:
    return np.flatnonzero(work.tile_array == work.names.index(name))


def _matrix(work: Workload) -> int | None:
    """The largest input with two axes."""
    sizes = np.bincount(work.tile_array, np.where(work.producer < 0, work.tile_items, 0), len(work.names))
    matrices = [k for k, index in enumerate(work.tile_index) if index.shape[1] == 2 and sizes[k] > 0]
    return max(matrices, key=sizes.__getitem__, default=None)


def _side(work: Workload, array: int) -> int:
    """Elements along the side of a square array, from its tiles on the diagonal."""
    index = work.tile_index[array]
    tiles = work.first[array] + np.flatnonzero(index[:, 0] == index[:, 1])
    return int(np.sqrt(work.tile_items[tiles]).sum())


def _lengths(work: Workload, array: int) -> tuple[int, int]:
    """Elements along both axes of an array in square tiles, ragged ones at the ends."""
    index = work.tile_index[array]
    items = work.tile_items[work.first[array] : work.first[array] + len(index)]
    corner = sqrt(float(items[(index == 0).all(axis=1)][0]))
    rows, columns = (float(items[index[:, axis] == 0].sum()) / corner for axis in (1, 0))
    return round(rows), round(columns)
