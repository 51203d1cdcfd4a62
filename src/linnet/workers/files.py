"""Which files the kernels of a job may read and write: only what the worker's operator named.

A job is data that anybody who may write to its store can change. Kernels of files do what their attributes
say, with the rights of the worker. So they are off, unless somebody who starts workers names roots: folders
and files, and URLs, under which everything is allowed. All places stand in the program as constants, so they
are looked at once, before the first task. Where a server sends its readers on is looked at when it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from linnet.errors import InputError, JobError, UnknownKernelError
from linnet.io.places import path_of
from linnet.kernels import get as get_kernel
from linnet.kernels.arrays import files as file_kernels
from linnet.programs import TileProgram
from linnet.programs.grammar import Attribute
from linnet.programs.statements import Statement

_PLACES = ("url", "urls")
"""Attributes of kernels of files that say where those are."""


def places(program: TileProgram) -> list[str]:
    """All places that the kernels of files of a program use, each once: paths and URLs.

    Servers that their options name, in whose place others could be put, are among them.
    """
    return list(dict.fromkeys(place for each in program.statements for place in _places(each)))


def _places(statement: Statement) -> Iterator[str]:
    if not _is_of_files(statement.kernel):
        return
    given = dict(statement.run.keywords)
    named = [given[name] for name in _PLACES if name in given]
    if not named:
        raise JobError(f"kernel {statement.kernel!r} does not say which file it is for, so no worker runs it")
    for each in named:
        texts = list(_texts(each.value)) if isinstance(each, Attribute) else []
        if not texts:
            raise JobError(f"kernel {statement.kernel!r} names no file as a constant, so no worker runs it")
        yield from texts
    options = given.get("options")
    if isinstance(options, Attribute):
        yield from (text for text in _texts(options.value) if "://" in text)


def _is_of_files(kernel: str) -> bool:
    try:
        function: Any = get_kernel(kernel).function
    except UnknownKernelError:  # whoever wants to run it is told so
        return False
    return function.__module__ == file_kernels.__name__


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for each in cast("Sequence[Any]", value):
            yield from _texts(each)


def check_files(program: TileProgram, allowed: Sequence[str]) -> None:
    """Refuse a job that uses other files than those under the roots that are allowed."""
    check = checking(allowed)
    for place in places(program):
        check(place)


def checking(allowed: Sequence[str]) -> Callable[[str], None]:
    """A function that refuses every place that is under none of the roots that are allowed."""
    roots = [_resolved(root) for root in allowed]

    def check(place: str) -> None:
        found = _resolved(place)
        if not any(found == root or found.startswith(root.rstrip("/") + "/") for root in roots):
            raise JobError(
                f"the job wants its workers to use {place}, which is not allowed; if you trust it, start "
                "them with --allow-files ROOT, or attach with files=[ROOT]: a folder or file, or the "
                f"beginning of a URL, that this is under (allowed: {', '.join(allowed) or 'nothing'})"
            )

    return check


def _resolved(place: str) -> str:
    """A path without links, or a URL without steps upwards, so that what is under a root begins with it.

    >>> _resolved("/usr/../etc"), _resolved("https://Host/a//b")
    ('/etc', 'https://host/a/b')
    """
    parts = urlsplit(place) if "://" in place else None
    if parts is None or parts.scheme.lower() == "file":
        return os.path.realpath(place if parts is None else path_of(place))
    if not parts.hostname or "@" in parts.netloc:
        raise InputError(
            f"{place} names no host or bucket, or a login; give URLs such as https://host/folder"
        )
    steps = [step for step in unquote(parts.path).split("/") if step not in ("", ".")]
    if ".." in steps:
        raise JobError(f"{place} has steps upwards, and is not allowed")
    return "/".join([f"{parts.scheme.lower()}://{parts.netloc.lower()}", *steps])
