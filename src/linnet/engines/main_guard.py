"""Scripts that start worker processes must not do so again in each of these.

A process that Python spawns runs the main script once more, under another name; what starts workers has to
stand under `if __name__ == "__main__":`. Where it does not, each worker tries to start workers and fails, and
the one who waits for them gets hundreds of lines that name no script.
"""

from __future__ import annotations

import ast
import inspect
import multiprocessing
import sys
from types import FrameType

from linnet.errors import InputError


def check_guarded(what: str) -> None:
    """Refuse to start processes from a script that would start them again in each process.

    `what` is what the user called, for messages.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InputError(_words(what, str(getattr(sys.modules["__main__"], "__file__", "the script")), None))
    found = _script(inspect.currentframe())
    if found is not None and not _under_a_guard(*found):
        raise InputError(_words(what, *found))


def _words(what: str, path: str, line: int | None) -> str:
    place = path if line is None else f"{path}, line {line},"
    return (
        f"{what} starts worker processes, and Python runs the script again in each of them: {place} would "
        'start workers of workers. Put what the script does under\n    if __name__ == "__main__":\n'
        "or start the cluster elsewhere, and give its address= or client="
    )


def _script(frame: FrameType | None) -> tuple[str, int] | None:
    """The file of the main script, and the line that it has come to; None where nobody would run it again."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or hasattr(sys, "ps1"):
        return None  # a notebook, a prompt, or a text that was given to the interpreter
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            return path, frame.f_lineno
        frame = frame.f_back
    return None


def _under_a_guard(path: str, line: int) -> bool:
    """Whether a line of a script runs only in the process that was started with the script."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return True  # what it is cannot be told
    return any(
        isinstance(each, ast.If)
        and _asks_for_main(each.test)
        and each.body[0].lineno <= line <= (each.body[-1].end_lineno or line)
        for each in ast.walk(tree)
    )


def _asks_for_main(test: ast.expr) -> bool:
    """Whether a condition has `__name__ == "__main__"` in it."""
    for each in ast.walk(test):
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Eq):
            sides = {ast.unparse(side) for side in (each.left, *each.comparators)}
            if sides == {"__name__", "'__main__'"}:
                return True
    return False
