"""Kernels on tiles of rows, and sums of what they give: the expressions behind passes without a family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression.builders import blocks, folded
from linnet.arrays.expression.nodes import Along, At, Node, Operand, Piece
from linnet.arrays.lowering.evaluate import computed
from linnet.models.design import table
from linnet.tiles import Layout


def _arguments(x: Node, others: Sequence[Any]) -> tuple[list[Node], tuple[Operand, ...]]:
    """Tiles of rows for nodes, whole arrays for NumPy's."""
    inputs: list[Node] = [x]
    accesses: list[Any] = [(Along(0), At(0))]
    for each in others:
        if isinstance(each, Node):
            inputs.append(each)
            accesses.append((Along(0), *(At(0),) * (each.ndim - 1)))
        else:
            inputs.append(table(each))
            accesses.append((At(0),) * np.ndim(each))
    return inputs, tuple(Operand(k, access) for k, access in enumerate(accesses))


def summed_rows(kernel: str, x: Node, others: Sequence[Any], length: int, **attributes: Any) -> Node:
    """The sum over tiles of the lines that a kernel gives: a lazy array of so many numbers."""
    inputs, arguments = _arguments(x, others)
    layout = Layout((tuple(range(x.grid[0] + 1)), (0, length)))
    lines = blocks(inputs, (Piece(kernel, arguments, tuple(attributes.items())),), layout, np.float64)
    return folded(lines, "sum", (0,), np.float64, inner=np.float64)


def each_rows(
    kernel: str,
    x: Node,
    others: Sequence[Any],
    columns: int | None,
    dtype: Any = np.float64,
    **attributes: Any,
) -> Node:
    """A kernel on every tile of rows: a lazy column, or a table of so many columns."""
    inputs, arguments = _arguments(x, others)
    edges = (x.layout.boundaries[0],) if columns is None else (x.layout.boundaries[0], (0, columns))
    return blocks(inputs, (Piece(kernel, arguments, tuple(attributes.items())),), Layout(edges), dtype)


def far_rows(x: Node, others: Sequence[Any], count: int, width: int) -> Node:
    """So many rows of each tile that are farthest from their centres: a line of them for each tile."""
    inputs, arguments = _arguments(x, others)
    layout = Layout((tuple(range(x.grid[0] + 1)), (0, count * width)))
    return blocks(inputs, (Piece("kmeans_far", arguments, (("count", count),)),), layout, np.float64)


def gram(x: Node, shift: NDArray[Any] | None = None) -> tuple[float, NDArray[Any], NDArray[Any]]:
    """The number of rows, the sums of columns and `XᵀX`: one reading of the data."""
    columns = x.shape[1]
    others = () if shift is None else (shift,)
    (line,) = computed([summed_rows("gram_pass", x, others, 1 + columns + columns * columns)])
    return (
        float(line[0]),
        np.array(line[1 : 1 + columns]),
        np.array(line[1 + columns :]).reshape(columns, columns),
    )
