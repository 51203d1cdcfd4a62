"""The page over HTTP: loopback only unless asked otherwise, and a token for whoever changes something."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from linnet.errors import InputError, LinnetError, UnreachableError, missing_extra
from linnet.reports.page import asset, html_page
from linnet.reports.registry import entries
from linnet.webpage.sources import Listing, Source, listed, source_of

_EVERY = 0.7
"""Seconds between two pictures."""
_LOCAL = ("127.0.0.1", "localhost", "[::1]", "::1")


class Server:
    """Serves sources until it is stopped; runs in a thread of its own."""

    def __init__(self, source: Source | None, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """`source` None: a list of all that is registered."""
        try:
            import uvicorn
        except ImportError as error:
            raise missing_extra("the dashboard", "starlette and uvicorn", "dashboard") from error
        self.token: str = secrets.token_urlsafe(16)
        """What whoever cancels something must give."""
        self._source = source or Listing()
        self._others: dict[str, Source] = {}
        self._host, self._open = host, host in _LOCAL
        self._ended = False
        self._socket = _bound(host, port)
        # Without `log_config=None` it would close the handlers of all loggers of the process.
        self._config = uvicorn.Config(
            self._app(),
            log_config=None,
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=1,
            ws="none",
        )
        self._server = uvicorn.Server(self._config)
        self._thread = threading.Thread(target=self._serve, name="linnet-dashboard", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Of the page."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._socket.getsockname()[1]}/"

    def wait(self) -> None:
        """Until it is stopped."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop serving. A second call does nothing."""
        self._ended = True
        self._server.should_exit = True
        self._thread.join(3)

    def _serve(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    # ---- answers

    def _app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
        from starlette.routing import Route

        def guarded(answer: Callable[[Any], Any], *, changes: bool = False) -> Callable[[Any], Any]:
            async def checked(request: Any) -> Any:
                # A page elsewhere may lead a name of its own to 127.0.0.1: it does not know ours.
                host = request.headers.get("host", "").rsplit(":", 1)[0]
                if self._open and host not in _LOCAL:
                    return JSONResponse({"said": f"{host!r} is not this dashboard"}, 421)
                needs = changes or not self._open
                if needs and not self._trusted(request):
                    return JSONResponse({"said": "the token is missing, or wrong"}, 403)
                return await answer(request)

            return checked

        async def page(request: Any) -> Any:
            return HTMLResponse(html_page("Linnet", None, asset("live.js")))

        async def data(request: Any) -> Any:
            source = request.query_params.get("source", "")
            return JSONResponse(await asyncio.to_thread(self._data, source, self._trusted(request)))

        async def stream(request: Any) -> Any:
            source = request.query_params.get("source", "")
            return StreamingResponse(self._pictures(source, request), media_type="text/event-stream")

        async def cancel(request: Any) -> Any:
            source = request.query_params.get("source", "")
            try:
                return JSONResponse({"said": await asyncio.to_thread(lambda: self._found(source).cancel())})
            except LinnetError as error:
                return JSONResponse({"said": str(error)}, 400)

        return Starlette(
            routes=[
                Route("/", guarded(page)),
                Route("/data", guarded(data)),
                Route("/events", guarded(stream)),
                Route("/cancel", guarded(cancel, changes=True), methods=["POST"]),
            ]
        )

    def _trusted(self, request: Any) -> bool:
        """Whether who asks has the token."""
        token = request.headers.get("x-linnet-token") or request.query_params.get("token", "")
        return hmac.compare_digest(token.encode(), self.token.encode())

    async def _pictures(self, source: str, request: Any) -> AsyncIterator[str]:
        while not self._ended and not await request.is_disconnected():
            pictures = await asyncio.to_thread(self._data, source, self._trusted(request))
            yield f"data: {json.dumps(pictures, separators=(',', ':'))}\n\n"
            await asyncio.sleep(_EVERY)

    def _data(self, source: str, trusted: bool) -> dict[str, Any]:
        """What is shown; what programs wrote only to who has the token: others of this machine may look."""
        try:
            data = self._found(source).data()
        except (LinnetError, OSError) as error:
            return {"problem": str(error), "title": "Linnet", "jobs": []}
        if not trusted and data.get("log"):
            data["log"] = [["", "What programs wrote is shown with the token, printed at the start."]]
        return data

    def _found(self, source: str) -> Source:
        """What was picked: only what is registered can be."""
        if not source:
            return self._source
        if source not in self._others:
            if source not in {each.address for each in entries()}:
                raise InputError(f"{source!r} is not among what is registered")
            self._others[source] = source_of(source)
        return self._others[source]


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(64)  # whoever asks before the thread answers waits
    except OSError as error:
        listening.close()
        raise UnreachableError(
            f"the dashboard cannot listen on {host}:{port} ({error.strerror}); give another port, or 0 for "
            "a free one"
        ) from error
    return listening


__all__ = ["Server", "listed"]
