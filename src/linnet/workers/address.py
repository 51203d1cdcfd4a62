"""Where a job is: its store, its ledger and its queue, as one line of text without secrets.

    /data/jobs#job=3f2a…                                     all in one directory
    s3://bucket/jobs#job=3f2a…&ledger=redis://host:6379/0    tiles in S3, the rest in Redis

Passwords of servers belong into the environment (`LINNET_LEDGER_PASSWORD`, `LINNET_QUEUE_PASSWORD`) or into
the URLs given to `submit` and `attach`, keys of object stores into the environment (`AWS_SECRET_ACCESS_KEY`,
…); they are never part of an address that is shown.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from linnet.errors import AddressError

_SERVERS = ("redis", "rediss", "valkey", "valkeys")
_JOB = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Options of URLs that may be seen. Anything else could be a secret.
_TOLD = {
    "account_name", "allow_http", "allow_invalid_certificates", "connect_timeout", "db", "endpoint",
    "patience", "read_timeout", "region", "root_certificate", "skip_signature", "ssl_ca_certs",
    "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "timeout", "virtual_hosted_style_request",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a job.

    >>> Address.parse("/data/jobs#job=3f2a")
    Address('/data/jobs#job=3f2a')
    >>> Address("s3://b/jobs", "7", ledger="redis://:secret@host:6379/0").text
    's3://b/jobs#job=7&ledger=redis://host:6379/0'
    """

    store: str
    """URL or directory of the store."""
    job: str
    """Name of the job, which no other job of that store has."""
    ledger: str | None = None
    """URL of the ledger; None: in the store's directory."""
    queue: str | None = None
    """URL of the queue; None: where the ledger is."""

    def __post_init__(self) -> None:
        if not _JOB.fullmatch(self.job):
            raise AddressError(
                f"{self.job!r} is no name of a job: use letters, digits, '-' and '_', at most 64"
            )
        for what, url in (("store", self.store), ("ledger", self.ledger), ("queue", self.queue)):
            if url is not None:
                _check(what, url)
        if "#" in self.store:
            raise AddressError(
                "the store has a # in its name, and behind that an address names the job: give it as a URL, "
                "file:///folder, with %23 for the #"
            )
        hidden = [name for name, _ in _options(self.store) if name not in _TOLD]
        if hidden:
            raise AddressError(
                f"the URL of the store has {', '.join(hidden)}, which workers would need but an address must "
                "not show; put it into the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )

    @property
    def text(self) -> str:
        """As it may be shown, and as `attach` and `linnet worker` take it."""
        parts = [f"job={self.job}"]
        for name, url in (("ledger", self.ledger), ("queue", self.queue)):
            if url is not None:
                parts.append(f"{name}={quote(without_secret(url), safe=':/@')}")
        return f"{without_secret(self.store)}#{'&'.join(parts)}"

    @property
    def secrets(self) -> dict[str, str]:
        """What the text leaves out, as variables for the environment of workers."""
        found: dict[str, str] = {}
        for name, url in (("LEDGER", self.ledger), ("QUEUE", self.queue)):
            if url is None:
                continue
            given, options = urlsplit(url), dict(_options(url))
            password = unquote(given.password or "") or options.get("password")
            user = unquote(given.username or "") or options.get("username")
            if password:
                found[f"LINNET_{name}_PASSWORD"] = password
            if user:
                found[f"LINNET_{name}_USER"] = user
        return found

    @classmethod
    def parse(cls, text: str | Address) -> Address:
        """The address in a text; AddressError if it is none."""
        if isinstance(text, Address):
            return text
        if not isinstance(cast("object", text), str):
            raise AddressError(f"{text!r} is no address of a job: give the text that job.address tells")
        store, mark, query = text.partition("#")
        given = parse_qs(query, keep_blank_values=True)
        unknown = sorted(set(given) - {"job", "ledger", "queue"})
        if not mark or not store or "job" not in given or unknown:
            seen = "&".join(f"{name}=…" for name in given)
            raise AddressError(
                f"{without_secret(store)}{mark}{seen} is no address of a job: expected STORE#job=NAME, "
                "with &ledger=URL and &queue=URL where they are not in the store's directory"
                + (f"; not known: {', '.join(unknown)}" if unknown else "")
            )
        first = {name: values[0] for name, values in given.items()}
        return cls(store, first["job"], first.get("ledger"), first.get("queue"))

    def __repr__(self) -> str:
        return f"Address({self.text!r})"


def default_store() -> Path:
    """Where jobs are kept unless told otherwise."""
    base = os.environ.get("LINNET_HOME") or Path.home() / ".cache" / "linnet"
    return Path(base) / "jobs"


def without_secret(url: str) -> str:
    """A URL without the user's name and password, and without options that could be secret.

    >>> without_secret("redis://me:secret@host:6379/0?password=secret&db=2")
    'redis://host:6379/0?db=2'
    """
    if "://" not in url:
        return url
    parts = urlsplit(url)
    told = [(name, without_secret(value)) for name, value in _options(url) if name in _TOLD]
    return urlunsplit(
        parts._replace(netloc=parts.netloc.rpartition("@")[2], query=urlencode(told, safe="/:"))
    )


def _check(what: str, url: str) -> None:
    """Refuse a URL that cannot be taken apart, without a word of what might be secret in it."""
    if "://" not in url:
        return
    scheme = url.partition("://")[0]
    try:
        parts = urlsplit(url)
        unreadable = parts.port is not None and parts.port < 0
    except ValueError:
        unreadable = True
    else:
        beyond = f"{parts.path}{parts.fragment}{'' if '@' in parts.netloc else parts.query}"
        unreadable = unreadable or (scheme in _SERVERS and "@" in beyond)
    if unreadable:
        raise AddressError(
            f"the URL of the {what} ({scheme}://…) cannot be read; write / ? # @ and : of a password as %2F, "
            "%3F, %23, %40 and %3A, or put it into LINNET_LEDGER_PASSWORD"
        ) from None


def _options(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query, keep_blank_values=True) if "://" in url else []
