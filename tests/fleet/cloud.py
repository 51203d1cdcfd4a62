"""A cloud on loopback: moto's instances really run their user data, and can be told of interruptions.

Moto keeps a list of instances and runs none of them. `Machines` does what a cloud does: for each instance in the
list it runs the user data as a session of processes, and kills it when the instance is ended. `Metadata` is the
address at which a server hears that it will be taken away; `Proxy` stands before moto and answers late, not at
all, or with an error.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import parse_qs
from urllib.request import Request, urlopen


class Machines:
    """Runs the user data of moto's instances."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.look()

    def look(self) -> None:
        living = set()
        for group in self.client.describe_instances()["Reservations"]:
            for each in group["Instances"]:
                number = each["InstanceId"]
                if each["State"]["Name"] == "running":
                    living.add(number)
                    if number not in self.running:
                        self.running[number] = self._boot(number)
        for number in set(self.running) - living:
            self._end(number)

    def _boot(self, number: str) -> subprocess.Popen[bytes]:
        found = self.client.describe_instance_attribute(InstanceId=number, Attribute="userData")
        script = base64.b64decode(found["UserData"]["Value"])
        return subprocess.Popen(
            ["sh", "-c", script.decode()], stdin=subprocess.DEVNULL, start_new_session=True
        )

    def _end(self, number: str) -> None:
        machine = self.running.pop(number)
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    if os.getsid(int(entry)) == machine.pid:
                        os.kill(int(entry), signal.SIGKILL)
        machine.wait()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for number in list(self.running):
            self._end(number)


class _Server:
    """An HTTP server on loopback, in a thread."""

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            do_POST = do_PUT = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is said."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        raise AssertionError("a subclass answers")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str = "text/xml") -> None:
    with contextlib.suppress(OSError):
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


class Metadata(_Server):
    """What servers ask about themselves, with a token as of today's metadata (IMDSv2).

    `notice` makes all of them hear of an interruption, `rebalance` of a recommendation.
    """

    notice = rebalance = False

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.command == "PUT" and request.path.endswith("/latest/api/token"):
            _send(request, 200, b"a token")
        elif request.headers.get("X-aws-ec2-metadata-token") != "a token":
            _send(request, 401, b"")
        elif self.notice and request.path.endswith("spot/instance-action"):
            _send(request, 200, b'{"action": "terminate"}', "application/json")
        elif self.rebalance and request.path.endswith("recommendations/rebalance"):
            _send(request, 200, b'{"noticeTime": "2026-11-18T12:00:00Z"}', "application/json")
        else:
            _send(request, 404, b"")


class PriceList(_Server):
    """Amazon's price list, which moto does not have: one type of server, on demand."""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        given = {each["Field"]: each["Value"] for each in asked["Filters"]}
        assert asked["ServiceCode"] == "AmazonEC2"
        rate = {"unit": "Hrs", "pricePerUnit": {"USD": "0.0960000000"}}
        product = {"terms": {"OnDemand": {"a.b": {"priceDimensions": {"a.b.c": rate}}}}}
        here = given["instanceType"] == "m5.large" and given["regionCode"] == "us-east-1"
        if here and "NextToken" not in asked:  # an empty page, and another one
            said: dict[str, Any] = {"PriceList": [], "NextToken": "more"}
        else:
            said = {"PriceList": [json.dumps(product)] if here else []}
        _send(request, 200, json.dumps(said).encode(), "application/x-amz-json-1.1")


class Proxy(_Server):
    """Stands before moto. `fault` is asked about each action: None, an error's code, or "lost" (done, unanswered)."""

    def __init__(self, behind: str) -> None:
        super().__init__()
        self.behind = behind
        self.actions: list[str] = []
        self.fault: Callable[[str], str | None] = lambda action: None

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        action = parse_qs(body.decode(errors="replace")).get("Action", [""])[0]
        self.actions.append(action)
        fault = self.fault(action)
        if fault is not None and fault != "lost":
            text = f"<Response><Errors><Error><Code>{fault}</Code><Message>as told</Message></Error></Errors></Response>"
            _send(request, 503 if "Limit" in fault else 500, text.encode())
            return
        headers = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "content-length")}
        try:
            with urlopen(
                Request(self.behind + request.path, body or None, headers, method=request.command)
            ) as said:
                status, answer = said.status, said.read()
        except HTTPError as error:
            status, answer = error.code, error.read()
        if fault == "lost":
            request.close_connection = True
            request.connection.close()
            return
        _send(request, status, answer)


def wait_until(true: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
    return found
