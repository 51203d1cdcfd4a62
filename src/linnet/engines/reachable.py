"""Whether anybody answers at the address of a cluster: libraries that shall connect may wait for minutes."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from linnet.errors import InputError, UnreachableError

_PAUSE = 0.2


class Greeting(NamedTuple):
    """How a server is told from others."""

    said: bytes
    """What one says to it first."""
    answered: Callable[[bytes], bool]
    """Whether the first bytes that it says are those of such a server."""


RAY = Greeting(
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
    lambda first: first[3:4] == b"\x04",
)
"""gRPC, which is HTTP/2: a fixed line, and from both sides a frame of settings, the fourth kind there is."""
DASK = Greeting(b"", lambda first: len(first) == 8 and int.from_bytes(first, "little") < 100)
"""Dask's own messages: a scheduler begins, with the number of frames in what it says."""


def unreachable(engine: str, address: str, why: object, start: str) -> UnreachableError:
    """The error for a cluster that does not answer; `start` is a command that starts one."""
    return UnreachableError(
        f'ln.init("{engine}", address={address!r}): no answer from there ({why}). Is a cluster running '
        f"there, and is its port open? Start one with `{start}`, give it longer with timeout=, or leave "
        "address= away for a cluster on this machine"
    )


def reach(engine: str, address: str, timeout: float, greeting: Greeting, start: str) -> None:
    """See that a server answers at `host:port`; one that is being started has until the timeout."""
    host, port = _parts(engine, address)
    end = time.monotonic() + timeout
    while True:
        why = _tried(host, port, max(end - time.monotonic(), _PAUSE), greeting)
        if why is None:
            return
        if time.monotonic() + _PAUSE >= end:
            raise unreachable(engine, address, f"{why}, within {timeout:g} s", start)
        time.sleep(_PAUSE)


def _parts(engine: str, address: str) -> tuple[str, int]:
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f'ln.init("{engine}", address={address!r}): give the address as "host:port"')
    return host.strip("[]"), int(port)


def _tried(host: str, port: int, seconds: float, greeting: Greeting) -> str | None:
    """What went wrong; None if such a server answered."""
    try:
        with socket.create_connection((host, port), timeout=seconds) as link:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return None  # it talks only to those with a certificate
            link.settimeout(seconds)
            link.sendall(greeting.said)
            first = link.recv(8)
    except OverflowError:
        return f"there is no port {port}"
    except OSError as error:
        return str(error) or type(error).__name__
    return None if greeting.answered(first) else "somebody else answers there"
