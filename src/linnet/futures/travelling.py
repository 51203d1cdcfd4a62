"""Calls as bytes, for workers that are not threads of this process, and what came of them.

A call is pickled here and opened by a worker that this process started, or that it reaches through a cluster
of the user's: never by one that takes orders from a queue or a store. Functions that can be imported go by
their names, others by value if `cloudpickle` is installed.

Three things would silently differ from a call in this process, and go along with a pure call: *names* that
the function reads from modules, which may have been given other values since the modules were imported;
*surroundings* (how NumPy and decimal numbers treat errors, filters of warnings, folders); and which objects
are *outside*, so that a function which returns its argument returns that object and no copy of it. What
cannot be sent, or cannot come back as what it was, raises `StaysHere`: pure calls are then made here.
"""

from __future__ import annotations

import decimal
import io
import os
import pickle
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from linnet.futures import purity
from linnet.futures.plain import ATOMS, registered


class StaysHere(Exception):
    """A call that cannot be made elsewhere; says why."""


class Lost(Exception):
    """The worker was gone before it answered; says how."""


class Call(NamedTuple):
    """A call that is about to travel."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    pure: bool
    """Whether it may be made again, and somewhere else."""

    @property
    def name(self) -> str:
        """What the function is called."""
        return name_of(self.function)


class Sent(NamedTuple):
    """A call as it travels."""

    surroundings: bytes
    function: bytes
    """A function by itself, which workers may keep; empty: it is in `rest`."""
    rest: bytes
    """Function or None, arguments, keywords, names, objects outside, whether the call is pure."""


def name_of(f: Any) -> str:
    """What a callable is called.

    >>> name_of(len), name_of(lambda: 0)
    ('builtins.len', 'linnet.futures.travelling.<lambda>')
    """
    if isinstance(f, MethodType) or hasattr(f, "__qualname__"):
        return f"{getattr(f, '__module__', None) or 'builtins'}.{f.__qualname__}"
    return repr(f)


def cloudpickle_or_none() -> Any:
    """The package that pickles functions by value, if it is installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


def is_importable(f: Any) -> bool:
    """Whether a function or class is found by module and name in a process that never ran this script."""
    module = sys.modules.get(getattr(f, "__module__", None) or "")
    if module is None or module.__name__ in ("__main__", "__mp_main__"):
        return False
    found: Any = module
    for part in f.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is f and getattr(module, "__file__", "") is not None


def _plain(f: Any) -> Any:
    return f


def _reduced(thing: Any) -> Any:
    """How functions travel; parallel ones as what they are without."""
    if isinstance(thing, purity.Parallel) and not is_importable(thing):
        return _plain, (thing.function,)
    if isinstance(thing, FunctionType | type) and cloudpickle_or_none() is None and not is_importable(thing):
        if thing.__module__ == "builtins":
            return NotImplemented
        raise StaysHere(
            f"{name_of(thing)} cannot be imported by a worker: put it into a module, at its top level, "
            "or install cloudpickle, which sends functions by value"
        )
    return NotImplemented


def _pickler_of(base: Any) -> Any:
    class Pickler(base):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            made = _reduced(thing)
            return (
                super().reducer_override(thing)
                if made is NotImplemented and base is not pickle.Pickler
                else made
            )

    return Pickler


_picklers: dict[bool, Any] = {}


def pickled(thing: Any) -> bytes:
    """The bytes of something; `StaysHere` if there are none."""
    cloudpickle = cloudpickle_or_none()
    kind = _picklers.get(cloudpickle is not None)
    if kind is None:
        kind = _pickler_of(pickle.Pickler if cloudpickle is None else cloudpickle.Pickler)
        _picklers[cloudpickle is not None] = kind
    file = io.BytesIO()
    try:
        kind(file, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
    except StaysHere:
        raise
    except RecursionError:
        raise StaysHere("it holds objects that are nested too deep to be pickled") from None
    except Exception as error:
        raise StaysHere(f"it cannot be pickled: {type(error).__name__}: {error}") from None
    return file.getvalue()


# ---------------------------------------------------------------------- names, and objects outside


class _Known(NamedTuple):
    """What is known of a pure function that travelled before."""

    verdict: Any
    names: list[tuple[str, str, Any]]
    """Modules, names and values that it reads by name."""
    changing: bool
    """Whether it reads objects that can change."""
    stays: str
    """Why it must not travel; empty: it may."""
    alone: bytes
    """The function by itself, if nothing that it reads can change."""


_known: weakref.WeakKeyDictionary[FunctionType, _Known] = weakref.WeakKeyDictionary()


def _looked_at(f: FunctionType) -> _Known:
    verdict = purity.verdict(f)
    found = _known.get(f)
    if found is not None and found.verdict is verdict:
        return found
    names: list[tuple[str, str, Any]] = []
    changing, stays = False, ""
    for each in (f, *(value for _, _, value in verdict.reads)):
        each = each.function if isinstance(each, purity.Parallel) else each
        if isinstance(each, FunctionType):
            defaults = (*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values())
            if any(_can_change(value) for value in defaults):
                stays = f"a default of {name_of(each)} can be changed"
    for place, name, value in verdict.reads:
        changing = changing or _can_change(value)
        if type(place) is CellType or value is purity.MISSING:
            continue
        module = str(place.get("__name__", ""))
        if module == "__main__" or getattr(sys.modules.get(module), "__dict__", None) is not place:
            continue  # it goes by value, and so do its names
        at_home = getattr(value, "__module__", "") == module and getattr(value, "__qualname__", "") == name
        if not at_home and not isinstance(value, ModuleType):
            names.append((module, name, value))
    alone = b"" if changing or stays else pickled(f)
    made = _known[f] = _Known(verdict, names, changing, stays, alone)
    return made


_STILL = (FunctionType, BuiltinFunctionType, ModuleType, type, np.ufunc, purity.Parallel)


def _can_change(value: Any) -> bool:
    """Whether an object may have another value later."""
    if type(value) in ATOMS or isinstance(value, _STILL) or value is purity.MISSING:
        return False
    if type(value) in (tuple, frozenset):
        return any(map(_can_change, value))
    return True


def _outside(values: Iterable[Any], found: list[Any], seen: set[int]) -> None:
    """Objects that can be changed, in an order that the values tell."""
    for each in values:
        kind = type(each)
        if kind in ATOMS or id(each) in seen:
            continue
        if kind in (list, dict, set, np.ndarray) or kind in registered:
            seen.add(id(each))
            found.append(each)
        if kind in (list, tuple, set, frozenset):
            _outside(each, found, seen)
        elif kind is dict:
            _outside(each, found, seen)
            _outside(each.values(), found, seen)


# ---------------------------------------------------------------------- surroundings

_lock = threading.Lock()
_last: tuple[Any, bytes] = (None, b"")


def calculating() -> tuple[dict[str, Any], tuple[Any, ...], list[Any]]:
    """How NumPy and decimal numbers treat errors, on this thread."""
    context = decimal.getcontext()
    numbers = (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp)
    return dict(np.geterr()), numbers, [kind for kind, trapped in context.traps.items() if trapped]


def _surroundings() -> bytes:
    """What calls find around them, as bytes that are equal while nothing changes."""
    global _last
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    now = (
        *calculating(),
        list(warnings.filters),
        sys.getrecursionlimit(),
        folder,
        list(sys.path),
    )
    with _lock:
        before, made = _last
    if before == now:
        return made
    try:
        made = pickled(now)
    except StaysHere:  # a filter of a class that cannot be sent
        made = pickled((*now[:3], [], *now[4:]))
    with _lock:
        _last = now, made
    return made


# ---------------------------------------------------------------------- there and back


def packed(call: Call) -> tuple[Sent, list[Any]]:
    """A call as bytes, and the objects outside that its value may hold."""
    f, names, alone = call.function, [], b""
    outside: list[Any] = []
    if call.pure:
        if type(f) is FunctionType and purity.kind_of(f) == purity.ANALYSED:
            known = _looked_at(f)
            if known.stays:
                raise StaysHere(known.stays)
            names, alone = known.names, known.alone
            if known.changing:
                _outside((value for _, _, value in known.verdict.reads), outside, set())
        _outside((*call.args, *call.keywords.values()), outside, {id(each) for each in outside})
    rest = pickled((None if alone else f, call.args, call.keywords, names, outside, call.pure))
    return Sent(_surroundings(), alone, rest), outside


def together(calls: list[Sent]) -> bytes:
    """Calls that one worker makes one after the other, as bytes."""
    return pickle.dumps([tuple(each) for each in calls], protocol=pickle.HIGHEST_PROTOCOL)


def apart(answer: bytes) -> tuple[float, list[bytes]]:
    """The answers to calls that went together, from the first on, and the seconds that they took."""
    return pickle.loads(answer)


class _Opener(pickle.Unpickler):
    """Opens an answer: objects outside are those of this process."""

    def __init__(self, file: Any, outside: list[Any]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid]


VALUE, ERROR, STAYS = range(3)
"""Kinds of answers."""


def opened(answer: bytes, outside: list[Any]) -> tuple[Any, BaseException | None]:
    """Value and error of a call; warnings that it gave are given here."""
    from linnet.futures.distant_errors import error_of

    kind, given, body = pickle.loads(answer)
    for each in given:
        _warn(*each)
    if kind == STAYS:
        raise StaysHere(body)
    try:
        value = _Opener(io.BytesIO(body), outside).load()
    except Exception as error:
        raise StaysHere(f"what came back cannot be opened: {type(error).__name__}: {error}") from error
    return (None, error_of(value)) if kind == ERROR else (value, None)


def _warn(message: Any, category: type[Warning], filename: str, line: int) -> None:
    warnings.warn_explicit(message, category, filename, line)
