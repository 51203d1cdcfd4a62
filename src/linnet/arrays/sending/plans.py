"""Plans of expressions: what would run where, what would be moved, and why, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from linnet.arrays.expression.nodes import Node, Stored
from linnet.arrays.sending.submit import as_input, expression_of, is_arrays
from linnet.errors import InputError
from linnet.planning.cluster import Cluster
from linnet.programs import BoundProgram, In, TileProgram
from linnet.session import current_engine
from linnet.session import work as session
from linnet.session.work import Expression, Program
from linnet.tiles import Layout, TiledArray

if TYPE_CHECKING:
    from linnet.planning.placement import Policy
    from linnet.planning.plan import Plan


def plan(
    what: Any,
    cluster: Cluster | None = None,
    policy: str | Policy = "auto",
    *,
    inputs: Mapping[str, Any] | None = None,
    tile: int | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
    dtype: DTypeLike = np.float64,
) -> Plan:
    """How an array, several arrays, or a bound program would run on a cluster; nothing is computed.

    `cluster` is that of the engine in use, if it is not given. `policy` places tasks: "auto" takes the
    cheapest of all it knows. A program needs its `inputs`, of which only shapes and cuts are read, or the
    size of a `tile` (for all arrays, or for each by its name) and perhaps a `dtype`. Where a shape depends
    on values (how many elements a mask keeps), these were computed when the expression was written.

    Parameters
    ----------
    what : Array, tuple of them, TileProgram or BoundProgram
    cluster : Cluster, optional
        Where it would run; None: where the engine in use runs it.
    policy : str or Policy
        What places tasks.
    inputs : mapping, optional
        Arrays for a program, by name.
    tile : int, sequence or mapping, optional
        The shape of tiles of a program, if `inputs` are not given.
    dtype : dtype
        Of these tiles.

    Returns
    -------
    Plan
        Tasks by node, transfers, bytes, and what bounds the time.

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.zeros((24, 10)), chunks=(1, 10))
    >>> found = plan(x.sum(), Cluster(nodes=8))
    >>> found.transfers, found.bytes_moved
    (7, 56)
    >>> plan(-x, Cluster(nodes=8)).bytes_moved
    0
    """
    if cluster is not None and not isinstance(cluster, Cluster):
        raise InputError(f"cluster={cluster!r}: give an ln.Cluster, such as ln.Cluster(nodes=4, workers=2)")
    if isinstance(what, TileProgram):
        what = what.bind()
    if isinstance(what, BoundProgram):
        expression: Expression = Program(what, _cut(what, inputs, tile, np.dtype(dtype)))
    else:
        if inputs is not None or tile is not None:
            raise InputError("inputs= and tile= are for bound programs: an array knows its own")
        if not is_arrays(what):
            raise InputError(
                f"plan was given a {type(what).__name__}; give it an array, several arrays, or a bound "
                "program with inputs={name: array} or tile=4096"
            )
        expression = expression_of(what)
    return session.plan(expression, current_engine() if cluster is None else None, cluster, policy)


def _cut(
    bound: BoundProgram,
    inputs: Mapping[str, Any] | None,
    tile: int | Sequence[int] | Mapping[str, int | Sequence[int]] | None,
    dtype: np.dtype[Any],
) -> dict[str, TiledArray]:
    """How the inputs of a program are cut."""
    made: dict[str, TiledArray] = {}
    for name, role in bound.program.arrays.items():
        if not isinstance(role, In):
            continue
        if inputs is not None and name in inputs:
            made[name] = _given(name, inputs[name])
            continue
        size = tile.get(name) if isinstance(tile, Mapping) else tile
        if size is None:
            raise InputError(
                f"{bound.program.name} reads {name}, and nothing says how it is cut; give "
                f"inputs={{{name!r}: array}}, or the size of its tiles with tile=4096"
            )
        grid = bound.grid(name)
        sizes = (size,) * len(grid) if isinstance(size, int) else tuple(size)
        if len(sizes) != len(grid):
            raise InputError(f"tile={size!r}: {name} has {len(grid)} axes; give as many sizes, or one number")
        shape = tuple(count * length for count, length in zip(grid, sizes, strict=True))
        made[name] = _empty(Layout.regular(shape, sizes), dtype)
    unknown = [name for name in inputs or {} if name not in made]
    if unknown:
        raise InputError(
            f"{bound.program.name} takes the arrays {', '.join(made) or 'none'}; not known: "
            f"{', '.join(unknown)}"
        )
    return made


def _given(name: str, value: Any) -> TiledArray:
    given = as_input(name, value)
    return given if isinstance(given, TiledArray) else _layout(given)


def _layout(node: Node) -> TiledArray:
    """How an array is cut; and, if it was persisted, where its tiles lie."""
    return node.tiles if isinstance(node, Stored) else _empty(node.layout, node.dtype)


def _empty(layout: Layout, dtype: np.dtype[Any]) -> TiledArray:
    """An array of which only its cut is known: a plan asks for no more."""
    return TiledArray(layout, dtype, {})


__all__ = ["plan"]
METHODS: dict[str, Any] = {}
