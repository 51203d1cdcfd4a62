"""One statement without a function around it: `ln.einop` reads it from text, `ln.tensor` calls a function."""

from __future__ import annotations

import ast
import builtins
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.errors import InputError
from linnet.loopnests.binding import dotted_value, resolved
from linnet.loopnests.flattening import flattened
from linnet.loopnests.language import Assign, Const, Expr, Index, Load, Loop, Stmt, Update, walk
from linnet.loopnests.monoids import MONOIDS, identity
from linnet.loopnests.nests import run_nest
from linnet.loopnests.places import Prepared, place
from linnet.loopnests.reading import ELEMENTS, Reader, WholeArrays
from linnet.loopnests.refusing import Origin
from linnet.loopnests.running import Machine, Step
from linnet.loopnests.vectors import functions
from linnet.programs.grammar import At

_STATEMENT = re.compile(r"^\s*(\w+\s*(?:\[[^\]=]*\])?)\s*([^\s\w=]+|\b\w+)?=(?!=)\s*(.+)$", re.DOTALL)


def einop(statement: str, **arrays: Any) -> Any:
    """One update over all indices it names, as text.

    Parameters
    ----------
    statement : str
        ``"C[i, j] min= A[i, k] + B[k, j]"``: a target, a monoid (``+``, ``*``, ``min``, ``max``, ``or``,
        ``and`` or a registered one; nothing for a plain assignment) before ``=``, and a value. Each index
        runs over the axes where it stands alone.
    **arrays
        The arrays and numbers it names. If the target is among them, the update starts from it, and the
        array itself stays as it is; otherwise from the monoid's identity.

    Returns
    -------
    Array
        The target; without axes if it has no indices.

    Examples
    --------
    >>> import linnet as ln, numpy as np
    >>> D = np.array([[0.0, 1.0], [4.0, 0.0]])
    >>> ln.einop("E[i, j] min= D[i, k] + D[k, j]", D=D).compute()
    array([[0., 1.],
           [4., 0.]])
    >>> ln.einop("s += v[i] * v[i]", v=np.arange(4.0)).compute()
    np.float64(14.0)
    """
    origin = Origin("einop", "<einop>", (statement,))
    found = _STATEMENT.match(statement)
    if found is None:
        origin.refuse(
            "the text is no update of a target",
            'write "C[i, j] += A[i, k] * B[k, j]"',
            At(1, 0, len(statement)),
        )
    left, monoid, right = found.groups()
    if monoid is not None and monoid not in MONOIDS:
        origin.refuse(
            f"there is no monoid {monoid!r}; there are {', '.join(MONOIDS)}",
            "register your own with ln.monoid",
            At(1, found.start(2), found.end(2)),
        )
    asarray = import_module("linnet").asarray
    given = {name: asarray(each) if isinstance(each, np.ndarray) else each for name, each in arrays.items()}
    target, value, lengths = _read(origin, statement, left, right, found.start(3), given)
    shape = tuple(_length(origin, each, lengths) for each in target.indices)
    loops = [Loop(name, Const(0), Const(length), Const(1)) for name, length in lengths.items()]
    around = {**vars(builtins), **given}

    def statement_on(array: Any) -> tuple[Loop | Assign | Update, Callable[..., Any]]:
        made: Any = (
            Assign(target, value, at=target.at)
            if monoid is None
            else Update(target, monoid, value, at=target.at)
        )
        for loop in reversed(loops):
            made = Loop(loop.variable, loop.start, loop.stop, loop.step, (made,), at=target.at)
        names = {**around, target.array: array}

        def lookup(words: str, anyway: bool = False, around: dict[str, Any] | None = None) -> Any:
            return dotted_value(words, names if around is None else around)

        return made, lookup

    if target.array in given:
        held = functions().copy(given[target.array])
    else:
        dtype = _dtype(origin, *statement_on(functions().zeros(shape)))
        held = _new(tuple(shape), monoid, dtype)
    made, lookup = statement_on(held)
    try:
        run_nest(origin, (made,), (), lookup)
    except WholeArrays:
        origin.refuse(
            "the statement is about whole arrays, or names something that is no array or number",
            "give every array one index for each of its axes",
            At(1, 0, len(statement)),
        )
    return held


def _read(
    origin: Origin, statement: str, left: str, right: str, column: int, given: Mapping[str, Any]
) -> tuple[Load, Expr, dict[str, int]]:
    """Target and value, and how far each index runs."""
    try:
        one, other = ast.parse(left.strip(), mode="eval").body, ast.parse(right.strip(), mode="eval").body
    except SyntaxError as error:
        origin.refuse(
            f"the text cannot be read: {error.msg}", "write one assignment", At(1, 0, len(statement))
        )
    tree = ast.Tuple([one, other])
    inside = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        for name in ast.walk(node.slice)
        if isinstance(name, ast.Name) and name.id not in given
    }
    reader = Reader(origin)
    try:
        value = Reader(origin, column).expression(other, frozenset(inside))
        made = reader.expression(one, frozenset(inside))
    except WholeArrays:
        origin.refuse("slices and whole arrays cannot be in it", "use indices", At(1, 0, len(statement)))
    target = made if isinstance(made, Load) else Load(left.strip(), (), at=At(1, 0, len(left)))
    lengths: dict[str, int] = {}
    for load in (each for node in (target, value) for each in walk(node) if isinstance(each, Load)):
        shape = getattr(given.get(load.array), "shape", None)
        if shape is None or len(shape) != len(load.indices):
            if load.array != target.array or load.array in given:
                origin.refuse(
                    f"{load.array} is not given as an array of {len(load.indices)} axes",
                    f"call einop(..., {load.array}=array)",
                    load.at,
                )
            continue
        for index, length in zip(load.indices, shape, strict=True):
            if isinstance(index, Index) and lengths.setdefault(index.name, length) != length:
                origin.refuse(
                    f"the index {index.name!r} runs over axes of lengths {lengths[index.name]} and {length}",
                    "give arrays whose axes agree",
                    load.at,
                )
    for name in sorted(inside - lengths.keys()):
        origin.refuse(
            f"nobody knows how far the index {name!r} runs",
            "let it stand alone in an axis of an array",
            target.at,
        )
    order = [each.name for node in (target, value) for each in walk(node) if isinstance(each, Index)]
    return target, value, {name: lengths[name] for name in dict.fromkeys(order)}


def _length(origin: Origin, index: Expr, lengths: Mapping[str, int]) -> int:
    if not isinstance(index, Index):
        origin.refuse("an index of a new array stands alone", "give the target as an array, too", index.at)
    return lengths[index.name]


def _dtype(origin: Origin, made: Any, lookup: Callable[..., Any]) -> np.dtype[Any]:
    """The dtype of the values of a statement."""
    try:
        body, resolver = resolved(origin, (made,), lookup)
    except WholeArrays:
        return np.dtype(float)
    nest = flattened(origin, body, resolver)
    machine = Machine(nest, resolver.objects, resolver.functions, origin, lookup, ())
    prepared = Prepared(nest.statements[-1])
    where = place(prepared, {})
    if where is None:
        return np.dtype(float)
    return Step(machine, nest.statements[-1], prepared, where).evaluate(nest.statements[-1].value).dtype


def grouped(
    origin: Origin, body: tuple[Stmt, ...], shape: Any, reduce: str | None,
    lookup: Callable[[dict[str, Any]], Callable[..., Any]], names: dict[str, Any],
) -> Any:  # fmt: skip
    """The array that loops over keys and values make."""
    lengths = (int(shape),) if hasattr(shape, "__index__") else tuple(int(each) for each in shape)
    (made,) = body
    dtype = _dtype(origin, made, lookup({**names, ELEMENTS: functions().zeros(lengths)}))
    held = _new(lengths, reduce, dtype)
    run_nest(origin, body, (), lookup({**names, ELEMENTS: held}))
    return held


def _new(shape: tuple[int, ...], monoid: str | None, dtype: np.dtype[Any]) -> Any:
    """A new array of identities, or of zeros."""
    dtype = np.dtype(np.int64) if dtype.kind == "b" and monoid in ("+", "*") else dtype
    fill = identity(MONOIDS[monoid], dtype) if monoid is not None else dtype.type(0)
    return functions().full(shape, fill, dtype=dtype)


_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "*": operator.mul, "min": min, "max": max, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "or": lambda a, b: a or b, "and": lambda a, b: a and b,
}  # fmt: skip


def _combined(pairs: Iterable[Any], reduce: str | None) -> dict[Any, Any]:
    """Pairs of indices and values, with those of one index combined."""
    found: dict[Any, Any] = {}
    join = None if reduce is None else _TWO.get(reduce) or MONOIDS[reduce].combine
    for index, value in pairs:
        key = tuple(map(int, index)) if isinstance(index, tuple) else int(index)
        if key not in found:
            found[key] = value
        elif join is not None:
            found[key] = join(found[key], value)
        else:
            raise InputError(f"the index {key} has two values; say how they are combined, such as reduce='+'")
    return found


def tensor(shape: Any, elements: Any, *, reduce: str | None = None) -> Any:
    """An array whose elements a function of their indices gives.

    Parameters
    ----------
    shape : int or tuple of int
        The lengths of its axes.
    elements : callable, mapping or iterable
        A function of one index for each axis, which is called once, with arrays of integers; or a mapping
        from indices to values, or pairs ``(index, value)``. All other elements are the identity of `reduce`,
        or 0. In a function of loops (`ln.loops`) a comprehension is read as loops.
    reduce : str, optional
        The monoid that combines values of one index: ``"+"``, ``"min"``, ... A dict keeps one value of each
        key, so give pairs; in functions of loops, ``{key: value for ...}`` combines as well.

    Returns
    -------
    Array
        The array, lazy.

    Examples
    --------
    >>> import linnet as ln
    >>> ln.tensor((2, 3), lambda i, j: 10 * i + j).compute()
    array([[ 0,  1,  2],
           [10, 11, 12]])
    >>> ln.tensor(3, {(1,): 5.0}).compute()
    array([0., 5., 0.])
    >>> ln.tensor(2, ((i % 2, i) for i in range(5)), reduce="+").compute()
    array([6, 4])
    """
    lengths = (int(shape),) if hasattr(shape, "__index__") else tuple(int(each) for each in shape)
    xp = functions()
    if reduce is not None and reduce not in MONOIDS:
        raise InputError(f"reduce={reduce!r} is no monoid; there are {', '.join(MONOIDS)}")
    if isinstance(elements, Mapping) and reduce is not None:
        raise InputError(
            "a dict has one value of each key, so nothing is left to combine: give pairs, "
            f"ln.tensor(shape, ((index, value) for ...), reduce={reduce!r}), or write it inside ln.loops"
        )
    if isinstance(elements, Iterable) and not isinstance(elements, Mapping):
        elements = _combined(elements, reduce)
    if isinstance(elements, Mapping):
        values = np.asarray(list(elements.values())) if elements else np.zeros(0)
        fill: Any = 0 if reduce is None else identity(MONOIDS[reduce], values.dtype)
        made = xp.full(lengths, fill, dtype=values.dtype)
        if elements:
            keys = np.asarray([key if isinstance(key, tuple) else (key,) for key in elements])
            if keys.shape[1] != len(lengths) or (keys < 0).any() or (keys >= np.asarray(lengths)).any():
                raise InputError(f"a key is no index of an array of shape {lengths}")
            made[tuple(keys.T)] = values
        return made
    if not callable(elements):
        raise InputError(
            f"tensor takes a function of indices, a mapping or pairs, not {type(elements).__name__}"
        )
    axes = [
        xp.asarray(np.arange(length).reshape([-1 if number == axis else 1 for number in range(len(lengths))]))
        for axis, length in enumerate(lengths)
    ]
    value = elements(*axes)
    return xp.broadcast_to(value if isinstance(value, ArrayBase) else xp.asarray(value), lengths)
