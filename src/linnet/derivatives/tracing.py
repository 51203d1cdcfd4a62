"""Arrays that are being differentiated, and the record of what was done with them.

A `TracedArray` is an array that users' functions work with as with any other. Inside is a `Variable`: the
array it stands for, and the step of the record that made it. Derivatives of derivatives have several
records, one inside the other; a call belongs to the innermost of those that its operands belong to, and
that record's arrays are taken out before the function is called, which may then be recorded by the next one.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.expression.operands import is_fixed
from linnet.arrays.expression.traced import Traced
from linnet.derivatives.rules import RULES, Linear, Rule, named, root
from linnet.errors import DerivativeError

_numbers = itertools.count(1)
_SLOT: Any = ArrayBase.__dict__["_node"]


class Record:
    """One differentiation: while the user's function runs, its arrays are traced."""

    __slots__ = ("became", "ended", "number")

    def __init__(self) -> None:
        self.number: int = next(_numbers)
        """Records begun later lie inside those begun before."""
        self.ended: bool = False
        self.became: list[Any] = []
        """Arrays that a traced one was written into: they are traced from then on."""

    def end(self) -> None:
        """Nothing is recorded any more; arrays that were written into keep the values they got."""
        self.ended: bool = True
        for array in self.became:
            if type(array) is TracedArray and variable_of(array).record is self:
                become(array, variable_of(array).primal)


class Step:
    """A call that was recorded: with the linear maps from its operands to its results."""

    __slots__ = ("count", "inputs", "name", "number")

    def __init__(self, name: str, inputs: Sequence[tuple[Variable, Linear]], count: int | None) -> None:
        self.number: int = next(_numbers)
        self.name: str = name
        self.inputs: Sequence[tuple[Variable, Linear]] = inputs
        self.count: int | None = count
        """How many results, if they are a tuple."""


class Variable:
    """What a traced array is."""

    __slots__ = ("place", "primal", "record", "step")

    def __init__(self, record: Record, primal: Any, step: Step, place: int = 0) -> None:
        self.record: Record = record
        self.primal: Any = primal
        self.step: Step = step
        self.place: int = place


def variable_of(array: Any) -> Variable:
    """What is inside a traced array."""
    return _SLOT.__get__(array, type(array))


def traced(variable: Variable) -> Any:
    """The array around a variable."""
    made = object.__new__(TracedArray)
    _SLOT.__set__(made, variable)
    return made


def become(array: Any, other: Any) -> None:
    """Make an array what another one is, as an assignment does: traced, or not any more."""
    kind = TracedArray if type(other) is TracedArray else ArrayBase._public
    inside = variable_of(other) if kind is TracedArray else other.__node__
    traced_by = variable_of(array).record if type(array) is TracedArray else None
    if kind is TracedArray and traced_by is not inside.record:
        if traced_by is None and type(array) is not ArrayBase._public:  # computed late: has slots of its own
            raise DerivativeError(
                "a result of linear algebra cannot be assigned to while it is differentiated; assign to a "
                "copy of it"
            )
        inside.record.became.append(array)
    array.__class__ = kind
    _SLOT.__set__(array, inside)


def plain(item: Any) -> Any:
    """An array outside all records; anything else as it is."""
    while type(item) is TracedArray:
        item = variable_of(item).primal
    return item


def as_it_is(item: Any) -> Any:
    """An argument as it is now: what the user writes into it afterwards does not change derivatives.

    >>> given = np.ones(2)
    >>> kept = as_it_is([given])
    >>> given[0] = 7
    >>> kept
    [array([1., 1.])]
    """
    if type(item) is TracedArray:
        return traced(variable_of(item))
    if type(item) is ArrayBase._public:
        return wrap(item.__node__)
    if type(item) is np.ndarray and not is_fixed(item):
        read = item.copy()
        read.flags.writeable = False  # so that nobody needs to copy it again
        return read
    if type(item) in (list, tuple):
        return type(item)([as_it_is(each) for each in item])
    return item


def _every(item: Any) -> Iterator[Any]:
    if type(item) is TracedArray:
        yield item
    elif type(item) in (list, tuple):
        for each in item:
            yield from _every(each)


def _without(item: Any, record: Record | None) -> Any:
    """An argument with the arrays that a record's stand for; None: all records'."""
    if type(item) is TracedArray:
        if record is None:
            return plain(item)
        variable = variable_of(item)
        return variable.primal if variable.record is record else item
    if type(item) in (list, tuple) and any(True for _ in _every(item)):
        return type(item)([_without(each, record) for each in item])
    return item


# ---- functions on traced arrays


def dispatch(raised: Traced, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function by its rule; the same error again if it has none: its caller may have one."""
    rule = RULES.get(root(function))
    if rule is None:
        raised.names.append(named(function))
        raise raised
    raised.__traceback__ = None  # it holds on to arrays
    return applied(rule, function, args, kwargs)


def by_rule(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that has a rule, on arrays of which one is traced."""
    return applied(RULES[root(function)], function, args, kwargs)


def applied(rule: Rule, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function on traced arrays."""
    if isinstance(function, np.ufunc):
        if kwargs:
            from linnet.derivatives.keywords import with_keywords

            return with_keywords(function, args, kwargs)
        function = _Ufunc(function)
    else:
        place = None if rule.kind == "zero" else _place_of_out(rule)
        if place is not None and len(args) > place and args[place] is not None:
            args, kwargs = (*args[:place], None, *args[place + 1 :]), {**kwargs, "out": args[place]}
    if kwargs.get("out") is not None:
        out = kwargs.pop("out")
        out = out[0] if isinstance(out, tuple) else out
        return written(out, function(*args, **kwargs), rule.name)
    if rule.kind == "composition":
        return _with_own_value(rule, function, args, kwargs) if rule.own_value else rule.make(*args, **kwargs)
    if rule.kind == "zero":
        args = tuple([_without(each, None) for each in args])
        return function(*args, **{name: _without(each, None) for name, each in kwargs.items()})
    return _recorded(rule, function, args, kwargs)


@functools.cache
def _place_of_out(rule: Rule) -> int | None:
    """Where among the arguments, as rules get them, `out` may stand without its name."""
    names = rule.names if rule.kind == "maps" else tuple(inspect.signature(rule.make).parameters)
    return names.index("out") if "out" in names else None


class _Ufunc:
    """A ufunc as a function of users."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *items: Any) -> Any:
        from linnet.arrays.elements.elementwise import call

        return call(self.ufunc, items, {})


def written(out: Any, result: Any, name: str) -> Any:
    """A result in `out=`."""
    if not isinstance(out, ArrayBase._public):
        raise DerivativeError(
            f"{name} was given out={type(out).__name__} while it is differentiated; give an ln.Array, or "
            f"leave it out"
        )
    if out.shape != result.shape:
        raise ValueError(f"{name}: a result of shape {result.shape} does not fit out= of shape {out.shape}")
    become(out, result if result.dtype == out.dtype else result.astype(out.dtype))
    return out


def _with_own_value(rule: Rule, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of a function, with the derivative of what says it in other words."""
    record = innermost([*args, *kwargs.values()])
    value = function(
        *[_without(each, record) for each in args],
        **{name: _without(each, record) for name, each in kwargs.items()},
    )
    made = rule.make(*args, **kwargs)

    def joined(own: Any, other: Any) -> Any:
        if type(other) is not TracedArray or variable_of(other).record is not record:
            return own
        cast = Linear(lambda t: t if t.dtype == own.dtype else t.astype(own.dtype), lambda g: g)
        return recorded(record, rule.name, [(variable_of(other), cast)], own)

    if isinstance(value, tuple | list):
        return type(value)([joined(own, other) for own, other in zip(value, made, strict=True)])
    return joined(value, made)


def _recorded(rule: Rule, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    record = innermost([*args, *kwargs.values()])
    primal_args = tuple([as_it_is(_without(each, record)) for each in args])
    primal_kwargs = {name: as_it_is(_without(each, record)) for name, each in kwargs.items()}
    result = function(*primal_args, **primal_kwargs)
    if not _has_derivative(result):
        return result
    found = rule.make(result, *primal_args, **primal_kwargs)
    inputs = list(_inputs(rule, record, found, args, kwargs))
    if not inputs:
        return result
    return recorded(record, rule.name, inputs, result)


def recorded(record: Record, name: str, inputs: Sequence[tuple[Variable, Linear]], result: Any) -> Any:
    """The results of a call as traced arrays."""
    if not isinstance(result, tuple | list):
        return traced(Variable(record, result, Step(name, inputs, None)))
    step = Step(name, inputs, len(result))
    parts = [
        traced(Variable(record, each, step, place)) if _has_derivative(each) else each
        for place, each in enumerate(result)
    ]
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


def innermost(items: Any) -> Record:
    """The record that a call belongs to."""
    return max((variable_of(each).record for each in _every(list(items))), key=lambda record: record.number)


def _has_derivative(result: Any) -> bool:
    if isinstance(result, tuple | list):
        return any(_has_derivative(each) for each in result)
    return isinstance(result, ArrayBase._public) and result.dtype.kind in "fc"


def _inputs(
    rule: Rule, record: Record, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[Variable, Linear]]:
    """The variables among the arguments, each with its linear map."""
    given: list[tuple[str, Any]] = []
    for place, item in enumerate(args):
        if place < len(rule.names) and rule.names[place] != rule.many:
            given.append((rule.names[place], item))
        else:
            given.append((rule.many or "", list(args[place:])))
            break
    for name, item in (*given, *kwargs.items()):
        if type(item) is TracedArray:
            linear = found.get(name)
            pairs = [(item, _of_rows(linear) if isinstance(linear, list) else linear)]
        elif type(item) in (list, tuple) and any(True for _ in _every(item)):
            linear = found.get(name)
            pairs = list(zip(item, linear if linear is not None else [None] * len(item), strict=True))
        else:
            continue
        for array, linear in pairs:
            if type(array) is not TracedArray or variable_of(array).record is not record:
                if type(array) in (list, tuple) and any(True for _ in _every(array)):
                    raise DerivativeError(
                        f"{rule.name}: derivatives of lists in lists are not known; join them first"
                    )
                continue
            if linear is None:
                raise DerivativeError(
                    f"{rule.name} has no rule for its argument {name or 'in this place'}, which is being "
                    f"differentiated"
                )
            yield variable_of(array), linear


def _of_rows(linears: list[Linear]) -> Linear:
    """The map of an array that stands where a list of arrays is expected: of its rows."""

    def push(t: Any) -> Any:
        changes = [linear.push(t[place]) for place, linear in enumerate(linears)]
        return functools.reduce(operator.add, changes)

    def pull(g: Any) -> Any:
        from linnet.derivatives.names import ln

        return ln.stack([linear.pull(g) for linear in linears])

    return Linear(push, pull)


# ---- the class of traced arrays, filled by `methods`


class TracedArray(ArrayBase._public, register=False):  # type: ignore[misc, call-arg]
    """An array that is being differentiated. Its values are not there to be looked at."""

    __slots__ = ()

    @property
    def _node(self) -> NoReturn:  # type: ignore[override]
        if variable_of(self).record.ended:
            raise DerivativeError(
                f"this array of shape {self.shape} belongs to a derivative that is finished; return what "
                f"you need from "
                "the function that is differentiated, instead of keeping it elsewhere"
            )
        raise Traced(dispatch)

    @_node.setter
    def _node(self, node: Any) -> NoReturn:  # type: ignore[override]
        raise Traced(dispatch)


Function = Callable[..., Any]
