"""What a worker does with a call that was sent to it."""

from __future__ import annotations

import decimal
import functools
import io
import os
import pickle
import sys
import threading
import time
import warnings
from collections import OrderedDict
from types import FunctionType
from typing import Any

import numpy as np

from linnet.futures import travelling
from linnet.futures.distant_errors import pickled_error, told
from linnet.futures.travelling import ERROR, STAYS, VALUE, Sent, StaysHere
from linnet.kernels.surroundings import in_a_worker

_LONG = 0.02
"""Seconds after which others could make the calls that were sent along."""
_KEPT = 256
"""Functions that are kept opened."""
_functions: OrderedDict[bytes, Any] = OrderedDict()
_lock = threading.Lock()
_warned = threading.local()
_shown = warnings.showwarning


def answers(body: bytes, *, alone: bool = False) -> bytes:
    """Make calls that were sent together, until they have taken long: the rest is not answered."""
    began, seconds = time.perf_counter(), 0.0
    made: list[bytes] = []
    for each in pickle.loads(body):
        if seconds > _LONG:
            break
        made.append(answer(Sent(*each), alone=alone))
        seconds = time.perf_counter() - began
    return pickle.dumps((seconds, made), protocol=pickle.HIGHEST_PROTOCOL)


def answer(sent: Sent, *, alone: bool = False) -> bytes:
    """Make a call; its value, its error, or why it must be made where it came from.

    `alone`: this process makes calls for one other only, so that all surroundings can be the caller's.
    """
    _warned.given = []
    try:
        pure, outside, value, error = _called(sent, alone)
    except StaysHere as why:
        _warned.given = None
        return pickle.dumps((STAYS, [], str(why)))
    try:
        if error is not None:
            kind, sent_back = ERROR, told(error, functools.partial(pickled_error, pickled=travelling.pickled))
            if pure and not sent_back.body:
                raise StaysHere(f"its error, {sent_back.kind}, cannot be pickled")
            body = pickle.dumps(sent_back)
        else:
            kind, body = VALUE, _packed(value, outside) if pure else travelling.pickled(value)
        return pickle.dumps((kind, _warned.given, body))
    except StaysHere as why:
        return pickle.dumps((STAYS, [], f"its value: {why}"))
    except Exception as why:
        return pickle.dumps((STAYS, [], f"its value: {type(why).__name__}: {why}"))
    finally:
        _warned.given = None
        del error


def _called(sent: Sent, alone: bool) -> tuple[bool, list[Any], Any, BaseException | None]:
    try:
        _apply(sent.surroundings, alone)
        f, args, keywords, names, outside, pure = pickle.loads(sent.rest)
        if sent.function:
            f = _function(sent.function)
        for module, name, value in names:
            setattr(sys.modules.get(module) or __import__(module, fromlist=["_"]), name, value)
    except Exception as error:
        raise StaysHere(f"it cannot be opened by a worker: {type(error).__name__}: {error}") from error
    try:
        with in_a_worker(), np.errstate():
            return pure, outside, f(*args, **keywords), None
    except BaseException as error:
        return pure, outside, None, error


def _function(body: bytes) -> Any:
    with _lock:
        found = _functions.get(body)
    if found is None:
        found = pickle.loads(body)
        with _lock:
            _functions[body] = found
            if len(_functions) > _KEPT:
                _functions.popitem(last=False)
    return found


def _apply(body: bytes, alone: bool) -> None:
    """Make the surroundings those of the caller; what other threads see too, only in a process of its own."""
    if body == getattr(_warned, "applied", None):
        return
    errors, numbers, traps, filters, depth, folder, path = pickle.loads(body)
    calculate_as(errors, numbers, traps)
    sys.path += [each for each in path if each not in sys.path]
    _warned.applied = body
    if not alone:
        return
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined] # else what was decided before counts on
    warnings.showwarning = _noted
    sys.setrecursionlimit(depth)
    if folder and os.path.isdir(folder):
        os.chdir(folder)


def calculate_as(errors: dict[str, Any], numbers: Any, traps: list[Any]) -> None:
    """Treat errors of NumPy and of decimal numbers, on this thread, as the caller does."""
    np.seterr(**errors)
    context = decimal.getcontext()
    context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp = numbers
    for kind in context.traps:
        context.traps[kind] = kind in traps


def _noted(
    message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    given = getattr(_warned, "given", None)
    if given is None:  # no call gave it, but something else that runs in this process
        _shown(message, category, filename, lineno, file, line)
    else:
        given.append((message, category, filename, lineno))


def _packed(value: Any, outside: list[Any]) -> bytes:
    """The value of a pure call: objects that the caller has are named, not copied."""
    file = io.BytesIO()
    _Packer(file, outside).dump(value)
    return file.getvalue()


def _base() -> Any:
    cloudpickle = travelling.cloudpickle_or_none()
    return pickle.Pickler if cloudpickle is None else cloudpickle.Pickler


class _Packer(_base()):  # type: ignore[misc]
    """Pickles the value of a pure call."""

    def __init__(self, file: Any, outside: list[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(each): place for place, each in enumerate(outside)}
        self._arrays = [each for each in outside if isinstance(each, np.ndarray)]

    def persistent_id(self, thing: Any) -> int | None:
        if not self._places:
            return None
        found = self._places.get(id(thing))
        if found is None and isinstance(thing, np.ndarray) and self._shares(thing):
            raise StaysHere("it is a view of an array that was given")
        return found

    def _shares(self, array: Any) -> bool:
        return any(np.may_share_memory(array, each) for each in self._arrays)

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, FunctionType) and not travelling.is_importable(thing):
            raise StaysHere(f"it holds a function, {thing.__qualname__}, which would be a copy")
        above = getattr(super(), "reducer_override", None)
        return NotImplemented if above is None else above(thing)
