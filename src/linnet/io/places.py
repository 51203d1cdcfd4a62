"""Where data lies: a path, or the URL of an object; and what may be said of it aloud.

A place travels with every task that reads or writes there, inside programs that are printed and
sent: so it holds no secret. Keys and passwords given as `storage_options` stay in the table `_kept`
of this process. Workers elsewhere find their own, in the environment, as every tool of the cloud's
does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from linnet.errors import InputError

SCHEMES = ("s3", "gs", "az", "http", "https", "memory")
"""Of URLs we know, besides paths."""

_SPOKEN = frozenset({"endpoint", "region", "skip_signature", "virtual_hosted_style_request", "allow_http"})
"""Options that are no secrets, and travel."""

_HERE = ("", "localhost")
"""Hosts of `file://` URLs that mean this machine."""

Options = tuple[tuple[str, str], ...]

_kept: dict[str, dict[str, Any]] = {}


def path_of(url: str) -> str:
    """The path that a `file://` URL names on this machine; InputError if it names another machine.

    >>> path_of("file:///data/a%20b"), path_of("file://localhost/data")
    ('/data/a b', '/data')
    >>> path_of("file://server/data")
    Traceback (most recent call last):
    linnet.errors.InputError: file://server/data is on the machine 'server': give file:///path, which is ...
    """
    host, slash, path = url.partition("://")[2].partition("/")
    host = host.rpartition("@")[2]
    if host.lower() not in _HERE:
        raise InputError(
            f"file://{host}{slash}{path} is on the machine {host!r}: give file:///path, which "
            "is on this one, or the path under which this one has what is there"
        )
    if "?" in path or "#" in path:
        raise InputError(f"file://{slash}{path} has a query, which no file has: write ? as %3F and # as %23")
    return unquote(slash + path)


@dataclass(frozen=True, slots=True)
class Place:
    """A file, a folder, an object, or what objects share the beginning of their keys.

    >>> place = Place.of("s3://bucket/folder/x.zarr", {"region": "eu-west-1", "secret_access_key": "k"})
    >>> place
    Place(url='s3://bucket/folder/x.zarr', options=(('region', 'eu-west-1'),))
    >>> str(place / "c/0"), place.name
    ('s3://bucket/folder/x.zarr/c/0', 'x.zarr')
    """

    url: str
    """An absolute path, or a URL."""
    options: Options = ()
    """What reaching it takes, as far as it is no secret."""

    @classmethod
    def of(cls, given: Any, storage_options: Mapping[str, Any] | None = None) -> Place:
        """The place that a user names."""
        if isinstance(given, Place):
            return given
        if not isinstance(given, str | os.PathLike):
            raise InputError(
                f"a file is named by a path or a URL, not by {type(given).__name__}; "
                'give text such as "data/x.zarr" or "s3://bucket/x.zarr"'
            )
        text = os.fspath(given)
        if not isinstance(text, str) or not text:
            raise InputError(f"{text!r} is no name of a file; give a path or a URL as text")
        scheme = text.partition("://")[0].lower() if "://" in text else ""
        if scheme in ("", "file"):
            if storage_options:
                raise InputError(f"storage_options are for URLs; {text} is a path")
            path = path_of(text) if scheme else os.path.expanduser(text)
            return cls(os.path.abspath(path))
        if scheme not in SCHEMES:
            raise InputError(
                f"URLs with {scheme}:// are not known; use a path or {', '.join(f'{s}://' for s in SCHEMES)}"
            )
        return cls._remote(text, dict(storage_options or {}))

    @classmethod
    def _remote(cls, text: str, given: dict[str, Any]) -> Place:
        parts = urlsplit(text)
        if parts.password or (parts.username and parts.scheme in ("http", "https")):
            raise InputError(
                f"{parts.scheme}://…@{parts.hostname}{parts.path} holds a user's name or password; "
                "give them as storage_options or in the environment"
            )
        spoken = {name: given.pop(name) for name in list(given) if name in _SPOKEN}
        options = tuple(sorted((name, str(value)) for name, value in spoken.items()))
        url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        if parts.query or parts.fragment:
            # Signed URLs carry their signature in the query: it would travel, and show in messages.
            raise InputError(f"{url}?… has a query, which is not supported; give the URL of the object alone")
        place = cls(url, options)
        if given:
            _kept[place._identity] = given
        return place

    @property
    def is_local(self) -> bool:
        """Whether it is a path on this machine."""
        return "://" not in self.url

    @property
    def scheme(self) -> str:
        """How it is reached; "" for a path."""
        return "" if self.is_local else self.url.partition("://")[0]

    @property
    def root(self) -> str:
        """The bucket or the host: what a connection is made to."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def key(self) -> str:
        """The name of the object in its bucket, or the path on its host."""
        return urlsplit(self.url).path.lstrip("/")

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Place:
        """The folder it is in."""
        return Place(self.url.rpartition("/")[0], self.options)

    @property
    def secrets(self) -> dict[str, Any]:
        """Options that this process was given and keeps to itself."""
        return dict(_kept.get(self._identity, {}))

    @property
    def _identity(self) -> str:
        return repr((self.root, self.options))

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.url}/{name}" if name else self.url, self.options)

    def beside(self, suffix: str) -> Place:
        """The place with a suffix to its name."""
        return Place(self.url + suffix, self.options)

    def __str__(self) -> str:
        return self.url
