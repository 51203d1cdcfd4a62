"""`ln.loops`: a function of plain loops as a function on lazy arrays."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.errors import InputError
from linnet.futures.source import SourceError, source_of
from linnet.loopnests.binding import MISSING, dotted_value
from linnet.loopnests.einops import grouped
from linnet.loopnests.nests import UNSET, NoValue, run_nest
from linnet.loopnests.reading import WholeArrays
from linnet.loopnests.refusing import Origin
from linnet.loopnests.rewriting import Rewritten, rewritten
from linnet.loopnests.storages import StoredArray
from linnet.programs.grammar import At
from linnet.sparse_arrays import sparse
from linnet.sparse_arrays.array import SparseArray


class LoopFunction:
    """A function of loops, which runs on lazy arrays; `serial` is the function as it was written."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, FunctionType):
            raise InputError(f"ln.loops takes a function, not {type(function).__name__}")
        functools.update_wrapper(self, function)
        self.serial = function
        try:
            source = source_of(function)
        except SourceError as error:
            Origin(function.__qualname__, function.__code__.co_filename, ()).refuse(
                f"the source of {function.__qualname__!r} is needed and cannot be had: {error}",
                "define it with `def` in a file, or use ln.einop or ln.tensor",
                None,
            )
        self.origin: Origin = Origin(function.__qualname__, source.file, source.lines)
        self._made: Rewritten = rewritten(source, self.origin, function.__code__.co_freevars)
        self._signature = inspect.signature(function)

    def __repr__(self) -> str:
        return f"<loops {self.serial.__qualname__}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the loops on lazy arrays; arguments that are assigned to are updated in the end."""
        given = self._signature.bind(*args, **kwargs)
        given.apply_defaults()
        return Run(self, self._made).call(given)


class Run:
    """One call of a function of loops."""

    UNSET = UNSET

    def __init__(self, function: LoopFunction, made: Rewritten) -> None:
        self.function: LoopFunction = function
        self.made: Rewritten = made
        self.origin: Origin = function.origin
        self.handles: dict[int, tuple[Any, Any]] = {}
        """By identity of an argument: the argument, and the array that the function works on."""
        self.around: dict[str, Any] = {}

    def call(self, given: inspect.BoundArguments) -> Any:
        """The function's result."""
        plain = self.function.serial
        root, namespace = import_module("linnet"), dict(plain.__globals__)
        for name, value in list(namespace.items()):
            if value is np:
                namespace[name] = root
        free = {}
        for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
            free[name] = root if cell.cell_contents is np else cell.cell_contents
        self.around = {**vars(builtins), **namespace, **free}
        for name, value in given.arguments.items():
            kind = self.function._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                given.arguments[name] = tuple(map(self.taken, value))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                given.arguments[name] = {key: self.taken(each) for key, each in value.items()}
            else:
                given.arguments[name] = self.taken(value)
        self._refuse_overlaps()
        exec(self.made.code, namespace)
        made = namespace["__around"](self, *free.values())
        result = self.given_back(made(*given.args, **given.kwargs))
        self.commit(result)
        return result

    # ---- arguments

    def taken(self, value: Any) -> Any:
        """An argument as the function gets it: arrays under handles of their own."""
        if isinstance(value, tuple | list) and any(
            isinstance(each, ArrayBase | np.ndarray) for each in value
        ):
            return type(value)(self.taken(each) for each in value)
        if isinstance(value, np.ndarray) and not value.ndim:
            return value
        if isinstance(value, np.ndarray):
            asarray = import_module("linnet").asarray
            return self.handles.setdefault(id(value), (value, asarray(value, copy=True)))[1]
        if isinstance(
            value, SparseArray | StoredArray
        ):  # its elements cannot be assigned: no handle is needed
            return value
        if isinstance(value, ArrayBase):
            return self.handles.setdefault(id(value), (value, wrap(value.__node__)))[1]
        if type(value).__module__.split(".")[0] in ("scipy", "sparse") and hasattr(value, "shape"):
            return sparse(value)
        return value

    def _refuse_overlaps(self) -> None:
        """Two arguments in the same memory would change each other."""
        arrays = [each for each, _ in self.handles.values() if isinstance(each, np.ndarray)]
        if not self.made.stored:
            return
        for number, one in enumerate(arrays):
            for other in arrays[:number]:
                if np.may_share_memory(one, other):
                    self.origin.refuse(
                        "two arguments lie in the same memory, and the function assigns to arrays",
                        "give copies: f(x, y.copy())",
                        None,
                    )

    def commit(self, result: Any) -> None:
        """Show the user the new versions of the arrays he gave. What is returned and made of them is computed
        with them: it would cost the same again later."""
        names = self.function._signature.parameters
        for value, handle in self.handles.values():
            if isinstance(value, ArrayBase):
                value._node = handle.__node__
        if not self.made.stored & set(names):
            return
        changed = [
            (value, handle) for value, handle in self.handles.values() if isinstance(value, np.ndarray)
        ]
        changed = [(value, handle) for value, handle in changed if value.flags.writeable]
        if changed:
            root = import_module("linnet")
            new = {id(handle.__node__) for _, handle in changed if handle.__node__.operands}
            returned = result if isinstance(result, tuple | list) else (result,)
            others = [each for each in returned if type(each) is ArrayBase._public and _reads(each, new)]
            root.persist(*(handle for _, handle in changed), *others)
            for value, handle in changed:
                value[...] = handle.compute()

    def given_back(self, result: Any) -> Any:
        """What the function returns; an argument that is an `ln.Array` is returned itself."""
        if isinstance(result, tuple | list) and type(result) in (tuple, list):
            return type(result)(self.given_back(each) for each in result)
        if isinstance(result, NoValue):
            result.refuse()
        for value, handle in self.handles.values():
            if result is handle and isinstance(value, ArrayBase):
                return value
        return result

    # ---- what the rewritten function asks

    def _lookup(self, names: dict[str, Any]) -> Callable[..., Any]:
        def lookup(words: str, anyway: bool = False, around: dict[str, Any] | None = None) -> Any:
            """What a name is: in the function, or in another one (`around` has what is known there)."""
            here = words.split(".", 1)[0] in names
            known = around if around is not None else names if here else self.around
            found = dotted_value(words, known)
            if isinstance(found, NoValue) and not anyway:
                found.refuse()
            if isinstance(found, ArrayBase) and id(found) in self.handles:
                return self.handles[id(found)][1]
            if isinstance(found, np.ndarray) and found.ndim:
                found = self.handles.setdefault(
                    id(found), (found, import_module("linnet").asarray(found, copy=True))
                )[1]
            return found

        return lookup

    def nest(self, number: int, names: dict[str, Any]) -> tuple[Any, ...] | None:
        """A nest, done: the scalars it assigned. None if it is about whole arrays."""
        piece = self.made.pieces[number]
        try:
            return run_nest(self.origin, piece.body, piece.results, self._lookup(names))
        except WholeArrays:
            return None

    def fold(self, number: int, names: dict[str, Any]) -> Any:
        """A fold outside of nests; UNSET if it is about whole arrays."""
        found = self.nest(number, names)
        return UNSET if found is None else found[0]

    def tensor(self, number: int, shape: Any, reduce: str | None, names: dict[str, Any]) -> Any:
        """`ln.tensor` of a comprehension; UNSET if it is about whole arrays."""
        piece = self.made.pieces[number]
        try:
            return grouped(self.origin, piece.body, shape, reduce, self._lookup, names)
        except WholeArrays:
            return UNSET

    def stage(self, test: Any, carried: tuple[str, ...], names: dict[str, Any]) -> Any:
        """Whether a `while` goes on.

        Where an array decides that, what the next turn reads is computed with it and kept: otherwise each
        turn would compute all those before it again.
        """
        if type(test) is not ArrayBase._public:
            return test
        lazy = {id(names[name]): names[name] for name in carried if name in names}
        kept = [each for each in lazy.values() if type(each) is ArrayBase._public and each is not test]
        import_module("linnet").persist(test, *kept)
        return test

    def iterable(self, value: Any, line: int) -> Any:
        """What a loop runs over, unless that is an array."""
        if isinstance(value, ArrayBase | np.ndarray):
            self.origin.refuse(
                "a loop over an array runs through its elements one by one",
                "loop over indices: `for i in range(x.shape[0])`",
                At(line, 0, 10**6),
            )
        return value


def _reads(array: Any, nodes: set[int]) -> bool:
    """Whether some nodes are among those that an array is made of."""
    seen: set[int] = set()
    stack = [array.__node__]
    while stack:
        one = stack.pop()
        if id(one) in nodes:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            stack.extend(one.operands)
    return False


def loops(function: Callable[..., Any]) -> LoopFunction:
    """Make a function of plain Python loops work on lazy arrays, in tiles and in parallel.

    Parameters
    ----------
    function : callable
        A function whose `for` loops run over `range` or `ln.grid` and assign elements of arrays. What it
        means is what it does as plain Python.

    Returns
    -------
    LoopFunction
        Takes and returns arrays; ``.serial(...)`` runs the function as it was written.

    Raises
    ------
    LoopError
        If loops cannot be run with their serial meaning: when the function is defined, or at its first call.

    See Also
    --------
    einop : one statement, given as text.

    Examples
    --------
    >>> import linnet as ln, numpy as np
    >>> @ln.loops
    ... def row_sums(A):
    ...     s = ln.zeros(A.shape[0])
    ...     for i, j in ln.grid(*A.shape):
    ...         s[i] += A[i, j]
    ...     return s
    >>> row_sums(np.arange(6.0).reshape(2, 3)).compute()
    array([ 3., 12.])
    """
    return LoopFunction(function)


__all__ = ["MISSING", "LoopFunction", "loops"]
