"""Element-wise functions: NumPy's ufuncs and `where`, under NumPy's and the standard's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linnet.arrays.elements import python_times
from linnet.arrays.elements.core import (
    SCALARS,
    ArrayBase,
    as_node,
    chunked,
    direct,
    is_small,
    wrap,
    wrapped,
    wrapped_all,
)
from linnet.arrays.elements.long_results import computed_anew
from linnet.arrays.elements.outcomes import kind_of, outcome, outcome_of, sample
from linnet.arrays.elements.ufunc_docs import docstring
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import constant, filled, mapped
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.expression.traced import Traced
from linnet.kernels.arrays.selection import selected
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

UFUNCS: dict[str, np.ufunc] = {
    name: value
    for name, value in vars(np).items()
    if isinstance(value, np.ufunc) and value.signature is None and value.__name__ == name
}
"""NumPy's element-wise functions by their own names."""


class ElementFunction(Protocol):
    """A function of single elements, as NumPy's ufuncs are."""

    def __call__(
        self,
        x: ArrayLike,
        /,
        *others: ArrayLike,
        out: Any = None,
        where: Any = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
    ) -> Array: ...
    def reduce(self, array: ArrayLike, axis: Any = 0, dtype: Any = None, **options: Any) -> Array: ...
    def accumulate(self, array: ArrayLike, axis: int = 0, dtype: Any = None, out: Any = None) -> Array: ...
    def reduceat(self, array: ArrayLike, indices: Any, axis: int = 0, dtype: Any = None) -> Array: ...
    def outer(self, a: ArrayLike, b: ArrayLike, /, **options: Any) -> Array: ...
    def at(self, a: Array, indices: Any, b: Any = None, /) -> None: ...


class TwoResults(Protocol):
    """A function of single elements that gives two arrays: `divmod`, `frexp`, `modf`."""

    def __call__(self, x: ArrayLike, /, *others: ArrayLike, **options: Any) -> tuple[Array, Array]: ...


ALIASES = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "bitwise_not": "invert",
    "conj": "conjugate",
    "pow": "power",
    "true_divide": "divide",
    "mod": "remainder",
}
"""Other names of the same functions: the standard's, and NumPy's own second ones."""


def operand(item: Any) -> Any:
    """A node, or a Python scalar, whose dtype depends on what it meets."""
    if isinstance(item, ArrayBase):
        return item.__node__
    if type(item) in SCALARS:
        return item
    return as_node(item)


def apply(ufunc: np.ufunc, *items: Any, dtype: Any = None, casting: str = "same_kind") -> Any:
    """A ufunc on arrays and scalars, as `ufunc(*items)` on NumPy's arrays; several results as a tuple."""
    operands = [operand(item) for item in python_times.compared(ufunc, items)]
    samples = [sample(each.dtype) if isinstance(each, Node) else each for each in operands]
    if dtype is None and casting == "same_kind":
        kinds = tuple([kind_of(each) for each in samples])
        unknown = any(kind is None for kind in kinds)  # a dtype equals None: `in` would not do
        made, loops = outcome(ufunc, samples, None, casting) if unknown else outcome_of(ufunc, kinds)
    else:
        made, loops = outcome(ufunc, samples, dtype, casting)
    nodes = [_settled(each, loop) for each, loop in zip(operands, loops, strict=False)]
    if dtype is not None:
        nodes = [cast(n, loop) if n.dtype != loop else n for n, loop in zip(nodes, loops, strict=False)]
    if ufunc.nout == 1:
        return wrap(mapped(ufunc.__name__, nodes, made.dtype))
    return tuple(
        wrap(mapped(f"{ufunc.__name__}.{place}", nodes, result.dtype)) for place, result in enumerate(made)
    )


def _settled(item: Any, loop: Any) -> Node:
    """An operand as a node; a Python scalar in the dtype it is computed with."""
    if isinstance(item, Node):
        return item
    try:
        return constant(item, loop)
    except OverflowError:  # comparing uint8 with 300 is answered, not refused
        return constant(item)


def cast(node: Node, dtype: Any) -> Node:
    """The node in another dtype; itself if it has that already."""
    dtype = np.dtype(dtype)
    if node.dtype == dtype:
        return node
    if isinstance(node, Source) and is_small(node):
        return Source(node.data.astype(dtype), node._layout)
    return mapped("cast", [node], dtype, extra=dtype.str)


def chosen(condition: Node, x: Node, y: Node, dtype: Any = None) -> Node:
    """`where` on nodes."""
    return mapped("where", [condition, x, y], np.result_type(x.dtype, y.dtype) if dtype is None else dtype)


def _public(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def function(*items: Any, **keywords: Any) -> Any:
        return call(ufunc, items, keywords)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(name, ufunc)
    function.__signature__ = _signature(ufunc.nin)  # type: ignore[attr-defined]
    for attribute in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
        setattr(function, attribute, getattr(ufunc, attribute))
    for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
        setattr(function, method, _method(ufunc, method))
    return function


def _method(ufunc: np.ufunc, method: str) -> Callable[..., Any]:
    """A method of a ufunc, `ln.add.outer` for one."""

    def function(*items: Any, **keywords: Any) -> Any:
        from linnet.arrays.elements.ufuncs import method_of

        return method_of(ufunc, method, items, keywords)

    function.__name__ = method
    function.__qualname__ = f"{ufunc.__name__}.{method}"
    function.__doc__ = f"`np.{ufunc.__name__}.{method}`, lazily."
    return function


@lru_cache
def _signature(operands: int) -> Signature:
    """What a function of so many operands takes, for those who ask: the standard wants it known."""
    items = ["x"] if operands == 1 else [f"x{place}" for place in range(1, operands + 1)]
    keywords = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
    return Signature(
        [
            *(Parameter(name, Parameter.POSITIONAL_ONLY) for name in items),
            Parameter("out", Parameter.KEYWORD_ONLY, default=None),
            *(Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in keywords.items()),
        ]
    )


def call(ufunc: np.ufunc, items: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A ufunc as users call it, with `where=`, `out=` (or in its place), `dtype=`, `casting=`."""
    if len(items) > ufunc.nin:
        if "out" in keywords or len(items) > ufunc.nargs:
            raise TypeError(
                f"{ufunc.__name__}() takes {ufunc.nin} operands and {ufunc.nout} results, by place or as "
                f"out=, but {len(items)} arguments were given"
            )
        keywords = {**keywords, "out": items[ufunc.nin :]}
        items = items[: ufunc.nin]
    try:
        if not keywords:
            result = _at_once(ufunc, items, keywords)
            return apply(ufunc, *items) if result is NotImplemented else result
        return _with_keywords(ufunc, items, keywords)
    except Traced as found:
        traced = found
    return traced.apply(ufunc, items, keywords)


def _with_keywords(ufunc: np.ufunc, items: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    given = dict(keywords)
    out, condition = given.pop("out", None), given.pop("where", True)
    given.pop("order", None)
    given.pop("subok", None)
    unknown = [name for name in given if name not in ("dtype", "casting")]
    if unknown:
        raise TypeError(f"{ufunc.__name__}() got an unexpected keyword argument {unknown[0]!r}")
    targets = out if isinstance(out, tuple) else (out,)
    if out is not None and len(targets) != ufunc.nout:
        raise ValueError(f"{ufunc.__name__}: out= must have {ufunc.nout} arrays, one for each result")
    result = _at_once(ufunc, items, given)
    if result is NotImplemented:
        result = apply(ufunc, *items, **given)
    results = result if isinstance(result, tuple) else (result,)
    finished = [
        placed(each, target, condition, ufunc.__name__, given.get("casting", "same_kind"))
        for each, target in zip(results, targets * len(results) if out is None else targets, strict=False)
    ]
    return finished[0] if ufunc.nout == 1 else tuple(finished)


def _at_once(ufunc: np.ufunc, items: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """NumPy's result on arrays that are small, or longer and in one tile; NotImplemented if some are not."""
    # The common case first: what is done for every argument takes as long as NumPy itself.
    plain: list[Any] = []
    most = chunking.SMALL
    for item in items:
        if isinstance(item, ArrayBase):
            node = item._node
            if type(node) is not Source or node.data.nbytes > most or not node.in_one_tile:
                break
            plain.append(node.data)
        elif type(item) in SCALARS:
            plain.append(item)
        else:
            break
    else:
        if len(plain) == 1 or not _spreads(plain[0], plain[1]):
            result = ufunc(*plain, **keywords)
            return wrapped(result) if ufunc.nout == 1 else wrapped_all(result)
    shapes = [
        item._node.shape if isinstance(item, ArrayBase) else item.shape
        for item in items
        if isinstance(item, ArrayBase | np.ndarray)
    ]
    if len(shapes) > 1 and any(shape != shapes[0] for shape in shapes):
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return NotImplemented
        if 16 * math.prod(shape) > most * chunking.LINEAR:
            return NotImplemented
    straight = partial(computed_anew, ufunc) if ufunc.nout == 1 and not keywords else ufunc
    return direct(straight, items, keywords, chunking.LINEAR)


def _spreads(one: Any, other: Any) -> bool:
    """Whether arrays broadcast together may be longer than each of them by much."""
    return (
        isinstance(one, np.ndarray)
        and isinstance(other, np.ndarray)
        and one.shape != other.shape
        and one.size * other.size > chunking.SMALL
    )


def placed(result: Any, target: Any, condition: Any, name: str, casting: Any = "same_kind") -> Any:
    """A result under `where=` and into `out=`: an array of ours takes a new version."""
    if target is None:
        if condition is True:
            return result
        base: Node = filled(result.shape, 0, result.dtype, result.__node__.layout)
    elif isinstance(target, ArrayBase):
        if not np.can_cast(result.dtype, target.__node__.dtype, casting):
            raise TypeError(
                f"{name}: the result is {result.dtype} and cannot be cast to out={target.__node__.dtype} "
                f"according to the rule {casting!r}"
            )
        base = target.__node__
    elif isinstance(target, np.ndarray):
        np.copyto(target, np.asarray(result), where=np.asarray(condition), casting=casting)
        return target
    else:
        raise TypeError(f"out= must be an array, not {type(target).__name__}")
    value = cast(result.__node__, base.dtype)
    if value.shape != base.shape and np.broadcast_shapes(value.shape, base.shape) != base.shape:
        raise ValueError(f"{name}: a result of shape {value.shape} does not fit out= of shape {base.shape}")
    if condition is True:
        settled: Node = value if value.shape == base.shape else spread(value, base.shape)
    else:
        settled = chosen(as_node(condition), value, base, base.dtype)
    if target is None:
        return wrap(settled)
    target._node = settled
    return target


def spread(node: Node, shape: tuple[int, ...], layout: Layout | None = None) -> Node:
    """`broadcast_to`."""
    if node.shape == shape:
        return node
    if np.broadcast_shapes(node.shape, shape) != shape:
        raise ValueError(f"an array of shape {node.shape} cannot be broadcast to shape {shape}")
    return mapped("fill", [node], node.dtype, shape=shape, layout=layout)


for _name, _ufunc in UFUNCS.items():
    globals()[_name] = _public(_name, _ufunc)
for _name, _target in ALIASES.items():
    globals()[_name] = _public(_name, UFUNCS[_target])


# ---- element by element, but not ufuncs


def sign(x: Any, /, **keywords: Any) -> Array:
    """-1, 0 or 1 by the sign; `x / abs(x)` of complex numbers, and NaN where a part of one is NaN.

    Parameters
    ----------
    x : array_like
    keywords : `out`, `where`, `dtype`, `casting`, as for NumPy's function

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> sign(asarray([-2.0, 0.0, 3.0])).compute()
    array([-1.,  0.,  1.])
    """
    made = call(np.sign, (x,), keywords)
    if keywords or made.dtype.kind != "c":
        return made
    # NumPy looks at the other part if that is infinite; the standard does not.
    return where(call(np.isnan, (x,), {}), complex(np.nan, np.nan), made)


def _where_at_once(condition: Any, *chosen: Any) -> Any:
    return selected(condition, *chosen) if len(chosen) == 2 else np.where(condition, *chosen)


@overload
def where(condition: Any) -> tuple[Array, ...]: ...
@overload
def where(condition: Any, x: Any, y: Any) -> Array: ...
@chunked(np.where, small=_where_at_once, times=chunking.LINEAR)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` where the condition holds, else of `y`; without these, where it holds.

    Parameters
    ----------
    condition : array_like of bool
    x, y : array_like, optional; both or neither

    Returns
    -------
    Array; without `x` and `y` a tuple of positions along each axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.where([True, False, True], [1, 2, 3], 0).compute()
    array([1, 0, 3])
    """
    if x is None or y is None:
        if x is not None or y is not None:
            raise ValueError("either both or neither of x and y should be given")
        from linnet.arrays.elements.search import nonzero

        return nonzero(condition)
    mask, one, other = operand(condition), operand(x), operand(y)
    dtype = np.result_type(*(n.dtype if isinstance(n, Node) else n for n in (one, other)))
    nodes = [as_node(condition) if not isinstance(mask, Node) else mask]
    # NumPy casts numbers here, and wraps those that do not fit.
    nodes += [
        n if isinstance(n, Node) else constant(np.asarray(n).astype(dtype)[()], dtype) for n in (one, other)
    ]
    if nodes[0].dtype != bool:
        nodes[0] = cast(nodes[0], bool)
    return wrap(mapped("where", nodes, dtype))


def power_operator(x: Any, exponent: Any) -> Any:
    """`x ** exponent`: NumPy takes shorter ways for some exponents, and so do we."""
    node = x._node
    if type(exponent) in (int, float) and node.dtype.kind in "fc":
        if exponent == 2:
            return call(np.square, (x,), {})
        if exponent == 0.5:
            return call(np.sqrt, (x,), {})
        if exponent == -1:
            return call(np.reciprocal, (x,), {})
        if exponent == 1:
            return call(np.positive, (x,), {})
    if type(exponent) is int and exponent == 2 and node.dtype.kind in "biu":
        return call(np.square, (x,), {})
    return call(np.power, (x, exponent), {})


METHODS: dict[str, Any] = {"conj": globals()["conjugate"], "conjugate": globals()["conjugate"]}
__all__ = [*UFUNCS, *ALIASES, "where"]  # pyright: ignore[reportUnsupportedDunderAll]
