"""Files of the web where only some places may be asked: what servers may answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from linnet.errors import FileDeniedError, FileError
from linnet.io import web
from linnet.io.places import Place

DATA = bytes(range(256)) * 20


class Answers(BaseHTTPRequestHandler):
    """A server without ranges, whose paths say what it does; `busy` paths fail twice."""

    failures: dict[str, int] = {}  # noqa: RUF012  # shared by all requests on purpose

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(DATA)

    def answer(self, body: bytes) -> None:
        name = self.path.strip("/").split("/")[0]
        if name == "busy":
            failed = self.failures[self.path] = self.failures.get(self.path, 0) + 1
            name = "file" if failed > 2 else "503"
        if name in ("403", "404", "418", "503"):
            self.send_response(int(name))
            body = b""
        elif name == "moved":
            self.send_response(302)
            self.send_header("Location", "/" + self.path.split("/", 2)[2])
            body = b""
        elif name == "leads":
            self.send_response(302)
            self.send_header(
                "Location", {"away": "http://elsewhere.invalid/x", "nowhere": "http://[x"}[self.path[7:]]
            )
            body = b""
        else:
            self.send_response(200)
            if name == "dated":
                self.send_header("Last-Modified", "Wed, 18 Nov 2026 10:00:00 GMT")
        if name == "short":
            self.send_header("Content-Length", str(len(DATA) + 1))
        else:
            self.send_header("Content-Length", str(len(body) if self.command == "GET" else len(DATA)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def place(address: str):
    def refuse(url: str) -> None:
        if not url.startswith(address):
            raise FileDeniedError(f"{url} is not among the places that may be read")

    with web.only(refuse):
        yield lambda path: Place.of(f"{address}/{path}", None)


def test_guarded_are_files_of_the_web_where_somebody_said_which(address: str):
    file = Place.of(f"{address}/file", None)
    assert not web.is_guarded(file)
    with web.only(lambda url: None):
        assert web.is_guarded(file)
        assert not web.is_guarded(Place.of("s3://bucket/x", None))


@pytest.mark.parametrize(
    ("start", "stop"), [(0, None), (0, 10), (5, 10), (300, 5000), (5100, None), (5120, 5130)]
)
def test_a_server_without_ranges_gives_the_same_bytes(place, start, stop):
    assert web.read(place("file"), start, stop) == DATA[start:stop]


def test_ranges_side_by_side_and_far_apart(place, monkeypatch):
    monkeypatch.setattr(web, "_GAP", 100)
    starts = [0, 50, 1000, 1090, 5000]
    assert web.read_ranges(place("file"), starts, 20) == [DATA[at : at + 20] for at in starts]
    assert web.read_ranges(place("file"), [], 20) == []


def test_a_stream_is_all_of_it(place):
    pieces = list(web.stream(place("file"), 1000))
    assert b"".join(pieces) == DATA
    assert max(map(len, pieces)) <= 1000


def test_sizes_and_versions(place):
    assert web.size_and_version(place("file")) == (len(DATA), "1970-01-01T00:00:00+00:00")
    assert web.size_and_version(place("dated")) == (len(DATA), "2026-11-18T10:00:00+00:00")


def test_another_place_of_the_same_server_is_followed(place):
    assert web.read(place("moved/file"), 3, 7) == DATA[3:7]
    assert web.size_and_version(place("moved/dated"))[0] == len(DATA)


def test_a_server_that_is_busy_is_asked_again(place, monkeypatch):
    monkeypatch.setattr(web, "_PAUSE", 0.001)
    assert web.read(place("busy/again")) == DATA


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("404", FileNotFoundError, "/404"),
        ("403", FileDeniedError, "may not be read: the server says 403"),
        ("418", FileError, "cannot be read: the server says 418"),
        (
            "leads/away",
            FileDeniedError,
            "sends its readers on to another place: http://elsewhere.invalid/x is not",
        ),
        ("leads/nowhere", FileError, "cannot be read: "),
        ("short", FileError, "ended early"),
    ],
)
def test_what_cannot_be_read_is_said(place, path, kind, words):
    with pytest.raises(kind, match=words):
        web.read(place(path))


def test_who_does_not_answer_or_stays_busy_is_given_up(place, monkeypatch):
    monkeypatch.setattr(web, "_PATIENCE", 0.0)
    with pytest.raises(FileError, match="the server says 503"):
        web.read(place("503"))
    with web.only(lambda url: None), pytest.raises(FileError, match="there is no answer from it"):
        web.read(Place.of("http://127.0.0.1:9/x", None))
