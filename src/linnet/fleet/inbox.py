"""Jobs that other processes ask for while a bag runs: files in its `inbox/`.

Who writes there may be killed meanwhile, or be no part of Linnet at all. What is no list of jobs of this bag
is set aside in `refused/`, with the reason beside it, and the bag goes on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

from linnet.errors import FormatError
from linnet.fleet.agent import open_file
from linnet.fleet.specification import Program, make_jobs
from linnet.fleet.table import check_names


def read_jobs(path: Path, program: Program) -> list[dict[str, Any]]:
    """The jobs of a message, if the bag's program can run all of them."""
    try:
        with open_file(path) as file:
            found: object = json.loads(file.read().decode())
    except OSError as error:
        raise FormatError(f"it cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"it is no JSON: {error}") from error
    if not isinstance(found, list):
        raise FormatError(f"it has {type(found).__name__} where a list of jobs is expected")
    jobs = make_jobs(cast("list[Any]", found), None, 1, 0)
    for job in jobs:
        program.check(job)
    check_names(jobs)
    return jobs


def set_aside(folder: Path, message: Path, why: Exception) -> None:
    """Take a message out of the inbox of a bag, and say why."""
    there = folder / "refused"
    there.mkdir(exist_ok=True)
    (there / f"{message.name}.why").write_text(f"{why}\n", encoding="utf-8", errors="replace")
    os.replace(message, there / message.name)


def refused(folder: Path) -> tuple[str, ...]:
    """What was set aside, with the reasons."""
    try:
        found = sorted((folder / "refused").glob("*.why"))
    except OSError:
        return ()
    return tuple(f"{each.with_suffix('')}: {each.read_text(errors='replace').strip()}" for each in found)
