"""Rules of the user's own, and functions that are computed again on the way back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.sending.nested_arrays import leaves, rebuilt
from linnet.derivatives.barrier import after
from linnet.derivatives.linear_maps import zeros_as
from linnet.derivatives.modes import Linearised, alongside, jvp, vjp
from linnet.derivatives.names import ln
from linnet.derivatives.rules import Linear
from linnet.derivatives.tracing import Record, TracedArray, as_it_is, innermost, recorded, variable_of
from linnet.errors import DerivativeError

Function = Callable[..., Any]


def _is_traced(item: Any) -> bool:
    return any(type(each) is TracedArray for each in leaves(item))


class custom_vjp:  # called like a function, as `grad` is
    """A function with a rule of the user's own for going back.

    Parameters
    ----------
    f
        A function of arrays. Without a rule it is differentiated as any other.

    Examples
    --------
    >>> import linnet as ln
    >>> @ln.custom_vjp
    ... def safe_sqrt(x):
    ...     return ln.sqrt(x)
    >>> def forward(x):
    ...     y = ln.sqrt(x)
    ...     return y, y
    >>> def backward(y, weight):
    ...     return (ln.where(y > 0, weight / (2 * ln.where(y > 0, y, 1)), 0),)
    >>> safe_sqrt.defvjp(forward, backward)
    >>> ln.grad(lambda x: ln.sum(safe_sqrt(x)))(ln.asarray([0.0, 4.0])).compute()
    array([0.  , 0.25])
    """

    def __init__(self, f: Function) -> None:
        if not callable(f):
            raise TypeError(f"custom_vjp takes a function, not {type(f).__name__}")
        self._function = f
        self._rule: tuple[Function, Function] | None = None
        functools.update_wrapper(self, f)

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Give the rule: `forward(*args) -> (value, kept)`, `backward(kept, weight) -> weights`."""
        if not callable(forward) or not callable(backward):
            raise TypeError(
                "defvjp takes two functions: forward(*args) -> (value, kept), backward(kept, weight)"
            )
        self._rule = forward, backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the function."""
        if self._rule is None or not _is_traced([*args, *kwargs.values()]):
            return self._function(*args, **kwargs)
        if kwargs:
            raise DerivativeError(
                f"{self._name}: give the arguments of a function with a rule of its own by place"
            )
        record = innermost(args)
        primals = [as_it_is(_without(each, record)) for each in args]
        both = self._rule[0](*primals)
        if not isinstance(both, tuple) or len(both) != 2:
            raise DerivativeError(
                f"{self._name}: forward must return a pair, the value and what backward needs"
            )
        value, kept = both
        _check_inside(value, record, self._name)
        inputs = [
            (variable_of(each), self._linear(place, kept, primals, value))
            for place, each in enumerate(args)
            if type(each) is TracedArray and variable_of(each).record is record
        ]
        return recorded(record, self._name, inputs, value)

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", "custom_vjp")

    def _linear(self, place: int, kept: Any, primals: list[Any], value: Any) -> Linear:
        """The user's rule for one argument; forward is its transpose, which is linear in the weight."""

        def pull(weight: Any) -> Any:
            weight = _complete(weight, value)
            assert self._rule is not None
            found = self._rule[1](kept, weight)
            if not isinstance(found, tuple | list) or len(found) != len(primals):
                raise DerivativeError(
                    f"{self._name}: backward must return a tuple of {len(primals)} weights, one for each "
                    f"argument"
                )
            made = found[place]
            return (
                None
                if made is None
                else alongside(made, primals[place], f"what backward of {self._name} returned")
            )

        def push(change: Any) -> Any:
            weights = [zeros_as(each) for each in leaves(value)]

            def back(*given: Any) -> Any:
                pulled = pull(rebuilt(value, list(given)) if isinstance(value, tuple | list) else given[0])
                return zeros_as(primals[place]) if pulled is None else pulled

            found = Linearised(back, weights).pull([change])
            return tuple(found) if isinstance(value, tuple | list) else found[0]

        return Linear(push, pull)


def _without(item: Any, record: Record) -> Any:
    if type(item) is TracedArray and variable_of(item).record is record:
        return variable_of(item).primal
    return item


def _complete(weight: Any, value: Any) -> Any:
    """Weights on all results: zeros on those that nothing depends on."""
    if not isinstance(value, tuple | list):
        return weight
    return tuple(zeros_as(each) if w is None else w for w, each in zip(weight, value, strict=True))


def _check_inside(value: Any, record: Record, name: str) -> None:
    for each in leaves(value):
        if type(each) is TracedArray and variable_of(each).record.number >= record.number:
            raise DerivativeError(
                f"{name} uses an array that is being differentiated and is not among its arguments; give "
                f"it as one"
            )
        if not isinstance(each, ArrayBase):
            raise DerivativeError(f"{name} must return arrays, not {type(each).__name__}")


def checkpoint(f: Function) -> Function:
    """The same function; differentiated in reverse, what is inside is computed again on the way back.

    Without it, all that a function computes on its way is kept until the weights come back. With it only its
    arguments are kept. Values and derivatives are the same, bit by bit.

    Parameters
    ----------
    f
        A function of arrays, which are all among its arguments.

    Returns
    -------
    function
        Takes and gives what `f` does.

    Examples
    --------
    >>> import linnet as ln
    >>> def step(x):
    ...     return ln.sin(x) * x
    >>> ln.grad(lambda x: ln.sum(ln.checkpoint(step)(x)))(ln.asarray([0.0, 0.5])).compute()
    array([0.        , 0.91821682])
    """
    if not callable(f):
        raise TypeError(f"checkpoint takes a function, not {type(f).__name__}")

    @functools.wraps(f)
    def computed_again(*args: Any, **kwargs: Any) -> Any:
        if not _is_traced([*args, *kwargs.values()]):
            return f(*args, **kwargs)
        return _checkpointed(functools.partial(f, **kwargs), args, getattr(f, "__name__", "checkpoint"))

    return computed_again


def _checkpointed(f: Function, args: tuple[Any, ...], name: str) -> Any:
    record = innermost(args)
    args = tuple(map(as_it_is, args))
    places = [k for k, x in enumerate(args) if type(x) is TracedArray and variable_of(x).record is record]
    primals = [variable_of(args[place]).primal for place in places]

    def inner(*given: Any) -> Any:
        every = list(args)
        for place, each in zip(places, given, strict=True):
            every[place] = each
        return f(*every)

    value = inner(*primals)
    value = value if isinstance(value, ArrayBase | tuple | list) else ln.asarray(value)
    _check_inside(value, record, name)
    again: dict[int, Any] = {}

    def pulled(weight: Any) -> tuple[Any, ...]:
        if id(weight) not in again:
            again.clear()
            late = after(primals, weight)
            _, pull = vjp(inner, *late)
            again[id(weight)] = weight, pull(_complete(weight, value))
        return again[id(weight)][1]

    def of(number: int) -> Linear:
        def push(change: Any) -> Any:
            changes = [change if k == number else zeros_as(x) for k, x in enumerate(primals)]
            tangent = jvp(inner, primals, changes)[1]
            return tuple(tangent) if isinstance(tangent, list) else tangent

        return Linear(push, lambda weight: pulled(weight)[number])

    inputs = [(variable_of(args[place]), of(number)) for number, place in enumerate(places)]
    return recorded(record, name, inputs, value)
