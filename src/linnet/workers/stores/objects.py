"""Stores in object stores: S3 and what speaks like it, Google's, Azure's, and plain HTTP, through obstore.

    s3://bucket/prefix?endpoint=https://host:port&region=eu-central-1

Credentials come from the environment, as each service's own tools read them (AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, …), or as options. Options that may be told stay in `url`, all others are hidden;
errors are told in our own words, since what services answer repeats keys and addresses.

Every request can be repeated without harm, so whatever may pass (answers 5xx and 429, connections that are
refused or break, time-outs) is tried again, for `patience` seconds in all.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from linnet.errors import InputError, MissingTileError, StoreError, missing_extra
from linnet.io.clients import keywords
from linnet.tiles.codec import Buffer
from linnet.workers.stores.keys import checked, checked_prefix

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
PATIENCE = 60.0
"""For how many seconds a request is tried again,"""
FIRST_PATIENCE = 10.0
"""and for how many as long as nothing was ever answered: then the address may be wrong."""

# What may be seen. Anything else could be a secret.
_TOLD = {
    "endpoint", "region", "patience", "virtual_hosted_style_request", "skip_signature", "account_name",
    "allow_http", "allow_invalid_certificates", "connect_timeout", "read_timeout", "timeout",
    "root_certificate",
}  # fmt: skip
_CLIENT_DEFAULTS = {"connect_timeout": "5s", "timeout": "60s"}
_PAGE = 1000

_Answer = TypeVar("_Answer")


class ObjectStore:
    """Tiles as objects of one bucket, or below one prefix of it."""

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        parts = urlsplit(url)
        given = {**dict(parse_qsl(parts.query)), **(options or {})}
        self.url: str = _told(url, given)
        self.patience: float = _seconds(given.pop("patience", PATIENCE))
        from_url, self._error = _obstore()
        self._answered = False
        # It is not to try again, since we do.
        how = keywords(parts.scheme, given, _CLIENT_DEFAULTS, {"max_retries": 0})
        try:
            self._at = from_url(urlunsplit(parts._replace(query="", fragment="")), **how)
        except (self._error, ValueError, TypeError) as error:
            raise StoreError(f"{self.url} cannot be opened: {_first_line(error)}") from None

    def put(self, key: str, parts: Sequence[Buffer]) -> None:
        checked(key)
        body = list(parts) or b""
        self._tried(f"{key} was not written", lambda: self._at.put(key, body, use_multipart=False))

    def get(self, key: str) -> memoryview:
        checked(key)
        try:
            return self._tried(f"{key} cannot be read", lambda: memoryview(self._at.get(key).bytes()))
        except FileNotFoundError:
            raise MissingTileError(
                f"{key} is not in {self.url}; resume the job to compute it again"
            ) from None

    def size(self, key: str) -> int | None:
        checked(key)
        try:
            return self._tried(f"{key} cannot be looked up", lambda: self._at.head(key)["size"])
        except FileNotFoundError:
            return None

    def delete(self, keys: Iterable[str]) -> None:
        asked = [checked(key) for key in keys]
        if not asked:
            return
        try:
            self._tried(f"{asked[0]} and others cannot be deleted", lambda: self._at.delete(asked))
        except FileNotFoundError:  # some services stop at the first one that is missing
            for key in asked:
                self._delete_one(key)

    def _delete_one(self, key: str) -> None:
        try:
            self._tried(f"{key} cannot be deleted", lambda: self._at.delete(key))
        except FileNotFoundError:
            return

    def list(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        folder = checked_prefix(prefix).rpartition("/")[0] or None
        last: str | None = None
        while True:
            page = self._tried(f"{prefix!r} cannot be listed", partial(self._page, folder, last))
            for found in page:
                if found["path"].startswith(prefix):
                    yield found["path"], found["size"]
            if len(page) < _PAGE:
                return
            last = page[-1]["path"]

    def _page(self, folder: str | None, after: str | None) -> Sequence[Mapping[str, Any]]:
        """The next objects, from where the last page ended: a page that fails can be asked for again."""
        pages: Iterator[Sequence[Mapping[str, Any]]] = iter(
            self._at.list(folder, offset=after, chunk_size=_PAGE)
        )
        return next(pages, ())

    def close(self) -> None:
        """Nothing to let go: connections end when they have been idle."""

    def __repr__(self) -> str:
        return f"ObjectStore({self.url!r})"

    def _tried(self, what: str, act: Callable[[], _Answer]) -> _Answer:
        """What `act` answers, tried again while its errors may pass."""
        begun, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                answer = act()
            except (self._error, OSError) as error:
                trouble = judged(error)
                if trouble is None:
                    self._answered = True
                    raise FileNotFoundError from None
                waited = time.monotonic() - begun
                wait = min(2.0, 0.05 * 2 ** min(tries, 8)) * random.uniform(0.5, 1)
                allowed = self.patience if self._answered else min(self.patience, FIRST_PATIENCE)
                if not trouble.passing or waited + wait > allowed:
                    often = f" ({tries} times in {waited:.0f} s)" if trouble.passing else ""
                    raise StoreError(f"{self.url}: {what}: {trouble.why}{often}; {trouble.advice}") from None
                time.sleep(wait)
            else:
                self._answered = True
                return answer


# ---- options -----------------------------------------------------------------------


def _obstore() -> tuple[Any, type[Exception]]:
    """What opens stores, and the base of the errors they raise."""
    try:
        return import_module("obstore.store").from_url, import_module("obstore.exceptions").BaseError
    except ImportError:
        raise missing_extra("an object store", "obstore", "s3") from None


def _told(url: str, given: Mapping[str, Any]) -> str:
    """The URL with those options that are no secrets."""
    told = {name: _bare(str(value)) for name, value in sorted(given.items()) if name in _TOLD}
    told = {name: value for name, value in told.items() if "-----BEGIN" not in value}
    return urlunsplit(urlsplit(_bare(url))._replace(query=urlencode(told), fragment=""))


def _bare(text: str) -> str:
    """An address without user and password."""
    return re.sub(r"(https?:)//[^/@]*@", r"\1//", text)


def _seconds(given: Any) -> float:
    try:
        return float(given)
    except ValueError:
        raise InputError(f"patience={given!r}: give seconds as a number") from None


# ---- errors ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a service's error means."""

    why: str
    advice: str
    passing: bool = False
    """Whether it may be gone the next time."""


_KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or what your service reads)"
# The first that is found in what obstore says decides.
_TROUBLES = [
    (r"NoSuchBucket", Trouble("there is no such bucket", "make it, or correct the name")),
    (r"169\.254\.169\.254", Trouble("no credentials were found", _KEYS)),
    (r"InvalidAccessKeyId", Trouble("access denied, the key is unknown", _KEYS)),
    (r"SignatureDoesNotMatch", Trouble("access denied, the secret is wrong", _KEYS)),
    (
        r"ExpiredToken|TokenRefreshRequired",
        Trouble("access denied, the credentials have expired", "renew them"),
    ),
    (
        r"BadScheme",
        Trouble("plain http is not allowed", "use https, or say allow_http=true (AWS_ALLOW_HTTP)"),
    ),
    (
        r"(?i)certificate|UnknownIssuer|InvalidContentType",
        Trouble(
            "no TLS connection", "see whether the server has TLS; name its authority in root_certificate="
        ),
    ),
    (r"(?i)dns error", Trouble("the host is unknown", "correct the endpoint", passing=True)),
    (
        r"kind: Timeout",
        Trouble("no answer in time", "see whether the service is up, or raise timeout=", passing=True),
    ),
    (
        r"kind: Connect",
        Trouble("not reachable", "see whether the service is up at this endpoint", passing=True),
    ),
    (
        r"status: (500|502|503|504|429)|SlowDown",
        Trouble("the service fails", "see its state, then resume", passing=True),
    ),
    (
        r"status: (405|501)",
        Trouble("the service takes no such request", "use a store that can be written to"),
    ),
    (
        r"status: (401|403)",
        Trouble("access denied", "let the user read, write, list and delete there, or " + _KEYS),
    ),
    (
        r"kind: (Request|Interrupted|Decode|Body)",
        Trouble("the connection broke", "resume the job", passing=True),
    ),
]


def judged(error: Exception) -> Trouble | None:
    """What an error of obstore means; None: there is nothing under that key."""
    text = str(error)
    for pattern, trouble in _TROUBLES:
        found = re.search(pattern, text)
        if found:
            status = re.search(r"status: (\d{3})", text)
            why = f"{trouble.why} (status {status[1]})" if status else trouble.why
            return Trouble(why, trouble.advice, trouble.passing)
    if isinstance(error, FileNotFoundError):
        return None
    return Trouble(_first_line(error), "see the documentation of the service")


def _first_line(error: Exception) -> str:
    """The beginning of an error, without addresses."""
    return re.sub(r"\w+://\S+", "…", str(error).strip().partition("\n")[0])[:200]
