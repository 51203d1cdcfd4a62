"""Calls as data: a function by its import name, and values written down. Nothing that travels can run.

The function must stand at the top of a module that workers have and are allowed to import, as modules of
kernels are. A pure call means the same there as here only if the function's text, and everything it
reads by name, are the same: a digest of both goes along, and a worker that finds another one makes no call.
"""

from __future__ import annotations

import builtins
import decimal
import hashlib
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import msgpack
import numpy as np

from linnet.errors import UnknownKernelError
from linnet.futures import pure_names, purity
from linnet.futures.answering import calculate_as
from linnet.futures.data import Reader, Writer
from linnet.futures.distant_errors import Told, error_of, made_of, text_of, told
from linnet.futures.travelling import ERROR, STAYS, VALUE, Call, StaysHere, calculating
from linnet.kernels import kernel
from linnet.kernels.arrays.user_functions import found_by_name, import_name


class Letter(NamedTuple):
    """A call as data."""

    module: str
    """Where its function is; empty: it is one of Python's own."""
    body: bytes
    """Name, arguments, keywords, digest, how numbers are treated, whether the call is pure."""


# ---------------------------------------------------------------------- what a function reads


def _code(writer: Writer, code: CodeType) -> Any:
    consts = [
        _code(writer, each) if isinstance(each, CodeType) else writer.tree(each) for each in code.co_consts
    ]
    return [code.co_code, list(code.co_names), list(code.co_varnames), consts]


def _described(writer: Writer, value: Any) -> Any:
    """A value that a function reads, in a form that is the same in all processes where it is the same."""
    value = value.function if isinstance(value, purity.Parallel) else value
    if isinstance(value, FunctionType) and id(value) not in pure_names.NUMPY:
        defaults = writer.tree((value.__defaults__, value.__kwdefaults__))
        return ["function", value.__module__, value.__qualname__, _code(writer, value.__code__), defaults]
    if isinstance(value, ModuleType):
        return ["module", value.__name__]
    if value is purity.MISSING:
        return ["missing"]
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return ["name", str(getattr(value, "__module__", "")), value.__qualname__]
    if isinstance(value, np.ufunc):
        return ["ufunc", value.__name__]
    return writer.tree(value)


def _reads(f: Any, pure: bool) -> tuple[bytes, list[Any]]:
    """The digest of what a function is and reads, and the objects among it that can be changed."""
    writer = Writer(ordered=True)
    if not isinstance(f, FunctionType):
        return b"", []
    named: dict[tuple[str, str], Any] = {}
    if pure and purity.kind_of(f) == purity.ANALYSED:
        for place, name, value in purity.verdict(f).reads:
            home = place.get("__name__", "") if isinstance(place, dict) else ""
            named[str(home), name] = value
    found = [_described(writer, f)]
    found += [[*name, _described(writer, named[name])] for name in sorted(named)]
    return hashlib.sha256(msgpack.packb(found)).digest(), writer.objects


# ---------------------------------------------------------------------- there


def packed(call: Call) -> tuple[Letter, list[Any]]:
    """A call as data, and the objects of this process that its value may hold."""
    f = call.function
    name = import_name(f)
    if name is None:
        raise StaysHere(
            "it has no name that a worker could import it by: functions must stand at the top of a module"
        )
    module = name.partition(":")[0]
    if module == "builtins" and id(f) not in pure_names.BUILTINS:
        raise StaysHere("this function of Python's own may run what it is given")
    digest, reads = _reads(f, call.pure)
    writer = Writer()
    errors, numbers, traps = calculating()
    treated = (errors, numbers, [kind.__name__ for kind in traps])
    body = writer.bytes((call.args, call.keywords, (name, digest, treated, call.pure)))
    known = {id(each) for each in reads}
    if any(id(each) in known for each in writer.objects):
        raise StaysHere("an argument is an object that the function also reads by name")
    return Letter("" if module == "builtins" else module, body), [*reads, *writer.objects]


@kernel("call_by_name", dtype=lambda letter: np.dtype(np.uint8), deterministic=False)
def call_by_name(letter: Any) -> Any:
    """Make the call that a tile of bytes tells of; what came of it as bytes."""
    return np.frombuffer(bytearray(answer(letter.tobytes())), np.uint8)


def answer(body: bytes) -> bytes:
    """Make a call; its value, its error, or why it must be made where it came from."""
    try:
        return _answered(body)
    except StaysHere as why:
        return msgpack.packb([STAYS, str(why)])


def _answered(body: bytes) -> bytes:
    reader = Reader()
    try:
        args, keywords, (name, digest, (errors, numbers, traps), pure) = reader.value(body)
        f = _named(name)
    except UnknownKernelError as error:
        raise StaysHere(str(error)) from None
    except Exception as error:
        raise StaysHere(f"a worker cannot open it: {type(error).__name__}: {error}") from error
    ours, reads = _reads(f, pure)
    if ours != digest:
        raise StaysHere("a worker has another version of it, or of what it reads by name")
    with np.errstate(), decimal.localcontext():
        calculate_as(errors, numbers, [getattr(decimal, each) for each in traps])
        try:
            value = f(*args, **keywords)
        except BaseException as error:
            sent = told(error, _error_body)
            if pure and not sent.body:
                raise StaysHere(f"its error, {sent.kind}, does not travel as data") from None
            return msgpack.packb([ERROR, _plain(sent)])
    writer = Writer([*reads, *reader.objects] if pure else None)
    try:
        return msgpack.packb([VALUE, writer.tree(value)])
    except StaysHere as why:
        raise StaysHere(f"its value: {why}") from None


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if module == "builtins":
        found = vars(builtins).get(attribute)
        if id(found) not in pure_names.BUILTINS:
            raise StaysHere(f"{name} is not called for others")
        return found
    return found_by_name(name)


# ---------------------------------------------------------------------- and back


def _error_body(error: BaseException) -> bytes:
    kind = type(error)
    if issubclass(kind, BaseExceptionGroup):
        return b""
    try:
        body = Writer().bytes((kind.__module__, kind.__qualname__, error.args, dict(error.__dict__)))
        again = _error_of(body)
    except Exception:
        return b""
    return body if type(again) is kind and text_of(again) == text_of(error) else b""


def _error_of(body: bytes) -> BaseException:
    """An exception of a class that this process knows; none is imported for it."""
    module, name, args, inside = Reader().value(body)
    kind: Any = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise StaysHere(f"its error, {module}.{name}, is not known here")
    return made_of(kind, args, inside)


def _plain(sent: Told | None) -> Any:
    if sent is None:
        return None
    return [*sent[:5], _plain(sent.cause), _plain(sent.context), sent.hidden]


def _told(found: Any) -> Told | None:
    if found is None:
        return None
    body, kind, text, frames, notes, cause, context, hidden = found
    return Told(
        body, kind, text, [(f, n, i) for f, n, i in frames], notes, _told(cause), _told(context), hidden
    )


def opened(answered: bytes, outside: list[Any]) -> tuple[Any, BaseException | None]:
    """Value and error of a call."""
    kind, found = msgpack.unpackb(answered, strict_map_key=False)
    if kind == STAYS:
        raise StaysHere(found)
    if kind == VALUE:
        return Reader(outside).of(found), None
    sent = _told(found)
    assert sent is not None
    return None, error_of(sent, _error_of)
