"""What users call: derivatives of functions of arrays, forward and in reverse.

The user's function runs once, on traced arrays, and leaves a record of linear maps. Going through the record
from its beginning pushes changes forward, from its end pulls weights back. Nothing is computed: results are
lazy arrays, which share what they have in common.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.expression.traced import Traced
from linnet.arrays.sending.nested_arrays import leaves, rebuilt
from linnet.derivatives.linear_maps import zeros_as
from linnet.derivatives.names import ln
from linnet.derivatives.tracing import (
    Record,
    Step,
    TracedArray,
    Variable,
    as_it_is,
    plain,
    traced,
    variable_of,
)
from linnet.errors import DerivativeError

Function = Callable[..., Any]


class Linearised:
    """A function at one place: its value, and the record of its derivative there."""

    def __init__(self, function: Function, primals: Sequence[Any]) -> None:
        self.primals: list[Any] = list(primals)
        record = Record()
        self.record: Record = record
        self.starts: list[Step] = [Step("argument", (), None) for _ in primals]
        arguments = [traced(Variable(record, x, s)) for x, s in zip(primals, self.starts, strict=True)]
        try:
            result = _run(function, arguments)
            results = [_as_result(each, function) for each in leaves(result)]
            # before the record ends, which gives arrays that were written into their values
            self.ends: list[Variable | None] = [_variable(each, record) for each in results]
        finally:
            record.end()
        values = [each if end is None else end.primal for each, end in zip(results, self.ends, strict=True)]
        self.shape: Any = result
        self.value: Any = rebuilt(result, values)
        self.values = values

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Changes of the arguments as changes of the results."""
        known: dict[int, Any] = {
            step.number: tangent
            for step, tangent in zip(self.starts, tangents, strict=True)
            if tangent is not None
        }
        for step in sorted(self._steps(), key=lambda each: each.number):
            total: Any = None
            for variable, linear in step.inputs:
                change = _part(known.get(variable.step.number), variable)
                if change is not None:
                    total = _sum(total, linear.push(change))
            if total is not None:
                known[step.number] = total
        found: list[Any] = []
        for end, value in zip(self.ends, self.values, strict=True):
            change = None if end is None else _part(known.get(end.step.number), end)
            found.append(zeros_as(value) if change is None else fitted(change, value, "jvp"))
        return found

    def pull(self, weights: Sequence[Any]) -> list[Any]:
        """Weights on the results as weights on the arguments."""
        known: dict[int, Any] = {}
        steps = {step.number: step for step in self._steps()}
        for end, weight in zip(self.ends, weights, strict=True):
            if end is not None and weight is not None:
                _add(known, end, weight)
        pending = [-number for number in steps]
        heapq.heapify(pending)
        while pending:
            number = -heapq.heappop(pending)
            weight = known.get(number)
            if weight is None:
                continue
            step = steps[number]
            if step.inputs:
                del known[number]
            for variable, linear in step.inputs:
                pulled = linear.pull(weight)
                if pulled is not None:
                    _add(known, variable, fitted(pulled, variable.primal, step.name))
        found = [known.get(step.number) for step in self.starts]
        return [zeros_as(x) if w is None else w for w, x in zip(found, self.primals, strict=True)]

    def _steps(self) -> list[Step]:
        """All that the results depend on."""
        found: dict[int, Step] = {}
        pending = [end.step for end in self.ends if end is not None]
        while pending:
            step = pending.pop()
            if step.number not in found:
                found[step.number] = step
                pending.extend(variable.step for variable, _ in step.inputs)
        return list(found.values())


def _run(function: Function, arguments: Sequence[Any]) -> Any:
    try:
        return function(*arguments)
    except Traced as found:
        name = found.names[-1] if found.names else _function_in(found)
    raise DerivativeError(
        f"{name} has no rule of derivatives; use functions that have one (docs/derivatives.md lists "
        f"them), or give it "
        "one with ln.custom_vjp"
    )


def _function_in(error: Traced) -> str:
    """The function of ours that the user called last."""
    frames: list[Any] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    ours = [str(f.f_globals.get("__name__", "")).startswith("linnet.") for f in frames]
    last = max((place for place, own in enumerate(ours) if not own), default=-1)
    rest = frames[last + 1 :] or frames[-1:]
    return rest[0].f_code.co_name.strip("_")


def _as_result(item: Any, function: Function) -> Any:
    if isinstance(item, dict | set | str | bytes) or item is None:
        name = getattr(function, "__name__", "the function")
        raise DerivativeError(
            f"{name} returned {'None' if item is None else f'a {type(item).__name__}'}; functions that are "
            f"differentiated return arrays, or tuples or lists of arrays"
        )
    return item if isinstance(item, ArrayBase) else ln.asarray(item)


def _variable(array: Any, record: Record) -> Variable | None:
    """What is inside an array, if it belongs to the record; None: it does not depend on the arguments."""
    if type(array) is not TracedArray:
        return None
    variable = variable_of(array)
    return variable if variable.record is record else None


def _part(change: Any, variable: Variable) -> Any:
    return change[variable.place] if change is not None and variable.step.count is not None else change


def _sum(one: Any, other: Any) -> Any:
    """The sum of two changes; None is none, tuples are added part by part."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, tuple):
        return tuple(_sum(a, b) for a, b in zip(one, other, strict=True))
    return one + other


def _add(known: dict[int, Any], variable: Variable, weight: Any) -> None:
    """Add a weight to those on what a step gave."""
    step = variable.step
    if step.count is None:
        known[step.number] = _sum(known.get(step.number), weight)
        return
    alone = tuple(weight if place == variable.place else None for place in range(step.count))
    known[step.number] = _sum(known.get(step.number), alone)


def fitted(weight: Any, array: Any, name: str) -> Any:
    """A weight in the dtype of what it is on."""
    if weight.shape != array.shape:
        raise DerivativeError(
            f"the rule of {name} gave a derivative of shape {weight.shape} for an array of shape "
            f"{array.shape}"
        )
    if weight.dtype == array.dtype:
        return weight
    if weight.dtype.kind == "c" and array.dtype.kind == "f":
        weight = ln.real(weight)
    return weight if weight.dtype == array.dtype else ln.astype(weight, array.dtype)


# ---- arguments


def differentiable(item: Any, name: str) -> Any:
    """An argument as an array of ours; an error if it has no derivative."""
    if isinstance(item, dict | set | str | bytes) or item is None:
        raise DerivativeError(
            f"{name} is {'None' if item is None else f'a {type(item).__name__}'}: derivatives are with "
            f"respect to arrays; give each array as an argument of its own"
        )
    item = as_it_is(item)
    array: Any = item if isinstance(item, ArrayBase) else ln.asarray(item)
    if array.dtype.kind not in "fc":
        raise DerivativeError(
            f"{name} is {array.dtype}: derivatives are with respect to floating-point arrays; convert it "
            "(x.astype(float)), or leave it out of argnums"
        )
    return array


def alongside(item: Any, array: Any, name: str) -> Any:
    """A tangent or cotangent, which must have the shape and dtype of an array."""
    item = as_it_is(item)
    made: Any = item if isinstance(item, ArrayBase) else ln.asarray(item)
    if made.shape != array.shape:
        raise DerivativeError(
            f"{name} has shape {made.shape}; it must have the shape {array.shape} it goes with"
        )
    if made.dtype.kind == "c" and array.dtype.kind == "f":
        raise DerivativeError(f"{name} is {made.dtype}, but what it goes with is {array.dtype}")
    return made if made.dtype == array.dtype else ln.astype(made, array.dtype)


def _places(argnums: Any, count: int, name: str) -> list[int]:
    given = list(argnums) if isinstance(argnums, tuple | list) else [argnums]
    for each in given:
        if isinstance(each, bool) or not isinstance(each, int | np.integer):
            raise TypeError(f"argnums of {name} must be an integer or a tuple of integers, not {argnums!r}")
        if not -count <= each < count:
            raise ValueError(f"argnums={argnums!r} of {name}: the function was called with {count} arguments")
    places = [int(each) % count for each in given]
    if len(set(places)) != len(places):
        raise ValueError(f"argnums={argnums!r} of {name} names an argument twice")
    return places


def _at(
    function: Function, argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> Linearised:
    """A function linearised in some of its arguments."""
    places = _places(argnums, len(args), name)
    primals = [differentiable(args[place], f"argument {place} of {name}") for place in places]

    @functools.wraps(function)
    def inner(*traced_ones: Any) -> Any:
        every = list(args)
        for place, each in zip(places, traced_ones, strict=True):
            every[place] = each
        return function(*every, **kwargs)

    return Linearised(inner, primals)


def _arranged(parts: Sequence[Any], argnums: Any) -> Any:
    return tuple(parts) if isinstance(argnums, tuple | list) else parts[0]


def _check_callable(function: Any, name: str) -> None:
    if not callable(function):
        raise TypeError(f"{name} takes a function, not {type(function).__name__}")


def _scalar(linearised: Linearised, name: str) -> Any:
    """The value of a function that gives one real number."""
    value = linearised.value
    if isinstance(value, tuple | list):
        raise DerivativeError(
            f"{name} is of functions that return one number; this one returned a tuple: use ln.vjp"
        )
    if value.shape:
        raise DerivativeError(
            f"{name} is of functions that return one number; this one returned an array of shape "
            f"{value.shape}: sum "
            "it, or use ln.jacobian or ln.vjp"
        )
    if value.dtype.kind != "f":
        raise DerivativeError(
            f"{name} is of functions that return a real floating-point number, not {value.dtype}"
        )
    return value


# ---- the modes


def value_and_grad(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the value of `f` and its gradient.

    Parameters
    ----------
    f
        A function of arrays that returns one real number (an array without axes).
    argnums
        With respect to which of the arguments: a number, or a tuple, which gives a tuple.

    Returns
    -------
    function
        Takes what `f` takes; gives `(value, gradient)`, both lazy: `ln.compute(value, gradient)` computes
        what they share once.

    Examples
    --------
    >>> import linnet as ln
    >>> value, gradient = ln.value_and_grad(lambda x: ln.sum(x**2))(ln.asarray([1.0, 2.0]))
    >>> ln.compute(value, gradient)
    (np.float64(5.0), array([2., 4.]))
    """
    _check_callable(f, "value_and_grad")

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        linearised = _at(f, argnums, args, kwargs, "ln.grad")
        value = _scalar(linearised, "ln.grad")
        one = ln.asarray(np.ones((), value.dtype))
        return value, _arranged(linearised.pull([one]), argnums)

    return both


def grad(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the gradient of `f`.

    Parameters
    ----------
    f
        A function of arrays that returns one real number (an array without axes).
    argnums
        With respect to which of the arguments: a number, or a tuple, which gives a tuple.

    Returns
    -------
    function
        Takes what `f` takes; gives a lazy array of the shape and dtype of the argument.

    Examples
    --------
    >>> import linnet as ln
    >>> ln.grad(lambda x: ln.sum(ln.sin(x)))(ln.asarray([0.0, 0.0])).compute()
    array([1., 1.])
    >>> ln.grad(ln.grad(lambda x: x**3))(2.0).compute()
    np.float64(12.0)
    """
    _check_callable(f, "grad")
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


def vjp(f: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of `f`, and the function that multiplies its transposed Jacobian with a vector.

    Parameters
    ----------
    f
        A function of arrays that returns an array, or a tuple or list of arrays.
    primals
        The arrays it is differentiated at.

    Returns
    -------
    value, pull
        `pull(cotangent)` takes what has the shape of the value, and gives a tuple, one array for each primal.

    Examples
    --------
    >>> import linnet as ln
    >>> value, pull = ln.vjp(lambda x: x * x, ln.asarray([1.0, 2.0]))
    >>> pull(ln.asarray([1.0, 10.0]))[0].compute()
    array([ 2., 40.])
    """
    _check_callable(f, "vjp")
    given = [differentiable(each, f"primal {place} of ln.vjp") for place, each in enumerate(primals)]
    linearised = Linearised(f, given)

    def pull(cotangent: Any) -> tuple[Any, ...]:
        several = isinstance(linearised.value, tuple | list)
        weights = leaves(cotangent) if several else [cotangent]
        if len(weights) != len(linearised.values):
            raise DerivativeError(
                f"the function returned {len(linearised.values)} arrays, but {len(weights)} cotangents "
                f"were given"
            )
        settled = [
            alongside(weight, value, "the cotangent") if value.dtype.kind in "fc" else None
            for weight, value in zip(weights, linearised.values, strict=True)
        ]
        return tuple(linearised.pull(settled))

    return linearised.value, pull


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `f`, and its derivative in a direction.

    Parameters
    ----------
    f
        A function of arrays that returns an array, or a tuple or list of arrays.
    primals, tangents
        The arrays it is differentiated at, and the direction: tuples of as many arrays of the same shapes.

    Returns
    -------
    value, tangent
        Both lazy, and arranged as `f` returns them.

    Examples
    --------
    >>> import linnet as ln
    >>> value, tangent = ln.jvp(ln.sin, (ln.asarray([0.0, 1.0]),), (ln.asarray([2.0, 0.0]),))
    >>> tangent.compute()
    array([2., 0.])
    """
    _check_callable(f, "jvp")
    linearised, changes = _directed(f, primals, tangents, "ln.jvp")
    return linearised.value, rebuilt(linearised.shape, linearised.push(changes))


def _directed(f: Function, primals: Any, tangents: Any, name: str) -> tuple[Linearised, list[Any]]:
    for each, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(each, tuple | list):
            raise DerivativeError(
                f"{name} takes {what} in a tuple, not {type(each).__name__}: write (x,) for one"
            )
    if len(primals) != len(tangents):
        raise DerivativeError(f"{name} was given {len(primals)} primals, but {len(tangents)} tangents")
    given = [differentiable(each, f"primal {place} of {name}") for place, each in enumerate(primals)]
    changes = [
        alongside(tangent, x, f"tangent {place} of {name}")
        for place, (tangent, x) in enumerate(zip(tangents, given, strict=True))
    ]
    return Linearised(f, given), changes


def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of `f` times a vector, without the Hessian.

    Parameters
    ----------
    f
        A function of arrays that returns one real number.
    primals, tangents
        The arrays it is differentiated at, and the vector: tuples of as many arrays of the same shapes.

    Returns
    -------
    product
        An array of the primal's shape; of several primals a tuple.

    Examples
    --------
    >>> import linnet as ln
    >>> ln.hvp(lambda x: ln.sum(x**3), (ln.asarray([1.0, 2.0]),), (ln.asarray([1.0, 1.0]),)).compute()
    array([ 6., 12.])
    """
    _check_callable(f, "hvp")
    several = tuple(range(len(primals))) if isinstance(primals, tuple | list) else (0,)
    linearised, changes = _directed(grad(f, several), primals, tangents, "ln.hvp")
    found = linearised.push(changes)
    return tuple(found) if len(several) > 1 else found[0]


def jacobian(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the Jacobian of `f`: all derivatives of its result.

    Parameters
    ----------
    f
        A function of arrays that returns one array.
    argnums
        With respect to which of the arguments: a number, or a tuple, which gives a tuple.

    Returns
    -------
    function
        Takes what `f` takes; gives a lazy array whose first axes are the result's and last the argument's.

    Examples
    --------
    >>> import linnet as ln
    >>> ln.jacobian(lambda x: x * x)(ln.asarray([1.0, 2.0])).compute()
    array([[2., 0.],
           [0., 4.]])
    """
    _check_callable(f, "jacobian")

    @functools.wraps(f)
    def every(*args: Any, **kwargs: Any) -> Any:
        linearised = _at(f, argnums, args, kwargs, "ln.jacobian")
        if isinstance(linearised.value, tuple | list):
            raise DerivativeError(
                "ln.jacobian is of functions that return one array; this one returned a tuple"
            )
        if linearised.value.dtype.kind not in "fc":
            raise DerivativeError(
                f"ln.jacobian is of functions that return floating-point arrays, not {linearised.value.dtype}"
            )
        return _arranged(_jacobians(linearised), argnums)

    return every


def _jacobians(linearised: Linearised) -> list[Any]:
    """Row by row or column by column, whichever are fewer."""
    value, primals = linearised.value, linearised.primals
    if value.size <= sum(x.size for x in primals):
        rows = [linearised.pull([each]) for each in _units(value)]
        parts = [[row[place] for row in rows] for place in range(len(primals))]
        return [
            ln.reshape(ln.stack(part), value.shape + x.shape)
            if part
            else ln.zeros(value.shape + x.shape, x.dtype)
            for part, x in zip(parts, primals, strict=True)
        ]
    found: list[Any] = []
    for place, x in enumerate(primals):
        columns: list[Any] = []
        for unit in _units(x):
            changes = [unit if other == place else None for other in range(len(primals))]
            columns.append(linearised.push(changes)[0])
        shape = value.shape + x.shape
        made = ln.stack(columns, axis=-1) if columns else ln.zeros(shape, value.dtype)
        found.append(ln.reshape(made, shape))
    return found


def _units(array: Any) -> list[Any]:
    """The unit vectors of an array's shape, in its tiles."""
    whole = plain(array)
    found: list[Any] = []
    for place in np.ndindex(*whole.shape):
        unit = zeros_as(whole)
        unit[place] = 1
        found.append(unit)
    return found


def hessian(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that gives the Hessian of `f`: all its second derivatives.

    Parameters
    ----------
    f
        A function of arrays that returns one real number.
    argnums
        With respect to which of the arguments: a number, or a tuple, which gives a tuple of tuples.

    Returns
    -------
    function
        Takes what `f` takes; gives a lazy array with the argument's axes twice.

    Examples
    --------
    >>> import linnet as ln
    >>> ln.hessian(lambda x: x[0] * x[1])(ln.asarray([1.0, 2.0])).compute()
    array([[0., 1.],
           [1., 0.]])
    """
    _check_callable(f, "hessian")
    if not isinstance(argnums, tuple | list):
        return jacobian(grad(f, argnums), argnums)

    @functools.wraps(f)
    def every(*args: Any, **kwargs: Any) -> Any:
        rows = [jacobian(grad(f, each), tuple(argnums))(*args, **kwargs) for each in argnums]
        return tuple(rows)

    return every
