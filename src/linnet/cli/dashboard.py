"""`linnet dashboard [ADDRESS]`: a page with what runs: everything that is registered, or one job or bag."""

from __future__ import annotations

from typing import Annotated

import typer


def dashboard(
    address: Annotated[
        str | None,
        typer.Argument(help="A job's address, or the folder of a bag; by default all of this user's."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; by default only this machine can look.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
) -> None:
    """Serve a page that shows sessions, jobs and bags as they run, until Ctrl-C."""
    from linnet.webpage.server import Server
    from linnet.webpage.sources import source_of

    server = Server(None if address is None else source_of(address), host=host, port=port)
    typer.echo(f"{server.address}?token={server.token}")
    typer.echo("Ctrl-C ends it. The token allows to cancel; without it the page only shows.", err=True)
    try:
        server.wait()
    except KeyboardInterrupt:
        typer.echo("", err=True)
    finally:
        server.close()
