"""Writes that are under way: what is being written, and which tiles of it are done.

A write first puts a plan into a folder beside its target, `<target>.unfinished`. Tasks leave a note
there after their tile is written; the last step gives the target what makes it readable (its
metadata, its final name) and removes the folder. So what has failed never reads as complete, and a
second attempt with the same plan knows what is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from typing import Any

from linnet.errors import FileError, FileMissingError, InputError
from linnet.io import stores
from linnet.io.places import Place

_PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class Journal:
    """The record of one write: to a target, or to a part of it."""

    target: Place
    """What is being written."""
    part: str = ""
    """A name for the part of the target, where it is not all of it."""

    @property
    def folder(self) -> Place:
        """Where plan and notes are, and whatever is renamed in the end."""
        return self.target.beside(".unfinished") / self.part

    def plan(self) -> dict[str, Any] | None:
        """What an earlier attempt set out to write, if there was one that has not ended."""
        stored = stores.read_if_there(self.folder / _PLAN)
        if stored is None:
            return None
        try:
            plan = json.loads(bytes(stored))
        except ValueError:
            plan = None
        if not isinstance(plan, dict):
            raise FileError(
                f"{self.folder} is not the record of an unfinished write; remove it, then write again"
            )
        return plan

    def begin(self, plan: dict[str, Any], resume: bool) -> frozenset[int]:
        """Put down the plan; returns the numbers of the tiles that an earlier attempt has written."""
        plan = json.loads(json.dumps(plan))
        known = self.plan()
        if known is not None and resume:
            self._refuse_other(known, plan)
            return frozenset(
                int(name.removeprefix("done/"))
                for name in stores.listing(self.folder)
                if name.startswith("done/") and name.removeprefix("done/").isdigit()
            )
        if known is not None:
            stores.remove(self.folder)
        stores.write(self.folder / _PLAN, json.dumps(plan).encode())
        return frozenset()

    def _refuse_other(self, known: dict[str, Any], plan: dict[str, Any]) -> None:
        different = sorted(name for name in {**known, **plan} if known.get(name) != plan.get(name))
        if different:
            raise InputError(
                f"{self.target} was begun with another {' and '.join(different)}, so resume=True cannot go "
                "on with it; write it without resume=True to begin anew"
            )

    def note(self, number: int) -> None:
        """A tile is written."""
        stores.write(self.folder / f"done/{number}", b"")

    def end(self) -> None:
        """All is written and readable."""
        stores.remove(self.folder)
        if self.part and self.target.is_local:
            # The folder of all parts goes with the last of them.
            with contextlib.suppress(OSError):
                os.removedirs(os.path.dirname(self.folder.url))


def refuse_unfinished(target: Place) -> None:
    """An error if a write to this target, or to a part of it, has not ended."""
    try:
        names = stores.listing(Journal(target).folder)
    except FileMissingError:  # no bucket: whoever reads the target will say so
        names = []
    for name in names:
        if name == _PLAN or name.endswith(f"/{_PLAN}"):
            part = name.removesuffix(_PLAN).rstrip("/")
            what = f"its region [{part}]" if part else "it"
            raise FileError(
                f"{target} is not complete: a write to {what} was broken off or is under way; "
                "write that again, with resume=True to keep what is done"
            )
