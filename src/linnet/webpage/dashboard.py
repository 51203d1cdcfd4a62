"""`ln.dashboard`: the page of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from linnet.events.watching import record_tiles
from linnet.reports.registry import forget, register
from linnet.webpage.server import Server
from linnet.webpage.sources import ThisProcess


class Dashboard:
    """A page that shows the runs of this process, until it is closed."""

    def __init__(
        self, *, host: str = "127.0.0.1", port: int = 0, known: Callable[[Any], dict[str, Any]] | None = None
    ) -> None:
        script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path("python")
        name = script.parent.name if script.name == "__main__.py" else script.name
        self._source = ThisProcess(f"{name} ({os.getpid()})", known)
        try:
            self._server = Server(self._source, host=host, port=port)
        except BaseException:
            self._source.close()
            raise
        self._stop = record_tiles()
        self._closed = False
        register("session", f"{name} ({os.getpid()})", self.address)

    @property
    def address(self) -> str:
        """Of the page, for a browser of this machine."""
        return self._server.address

    @property
    def token(self) -> str:
        """With it the page can cancel what runs: `address + "?token=" + token`."""
        return self._server.token

    def close(self) -> None:
        """Stop serving the page. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._stop()
            forget(self.address)
            self._server.close()
            self._source.close()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Dashboard({self.address!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.address}?token={self.token}" target="_blank">Linnet dashboard</a>'


def dashboard(
    *, host: str = "127.0.0.1", port: int = 0, known: Callable[[Any], dict[str, Any]] | None = None
) -> Dashboard:
    """Serve a page that shows what runs in this process, live.

    Parameters
    ----------
    host : where to listen; elsewhere than on this machine the page needs its token, too
    port : 0 takes a free one
    known : tells more of a run, for the page

    Returns
    -------
    Dashboard
        A context manager with the `address` of the page and the `token` that cancelling needs.
    """
    page = Dashboard(host=host, port=port, known=known)
    print(f"dashboard: {page.address}?token={page.token}", file=sys.stderr, flush=True)
    return page
