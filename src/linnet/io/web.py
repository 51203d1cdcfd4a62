"""Files of the web where only some places may be asked: a server may send its readers on to another one.

The library that reads objects follows every redirection, and cannot be told not to. So where somebody says
which places may be used (`only`), files at http:// and https:// are read here, a connection for each request,
and each redirection is looked at before it is followed.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from linnet.errors import FileDeniedError, FileError
from linnet.io.clients import keywords
from linnet.io.places import Place

Check = Callable[[str], None]
"""Raises an error for a URL that may not be used."""

_check: ContextVar[Check | None] = ContextVar("linnet_web_check", default=None)
_ANSWER = 60.0
"""Seconds that a server gets for an answer;"""
_PATIENCE, _PAUSE = 20.0, 0.1
"""for how long one that fails is asked again, and the first pause."""
_GAP = 1 << 20
"""Bytes that are read along rather than asked around."""


@contextmanager
def only(check: Check | None) -> Generator[None]:
    """What is read inside from the web comes from places that `check` lets pass; None: from anywhere."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def is_guarded(place: Place) -> bool:
    """Whether a place is to be read with the functions below."""
    return place.scheme.lower() in ("http", "https") and _check.get() is not None


def size_and_version(place: Place) -> tuple[int, str]:
    """Bytes of a file, and a text that changes when it does: the same that the library tells."""
    with _answer(place, "HEAD") as answer:
        told, changed = answer.headers["ETag"], answer.headers["Last-Modified"]
        when = parsedate_to_datetime(changed).isoformat() if changed else "1970-01-01T00:00:00+00:00"
        return int(answer.headers["Content-Length"] or 0), told or when


def read(place: Place, start: int = 0, stop: int | None = None) -> bytes:
    """The bytes of a file, or those in a range."""
    last = "" if stop is None else stop - 1
    ranged = {} if start == 0 and stop is None else {"Range": f"bytes={start}-{last}"}
    with _answer(place, "GET", ranged) as answer:
        all_of_it = bool(ranged) and answer.status != 206  # the server knows no ranges
        try:
            data: bytes = answer.read(stop) if all_of_it and stop is not None else answer.read()
        except HTTPException as error:
            raise FileError(f"{place} ended early: {error}") from None
        return data[start:] if all_of_it else data


def read_ranges(place: Place, starts: Sequence[int], size: int) -> list[bytes]:
    """Several ranges of the same size, in the order they are given, which is that of the file."""
    blocks: list[bytes] = []
    first = 0
    while first < len(starts):
        last = first
        while last + 1 < len(starts) and starts[last + 1] - starts[last] - size <= _GAP:
            last += 1
        block = read(place, starts[first], starts[last] + size)
        blocks += [block[at - starts[first] :][:size] for at in starts[first : last + 1]]
        first = last + 1
    return blocks


def stream(place: Place, block: int) -> Iterator[bytes]:
    """All bytes, some at a time."""
    with _answer(place, "GET") as answer:
        while piece := answer.read(block):
            yield piece


# ---- one request


class _Redirections(HTTPRedirectHandler):
    """Follows those that may be followed."""

    def __init__(self, place: Place, check: Check) -> None:
        self._place, self._may = place, check

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        try:
            self._may(newurl)
        except Exception as error:
            raise FileDeniedError(f"{self._place} sends its readers on to another place: {error}") from None
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None:
            request.method = req.get_method()
        return request


def _opener(place: Place) -> OpenerDirector:
    check = _check.get()
    assert check is not None
    client = keywords(place.scheme, {**dict(place.options), **place.secrets}, {}, {})["client_options"]
    trusted = client.get("root_certificate")
    context = ssl.create_default_context()
    if trusted is not None:
        context.load_verify_locations(cadata=trusted.decode() if isinstance(trusted, bytes) else trusted)
    if client.get("allow_invalid_certificates"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return build_opener(_Redirections(place, check), HTTPSHandler(context=context))


def _answer(place: Place, method: str, headers: dict[str, str] | None = None) -> Any:
    """What the server answers; one that fails is asked again for a while."""
    opener = _opener(place)
    end, pause = time.monotonic() + _PATIENCE, _PAUSE
    while True:
        all_headers = {"Accept-Encoding": "identity", **(headers or {})}
        request = Request(place.url, headers=all_headers, method=method)
        try:
            return opener.open(request, timeout=_ANSWER)
        except HTTPError as error:
            with error:
                if error.code == 404:
                    raise FileNotFoundError(place.url) from None
                if error.code in (401, 403):
                    raise FileDeniedError(f"{place} may not be read: the server says {error.code}") from None
                if error.code < 500 or time.monotonic() + pause > end:
                    raise FileError(f"{place} cannot be read: the server says {error.code}") from None
        except ValueError as error:  # it sends its readers on to something that is no URL
            raise FileError(f"{place} cannot be read: {error}") from None
        except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
            if time.monotonic() + pause > end:
                why = getattr(error, "reason", error)
                raise FileError(f"{place} cannot be read: there is no answer from it ({why})") from None
        time.sleep(pause)
        pause *= 2
