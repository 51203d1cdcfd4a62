"""One connection to a Redis or Valkey server, over which scripts run.

Each script is one step that the server takes as a whole, in one round trip. Their arguments and answers
are msgpack, which the server reads and writes itself. All keys of a job begin with `linnet:{job}:` and its
identity, so that nobody meets those of a job that had the name before; the braces keep them together on a
cluster.

Commands go through redis-py's connection, which knows TLS and logins, but past its client, which takes
three times as long as the server needs for a script.

When the server goes away, calls wait for it with growing pauses, for `patience` seconds in all. Every
step may be repeated, so a step whose answer was lost is simply taken again.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgpack

from linnet.errors import StoreError, missing_extra
from linnet.workers.address import without_secret
from linnet.workers.timeouts import seconds_left

PATIENCE = 60.0
"""Seconds that a call waits for a server that does not answer."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 2.0
_ANSWER, _CONNECT, _LEAST = 30.0, 5.0, 0.05
"""Seconds for an answer, and for a connection, at most; and for either, at least."""
_LONGEST_WAIT = 1e6
"""Seconds for a connection that another thread uses."""
_SHOWN = {"ssl_ca_certs", "ssl_certfile", "ssl_cert_reqs", "ssl_check_hostname", "db"}
"""Options of a URL that are no secret, and that another process needs to connect, too."""

_AS_IT_IS = "surrogateescape"
"""Anybody may have put bytes there that are no text: they come through as they are, and can be removed."""
_packed: Any = msgpack.packb
_unpacked: Any = msgpack.unpackb

_PRELUDE = """
local P = KEYS[1]
local A = cmsgpack.unpack(ARGV[1])
local call = redis.call
local time = call('TIME')
local now = time[1] + time[2] / 1000000
local NOW = string.format('%.6f', now)  -- as text: the server would write out the number at every call

local PIECE = 1000  -- values in one call: the stack of a script holds some thousands

-- Many fields of a hash, by name; false where there is none.
local function fetched(key, names)
  local found = {}
  for first = 1, #names, PIECE do
    local last = math.min(first + PIECE - 1, #names)
    local values = call('HMGET', key, unpack(names, first, last))
    for i = first, last do found[names[i]] = values[i - first + 1] end
  end
  return found
end

local function add(words, one, two)
  words[#words + 1] = one
  words[#words + 1] = two
end

-- One command for many words, which come last in it.
local function at_once(words, ...)
  for first = 1, #words, PIECE do
    local line = {...}
    for i = first, math.min(first + PIECE - 1, #words) do line[#line + 1] = words[i] end
    call(unpack(line))
  end
end
"""


class Script:
    """Lua text that runs inside the server: `A` are its arguments, `P` how its keys begin, `now` its clock.

    >>> Script("return 1").digest == Script("return 1").digest
    True
    """

    def __init__(self, text: str) -> None:
        self.text: str = _PRELUDE + text
        self.digest: str = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class Connection:
    """Runs scripts on one server, for one job; may be used from several threads.

    A login that is not in the URL is taken from the environment: of the first of `roles` that has one there
    (`LINNET_LEDGER_PASSWORD`, `LINNET_LEDGER_USER`).
    """

    def __init__(
        self,
        url: str,
        job: str,
        identity: str = "",
        *,
        patience: float = PATIENCE,
        roles: Sequence[str] = ("LEDGER",),
    ) -> None:
        self.url: str = shown(url)
        self._roles = roles
        self.name: str = f"linnet:{{{job}}}:"
        """How all keys of jobs of this name begin."""
        self._prefix = (f"{self.name}{identity}:" if identity else self.name).encode()
        self._patience = patience
        self._lock = threading.Lock()
        self._redis = _library(self.url)
        self._connection = self._made(url)
        self._checked = False
        self._limit = _ANSWER
        with self._held():
            self._patiently(self._ready)

    def run(self, script: Script, *arguments: Any) -> Any:
        """What a script returns; the server may have run it more than once."""
        packed = _packed(arguments, unicode_errors=_AS_IT_IS)
        with self._held():
            answer = self._patiently(lambda: self._evaluate(script, packed))
        return None if answer is None else _unpacked(answer, unicode_errors=_AS_IT_IS)

    @contextmanager
    def _held(self) -> Generator[None]:
        """The connection for this thread alone; another one may be waiting for the server with it."""
        if not self._lock.acquire(timeout=seconds_left(_LONGEST_WAIT)):
            raise self._unanswered(0.0, "another call waits for it")
        try:
            yield
        finally:
            self._lock.release()

    def _unanswered(self, seconds: float, why: str) -> StoreError:
        return StoreError(
            f"the server {self.url} did not answer for {seconds:.2g} s ({why}); start it again, then resume "
            "the job"
        )

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._connection.disconnect()

    # ---- one try

    def _made(self, url: str) -> Any:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        parts = urlsplit(url)
        scheme = {"valkey": "redis", "valkeys": "rediss"}.get(parts.scheme, parts.scheme)
        given = dict(parse_qsl(parts.query))
        options: dict[str, Any] = {
            "socket_timeout": _ANSWER,
            "socket_connect_timeout": _CONNECT,
            "socket_keepalive": True,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
        }
        role = next((each for each in self._roles if f"LINNET_{each}_PASSWORD" in os.environ), self._roles[0])
        for option, variable in (
            ("password", f"LINNET_{role}_PASSWORD"),
            ("username", f"LINNET_{role}_USER"),
        ):
            if variable in os.environ and getattr(parts, option) is None and option not in given:
                options[option] = os.environ[variable]
        try:
            pool = self._redis.ConnectionPool.from_url(urlunsplit(parts._replace(scheme=scheme)), **options)
            return pool.make_connection()
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{self.url} is no address of a server ({type(error).__name__}); expected "
                "redis://HOST:PORT/0 or rediss://HOST:PORT/0?ssl_ca_certs=FILE"
            ) from None

    def _ready(self) -> None:
        """Connect, and see that the server keeps what it is given."""
        limit = max(_LEAST, seconds_left(_ANSWER))
        if limit != self._limit:
            self._limit = limit
            self._connection.socket_timeout = limit
            self._connection.socket_connect_timeout = min(_CONNECT, limit)
            if self._connection._sock is not None:
                self._connection._sock.settimeout(limit)
        self._connection.connect()
        if not self._checked:
            policy = _policy(self._command(b"INFO", b"memory"))
            if policy != "noeviction":
                raise StoreError(
                    f"the server {self.url} may throw keys away when its memory is full "
                    f"(maxmemory-policy is {policy or 'not told'}), and a job would lose tasks; set it with "
                    "`CONFIG SET maxmemory-policy noeviction`, or in the server's configuration"
                )
            self._checked = True

    def _evaluate(self, script: Script, packed: bytes) -> Any:
        self._ready()
        try:
            return self._command(b"EVALSHA", script.digest.encode(), b"1", self._prefix, packed)
        except self._redis.exceptions.NoScriptError:  # a new server, or one that was restarted
            return self._command(b"EVAL", script.text.encode(), b"1", self._prefix, packed)

    def _command(self, *words: bytes) -> Any:
        parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
        packed = b"*%d\r\n%b" % (len(words), b"".join(parts))
        try:
            self._connection.send_packed_command([packed], check_health=False)
            return self._connection.read_response()
        except self._redis.exceptions.ResponseError:
            raise
        except BaseException:
            # What comes next on this connection would be the answer to this command.
            self._connection.disconnect()
            raise

    # ---- many

    def _patiently(self, attempt: Any) -> Any:
        begun, allowed = time.monotonic(), seconds_left(self._patience)
        end = 0.0
        pause = _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except self._redis.exceptions.RedisError as error:
                lasting = self._lasting(error)
                if lasting is not None:
                    raise lasting from None
                now = time.monotonic()
                end = end or now + self._patience
                if now + pause > end or seconds_left(pause) < pause:
                    raise self._unanswered(max(allowed, now - begun), type(error).__name__) from None
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _lasting(self, error: Exception) -> StoreError | None:
        """What to tell the user, where trying again is of no use."""
        kinds = self._redis.exceptions
        text = str(error)
        if isinstance(error, kinds.AuthenticationError) or "NOAUTH" in text or "WRONGPASS" in text:
            return StoreError(
                f"the server {self.url} did not accept the login; put the right password into "
                "LINNET_LEDGER_PASSWORD (and the user into LINNET_LEDGER_USER), or into the URL"
            )
        if isinstance(error, kinds.NoPermissionError):
            return StoreError(
                f"the user of {self.url} may not run what is needed; allow it with "
                "`ACL SETUSER name ~linnet:* +@all -@dangerous +info`"
            )
        if isinstance(error, kinds.OutOfMemoryError):
            return StoreError(f"the server {self.url} is full; raise its maxmemory, then resume the job")
        passing = (kinds.ConnectionError, kinds.TimeoutError, kinds.BusyLoadingError, kinds.ReadOnlyError)
        if isinstance(error, passing) or text.startswith(
            ("MISCONF", "LOADING", "READONLY", "BUSY", "MASTERDOWN")
        ):
            return None
        return StoreError(f"the server {self.url} refused a step: {text[:300]}")


def shown(url: str) -> str:
    """A URL of a server without anything secret.

    >>> shown("rediss://me:secret@host:6380/2?ssl_ca_certs=/ca.pem&password=secret")
    'rediss://host:6380/2?ssl_ca_certs=/ca.pem'
    """
    parts = urlsplit(without_secret(url))
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name in _SHOWN]
    return urlunsplit(parts._replace(query=urlencode(kept, safe="/"), fragment=""))


def _library(url: str) -> Any:
    try:
        import redis
    except ImportError as error:
        raise missing_extra(url, "redis", "redis") from error
    return redis


def _policy(told: bytes | str) -> str:
    text = told.decode() if isinstance(told, bytes) else told
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "maxmemory_policy":
            return value.strip()
    return ""
