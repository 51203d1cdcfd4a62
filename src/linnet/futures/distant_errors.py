"""Errors that were raised in another process, as they were raised: type, causes, notes and lines.

Frames cannot be sent. A traceback is made of frames that stand at the same lines of the same files, so that
it reads, in the terminal and in `traceback`, as that of an error raised here.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, NamedTuple

from linnet.errors import JobError
from linnet.futures.tracebacks import without_ours

_DEEPEST = 200
"""Frames that are sent; of an endless recursion there are a thousand."""


class Told(NamedTuple):
    """An error as it travels."""

    body: bytes
    """The exception, pickled; empty: it cannot be."""
    kind: str
    text: str
    frames: list[tuple[str, str, int]]
    """File, function and line, the outermost first."""
    notes: list[str]
    cause: Told | None
    context: Told | None
    hidden: bool
    """Whether the context is not shown."""


def told(
    error: BaseException, body: Callable[[BaseException], bytes], seen: frozenset[int] = frozenset()
) -> Told:
    """An error as it is sent; `body` gives the bytes of the exception, none if there are none."""
    seen = seen | {id(error)}

    def further(other: BaseException | None) -> Told | None:
        return None if other is None or id(other) in seen else told(other, body, seen)

    kind = type(error)
    return Told(
        body(error),
        f"{kind.__module__}.{kind.__qualname__}",
        text_of(error),
        _frames(without_ours(error.__traceback__)),
        list(getattr(error, "__notes__", ())),
        further(error.__cause__),
        further(error.__context__),
        error.__suppress_context__,
    )


def text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:
        return f"<its text raises {type(other).__name__}>"


def pickled_error(error: BaseException, pickled: Any) -> bytes:
    """The bytes of an exception; `pickled` gives those of something."""
    for thing in (error, (made_of, (type(error), error.args, dict(error.__dict__)))):
        try:
            body = pickled(thing)
            again = unpickled_error(body)
        except Exception:
            continue
        if type(again) is type(error) and text_of(again) == text_of(error):
            return body
    return b""


def unpickled_error(body: bytes) -> Any:
    """The exception of such bytes."""
    again = pickle.loads(body)
    return again[0](*again[1]) if type(again) is tuple else again


def made_of(kind: type[BaseException], args: tuple[Any, ...], inside: dict[str, Any]) -> BaseException:
    """An exception whose `__init__` takes other arguments than it keeps."""
    made = kind.__new__(kind, *args)
    made.args = args
    made.__dict__.update(inside)
    return made


def _frames(trace: TracebackType | None) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append((code.co_filename, code.co_qualname, trace.tb_lineno or 0))
        trace = trace.tb_next
    return found if len(found) <= _DEEPEST else found[: _DEEPEST // 2] + found[-_DEEPEST // 2 :]


def error_of(sent: Told, opened: Callable[[bytes], Any] = unpickled_error) -> BaseException:
    """The error, with its causes and lines."""
    try:
        error = opened(sent.body) if sent.body else None
    except Exception:
        error = None
    if not isinstance(error, BaseException):
        error = JobError(f"{sent.kind}: {sent.text} (an error that cannot be sent between processes)")
    for note in sent.notes:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    error.__cause__ = None if sent.cause is None else error_of(sent.cause, opened)
    error.__context__ = None if sent.context is None else error_of(sent.context, opened)
    error.__suppress_context__ = sent.hidden
    return error.with_traceback(_trace(sent.frames))


def _trace(frames: list[tuple[str, str, int]]) -> TracebackType | None:
    made: TracebackType | None = None
    for file, name, line in reversed(frames):
        frame = _frame(file, name)
        if frame is not None:
            made = TracebackType(made, frame, -1, line)  # -1: the line counts
    return made


def _frame(file: str, name: str) -> Any:
    """A frame of a function of this name in this file."""
    code: CodeType = _stands.__code__.replace(
        co_filename=file, co_name=name.rpartition(".")[2], co_qualname=name, co_firstlineno=1
    )
    return eval(code, {"__name__": "", "__file__": file, "frame": sys._getframe})


def _stands() -> Any:
    return frame()  # type: ignore[name-defined] # noqa: F821
