"""Sums of products with named axes: `einsum`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from typing import cast as cast_to

import numpy as np

from linnet.arrays.elements.core import chunked, wrap
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.expression.builders import filled, folded, permuted
from linnet.arrays.expression.nodes import Node
from linnet.arrays.functions import contraction_order

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.functions.contractions import finished_product, pair_product, with_common_dtype


@chunked(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = True, **keywords: Any) -> Array:
    """Sums of products by letters, as NumPy's; the order of products is chosen.

    Parameters
    ----------
    operands : the letters of the axes, such as "ij,jk->ik", and the arrays
    out : array, optional; where the result goes
    optimize : the order of products; by default the best one is looked for

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 10]).compute()
    array([21, 43])
    """
    dtype, casting = keywords.pop("dtype", None), keywords.pop("casting", "safe")
    keywords.pop("order", None)
    if keywords:
        raise TypeError(f"einsum() got an unexpected keyword argument {next(iter(keywords))!r}")
    if isinstance(operands[0], str):
        spec, items = operands[0], list(operands[1:])
    else:
        spec, items = contraction_order.from_lists(operands)
    nodes, common = with_common_dtype(*items)
    if len(nodes) == 1 and out is None and _only_moves(spec, nodes[0].shape):
        dtype = None  # NumPy returns a view, whatever dtype it was told
    if dtype is not None:
        for node in nodes:
            if not np.can_cast(node.dtype, dtype, casting):
                raise TypeError(
                    f"einsum: {node.dtype} cannot be cast to {np.dtype(dtype)} by the rule {casting!r}"
                )
        nodes = [cast(node, dtype) for node in nodes]
        common = np.dtype(dtype)
    made = list(nodes)
    # What is stored in between is float32, as it is where NumPy multiplies float16 at once.
    inside = np.dtype(np.float32) if common == np.float16 else common
    for step in _steps(spec, [node.shape for node in nodes], optimize):
        made.append(_step(step, [made[number] for number in step.operands], inside))
    last = made[-1]
    if any(0 in node.shape for node in nodes):  # a sum of nothing, whatever else is multiplied with it
        last = filled(last.shape, 0, common, last.layout)
    return finished_product(cast(last, common), out)


def _only_moves(spec: str, shape: tuple[int, ...]) -> bool:
    """Whether nothing is summed: a transpose, a diagonal."""
    return all(step.kind in ("diagonal", "transpose") for step in contraction_order.plan(spec, [shape]))


_MORE_WORK = 1.2
"""How much more may be computed if in return nothing in between is stored."""


def _steps(spec: str, shapes: list[tuple[int, ...]], optimize: Any) -> list[contraction_order.Step]:
    """The order of least work; of three operands one that stores nothing in between, if there is one."""
    best = contraction_order.fused(contraction_order.plan(spec, shapes, optimize), len(shapes))
    if optimize is not True or len(shapes) != 3 or len(best) == 1:
        return best
    allowed = _MORE_WORK * sum(step.flops for step in best)
    for first in ((0, 2), (0, 1), (1, 2)):
        steps = contraction_order.fused(contraction_order.plan(spec, shapes, [first, (0, 1)]), len(shapes))
        if len(steps) == 1 and sum(step.flops for step in steps) <= allowed:
            return steps
    return best


def _step(step: contraction_order.Step, nodes: list[Node], common: np.dtype[Any]) -> Node:
    letters, out = step.spec.split("->")
    if step.kind == "contract":
        return pair_product(letters.split(","), nodes, out, common)
    (node,) = nodes
    if step.kind == "transpose":
        return permuted(node, tuple(letters.index(c) for c in out))
    if step.kind == "diagonal":
        return _diagonal(letters, out, node)
    axes = tuple(axis for axis, c in enumerate(letters) if c not in out)
    left = [c for c in letters if c in out]
    node = cast(node, common)  # a sum in a narrower dtype than the product's would overflow
    kind = "any" if node.dtype == np.bool_ else "sum"
    total = folded(node, kind, axes, node.dtype, inner=node.dtype) if axes else node
    return permuted(total, tuple(left.index(c) for c in out))


def _diagonal(letters: str, out: str, node: Node) -> Node:
    """Only elements where axes with the same letter have the same index."""
    current = list(letters)
    result = wrap(node)
    while len(set(current)) < len(current):
        second = next(k for k, c in enumerate(current) if c in current[:k])
        first = current.index(current[second])
        result = cast_to(Any, np.diagonal(result, 0, first, second))
        current = [c for k, c in enumerate(current) if k not in (first, second)] + [current[second]]
    return permuted(result.__node__, tuple(current.index(c) for c in out))


METHODS: dict[str, Any] = {}
__all__ = ["einsum"]
