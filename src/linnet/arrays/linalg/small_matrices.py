"""Small matrices go to LAPACK without an expression.

What a function of linear algebra does with small operands depends on their shapes and dtypes alone. So the
first call builds the expression, and the calls of kernels that it stands for are kept. A later call gives
arrays that know these; their expression is built only if somebody asks for more than their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase, is_small, wrap
from linnet.arrays.elements.undecided_arrays import late_of
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import viewed
from linnet.arrays.expression.nodes import Axes, Node, ProgramCall, Result, Source
from linnet.errors import warn_of
from linnet.kernels import get as get_kernel

_KEPT = 1024
_MISSING = object()
_NUMBERS = frozenset("biufc")
_PLAIN = frozenset((bool, int, float, str, type(None)))

Values = NDArray[Any]


class _Operand(NamedTuple):
    """One of the operands, perhaps transposed or with other axes of length 1."""

    number: int
    shape: tuple[int, ...] | None = None
    turned: bool = False

    def of(self, operands: Sequence[Values]) -> Values:
        data = operands[self.number]
        data = data.T if self.turned else data
        return data if self.shape is None else data.reshape(self.shape)


class _Call(NamedTuple):
    """One call of a kernel on whole matrices."""

    function: Callable[..., Any]
    inputs: tuple[_Operand, ...]
    options: dict[str, Any]
    outputs: int
    condition: int | None
    """Which of its results says how well a system could be solved."""
    plain: bool
    """Whether it takes the operands as they are."""

    def run(self, operands: Sequence[Values]) -> Any:
        if self.plain:
            found = self.function(*operands, **self.options)
        else:
            found = self.function(*[each.of(operands) for each in self.inputs], **self.options)
        if self.condition is not None:
            warn_of(float(found[self.condition][0]))
        return found if self.outputs > 1 else (found,)


class _Output(NamedTuple):
    """One of the results of a call."""

    number: int
    turn: Callable[[Values], Any] | None
    """Gives it other axes."""


class Shortcut(NamedTuple):
    """What a function does with operands of certain shapes and dtypes."""

    call: _Call
    outputs: tuple[_Output, ...]
    several: Callable[..., Any] | None
    """Makes the tuple in which results are returned; None: there is one."""

    def values(self, operands: Sequence[Values]) -> list[Any]:
        """The results, at once."""
        found = self.call.run(operands)
        return [found[number] if turn is None else turn(found[number]) for number, turn in self.outputs]


class _Pending:
    """A call that was made, whose expression is not built yet."""

    __slots__ = ("_arguments", "_function", "_made", "_operands", "_options", "_shortcut")

    def __init__(
        self,
        shortcut: Shortcut,
        operands: Sequence[Values],
        function: Callable[..., Any],
        arguments: Sequence[Any],
        options: dict[str, Any],
    ) -> None:
        self._shortcut, self._operands = shortcut, operands
        self._function, self._arguments, self._options = function, arguments, options
        self._made: list[Node] | None = None

    def values(self) -> list[Any]:
        """Those of all its results."""
        return self._shortcut.values(self._operands)

    def node(self, number: int) -> Node:
        """That of one of its results."""
        if self._made is None:
            made = self._function(*map(_wrapped, self._arguments), **self._options)
            self._made = [each.__node__ for each in (made if isinstance(made, tuple) else (made,))]
        return self._made[number]


def shortcut(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The results of a function on small matrices; NotImplemented if it takes the long way.

    They are lazy if one of the operands is, else values.
    """
    key: list[Any] = [function]
    operands: list[Values] = []
    arguments: list[Any] = []
    lazy = given = False
    for item in args:
        kind = type(item)
        if kind in _PLAIN:
            key.append((kind, item))
            arguments.append(item)
            continue
        if kind is ArrayBase._public:
            node, lazy = item.__node__, True
            if not is_small(node):
                return NotImplemented
        elif kind is np.ndarray and item.nbytes <= chunking.SMALL and item.dtype.kind in _NUMBERS:
            node, given = Source(item), True
        else:
            return NotImplemented
        key.append((node.shape, node.dtype))
        operands.append(node.data)
        arguments.append(node)
    for name, value in options.items():
        if type(value) not in _PLAIN:
            return NotImplemented
        key.append((name, type(value), value))
    settled = tuple(key)
    known = _known.get(settled, _MISSING)
    if known is _MISSING:
        made = function(*map(_wrapped, arguments), **options)
        known = _found(made, operands)
        if len(_known) >= _KEPT:
            _known.clear()
        _known[settled] = known
    if known is None:
        return NotImplemented
    assert isinstance(known, Shortcut)
    if lazy:
        if given:  # NumPy's arrays count as read now: the user may change his own
            arguments = [
                Source(node.data.copy()) if type(each) is np.ndarray else node
                for node, each in zip(arguments, args, strict=True)
            ]
            operands = [each.data for each in arguments if isinstance(each, Source)]
        pending = _Pending(known, operands, function, arguments, options)
        results = [late_of(pending, number) for number in range(len(known.outputs))]
    else:
        results = known.values(operands)
    return results[0] if known.several is None else known.several(*results)


_known: dict[tuple[Any, ...], Any] = {}


def _wrapped(item: Any) -> Any:
    return wrap(item) if isinstance(item, Node) else item


def _found(made: Any, operands: Sequence[Values]) -> Shortcut | None:
    """The shortcut to what a function gave; None: there is none."""
    parts = made if isinstance(made, tuple) else (made,)
    outputs: list[_Output] = []
    calls: list[ProgramCall] = []
    for part in parts:
        if type(part) is not ArrayBase._public:
            return None
        node, axes = part.__node__, None
        if isinstance(node, Axes):
            node, axes = node.operand, node.axes
        if not isinstance(node, Result) or any(node.call is not each for each in calls):
            return None
        calls.append(node.call)
        names = [name for name, _ in node.call.recipe.outputs]
        outputs.append(_Output(names.index(node.name), None if axes is None else _turning(axes, node.ndim)))
    recipe = calls[0].recipe
    inputs = [_as_operand(each, operands) for each in calls[0].inputs]
    if recipe.kernel is None or recipe.stack is not None or None in inputs:
        return None
    name, options = recipe.kernel
    names = [each for each, _ in recipe.outputs]
    condition = None if recipe.condition is None else names.index(recipe.condition)
    plain = inputs == [_Operand(number) for number in range(len(operands))]
    function = get_kernel(name).function
    call = _Call(function, tuple(inputs), dict(options), len(names), condition, plain)  # type: ignore[arg-type]
    several = None
    if isinstance(made, tuple):
        several = type(made) if hasattr(made, "_fields") else lambda *values: tuple(values)
    return Shortcut(call, tuple(outputs), several)


def _as_operand(node: Node, operands: Sequence[Values]) -> _Operand | None:
    """What a node is of the operands, if it is a view of all elements of one."""
    if not isinstance(node, Source):
        return None
    for number, whole in enumerate(operands):
        if node.data is whole:
            return _Operand(number)
        if node.data.dtype != whole.dtype or node.data.size != whole.size or not whole.size:
            continue
        for turned in (False, True):
            view = whole.T if turned else whole
            if _lies(view) == _lies(node.data):
                return _Operand(number, None, turned)
        if whole.ndim == 1 and _lies(node.data) == _lies(whole.reshape(node.data.shape)):
            return _Operand(number, node.data.shape)
    return None


def _lies(data: Values) -> Any:
    """Where its elements lie, in which order."""
    steps = [step for step, length in zip(data.strides, data.shape, strict=True) if length != 1]
    return data.__array_interface__["data"][0], data.shape, steps


def _turning(axes: tuple[int, ...], ndim: int) -> Callable[[Values], Any]:
    """What gives a result other axes, as `Axes` means it."""
    if axes == () and ndim == 1:
        return itemgetter(0)
    if axes == (0,) and ndim == 2:
        return itemgetter((slice(None), 0))
    if axes == (1, 0):
        return attrgetter("T")
    return lambda value: viewed(value, axes)
