"""The command itself: options that hold for every verb, and what happens to errors."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from linnet.cli.bag import bag
from linnet.cli.dashboard import dashboard
from linnet.cli.demo import demo
from linnet.cli.doctor import doctor
from linnet.cli.fit import fit
from linnet.cli.plan import plan
from linnet.cli.provision import provision
from linnet.cli.run import run
from linnet.cli.top import top
from linnet.cli.worker import worker
from linnet.errors import LinnetError

_HELP = (
    "Array programs on every core, on clusters, and on workers that may die at any moment.\n\n"
    "Exit codes: 0 done; 1 an error, which is told in one message; 2 a wrong option; 130 Ctrl-C."
)
app = typer.Typer(
    name="linnet",
    help=_HELP,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(dashboard)
app.command()(doctor)
app.command()(fit)
app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(run)
app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(plan)
app.command()(worker)
app.command()(provision)
app.command()(top)
app.add_typer(bag, name="bag")


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        from linnet.errors import DISTRIBUTION

        typer.echo(f"linnet {version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="On an error, show where it was raised.")] = False,
) -> None:
    return  # the help is that of the application


def main() -> None:
    """Run the command; an error is one message and a non-zero exit."""
    try:
        app()
    except (Exception, KeyboardInterrupt) as error:
        # `--debug` is read here, not in `options`: an error may come before options are parsed.
        if "--debug" in sys.argv[1:]:
            traceback.print_exc()
        else:
            typer.echo(f"linnet: {_message(error)}", err=True)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _message(error: BaseException) -> str:
    if isinstance(error, LinnetError):
        return f"error: {error}"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError):
        return f"error: out of memory ({error or 'no details'}); try a smaller --size"
    return (
        f"unexpected error: {type(error).__name__}: {error}\n"
        "Please report it, with what `linnet --debug ...` prints."
    )
