"""Files over HTTP, whole or by ranges of bytes, by a thread of the tests.

Python's own file server answers no `Range`, which is how arrays are read from the web; this one does, and
remembers what was asked of it.
"""

from __future__ import annotations

import io
import re
import ssl
import threading
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

if TYPE_CHECKING:
    from servers.certificates import Certificates

_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked for."""

    method: str
    path: str
    range: str | None
    """As it was written: `bytes=0-99`."""


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept

    def __init__(self, *arguments: Any, asked: list[Request], **options: Any) -> None:
        self.asked = asked
        super().__init__(*arguments, **options)

    def log_message(self, format: str, *args: Any) -> None:
        """What happened is in `requests`; the terminal is for the tests."""

    def send_head(self) -> BinaryIO | None:
        self.asked.append(Request(self.command, self.path, self.headers["Range"]))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND, f"No file {self.path}")
            return None
        size = path.stat().st_size
        start, stop = 0, size
        if self.headers["Range"]:
            asked = _between(self.headers["Range"], size)
            if asked is None:
                self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            start, stop = asked
        self._head(path, start, stop, size)
        with path.open("rb") as file:
            file.seek(start)
            return io.BytesIO(file.read(stop - start))

    def _head(self, path: Path, start: int, stop: int, size: int) -> None:
        ranged = self.headers["Range"] is not None
        self.send_response(HTTPStatus.PARTIAL_CONTENT if ranged else HTTPStatus.OK)
        if ranged:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        found = path.stat()
        self.send_header("Last-Modified", formatdate(found.st_mtime, usegmt=True))
        self.send_header("ETag", f'"{found.st_mtime_ns:x}-{size:x}"')
        self.end_headers()


def _between(text: str, size: int) -> tuple[int, int] | None:
    """First byte and one past the last; None if there are no such bytes.

    >>> (
    ...     _between("bytes=2-4", 10),
    ...     _between("bytes=7-", 10),
    ...     _between("bytes=-3", 10),
    ...     _between("bytes=10-", 10),
    ... )
    ((2, 5), (7, 10), (7, 10), None)
    """
    matched = _RANGE.match(text)
    if matched is None or not (matched[1] or matched[2]):
        return None
    if not matched[1]:
        start, stop = max(0, size - int(matched[2])), size
    else:
        start, stop = int(matched[1]), min(size, int(matched[2]) + 1 if matched[2] else size)
    return (start, stop) if start < stop else None


class HttpServer:
    """Serves what is in `folder`; whatever the tests put there is to be had at once."""

    def __init__(self, folder: Path, *, tls: Certificates | None = None) -> None:
        self.folder, self.tls = folder, tls
        self.requests: list[Request] = []
        handler = partial(_Handler, directory=str(folder), asked=self.requests)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="http server", daemon=True
        )

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
