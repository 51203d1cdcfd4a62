"""What a dashboard shows: this process, a job of workers, a bag of jobs; each as data for the page."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from linnet.errors import InputError
from linnet.events.watching import RECORD
from linnet.reports import described
from linnet.reports.registry import entries
from linnet.webpage.log_lines import LoggedLines, clock, tail

_SPANS = 4_000
"""Tasks of a run that are drawn live; a report has more of them."""
_ATTEMPTS, _PATIENCE = 4, 3.0
"""How often a run is interrupted, and seconds in which it should then end."""
_FULL = 3
"""Runs that are sent with all they have."""
_BAG_JOBS = 5_000
_BAG_LOGS = 8
"""Attempts whose words are shown: the latest."""


class Source(Protocol):
    """Something to show."""

    def data(self) -> dict[str, Any]:
        """How it stands."""
        ...

    def cancel(self) -> str:
        """Stop it; what was done, in words."""
        ...


class ThisProcess:
    """The runs of this process."""

    def __init__(self, name: str, known: Callable[[Any], dict[str, Any]] | None = None) -> None:
        """`known` tells more of a job: operations, bounds."""
        self._name, self._known = name, known
        self._logged = LoggedLines()

    def close(self) -> None:
        """Hear no loggers any more."""
        self._logged.close()

    def data(self) -> dict[str, Any]:
        jobs = RECORD.jobs
        shown: list[dict[str, Any]] = []
        for place, job in enumerate(jobs):
            if place >= len(jobs) - _FULL:
                shown.append(
                    described(job, self._known(job) if self._known else None, spans=_SPANS, recent=True)
                )
            else:
                brief = described(job, spans=0, recent=True)
                brief.update(samples=brief["samples"][-1:], tiles=[])
                shown.append(brief)
        logged = self._logged.lines()
        return {"title": self._name, "sub": "this session, live", "jobs": shown, "log": logged}

    def cancel(self) -> str:
        """As Ctrl-C does it; again where that was lost, in a callback whose errors Python drops."""
        running = [each for each in RECORD.jobs if each.state == "running"]
        for _ in range(_ATTEMPTS):
            _thread.interrupt_main()
            patience = time.monotonic() + _PATIENCE
            while time.monotonic() < patience and all(each.state == "running" for each in running):
                time.sleep(0.02)
            if not running or any(each.state != "running" for each in running):
                break
        return "the running computation was interrupted, as by Ctrl-C"


class OneJob:
    """A job of stateless workers, by its address."""

    def __init__(self, address: str) -> None:
        from linnet.workers.client import attach

        self._job = attach(address, launcher=None)
        self._trace: list[Any] = []

    def data(self) -> dict[str, Any]:
        from linnet.workers.provisioner import Sample

        progress = self._job.progress()
        at = self._job.mark("").at
        self._trace.append(Sample(at, progress.ready, progress.leased, progress.workers, progress.done))
        if len(self._trace) > 600:
            del self._trace[1:-1:2]
        known = self._job.report()
        return type(known)(
            known.address, known.spec, known.status, known.workers, self._trace, (), known.notes, known.events
        ).data()

    def cancel(self) -> str:
        self._job.cancel()
        return "the job was cancelled; what is done is kept, and job.resume() goes on"


class OneBag:
    """A bag of jobs, by its folder."""

    def __init__(self, folder: str) -> None:
        from linnet.fleet.bag import Bag

        self._bag = Bag.open(folder)
        self._samples: list[list[float]] = []

    def data(self) -> dict[str, Any]:
        status = self._bag.status(estimate=False)
        now = status.hours * 3600
        if not self._samples or now > self._samples[-1][0]:  # of one that has ended it is always the same
            self._samples.append([now, status.done, status.waiting, status.running, status.servers, 0, 0, 0])
        if len(self._samples) > 600:
            del self._samples[1:-1:2]
        state = {"done": "finished", "not begun": "running", "interrupted": "cancelled"}.get(
            status.state, status.state
        )
        job = {
            "job": str(self._bag.folder), "program": Path(self._bag.folder).name, "engine": "bag",
            "state": state, "error": "", "tasks": status.jobs, "done": status.done, "workers": status.servers,
            "begun": time.time() - now, "seconds": now,
            "budget": None, "kernels": [], "names": [], "lanes": [], "spans": [], "folded": 0, "untold": 0,
            "samples": self._samples, "failures": [], "retries": status.preemptions, "tiles": [],
            "cost": status.cost, "bag": self._map(), "notes": [["status", str(status)]], "log": [],
        }  # fmt: skip
        told = {"title": f"Bag {job['program']}", "sub": str(self._bag.folder), "jobs": [job]}
        return {**told, "log": self._words()}

    def _words(self) -> list[list[str]]:
        """What the latest attempts wrote, each with when it wrote last."""
        words: list[tuple[float, str]] = []
        for place in (Path(self._bag.folder) / "attempts").glob("*/std*"):
            with suppress(OSError):
                seen = place.stat()
                if seen.st_size:
                    words.append((seen.st_mtime, str(place)))
        return [
            [clock(at), f"attempt {Path(path).parent.name}, {Path(path).name}: {tail(Path(path)).rstrip()}"]
            for at, path in sorted(words)[-_BAG_LOGS:]
        ]

    def _map(self) -> dict[str, Any]:
        """Each job of the bag (name, state, parameters, row, column), arranged by two of its parameters."""
        words = {"waiting": "queued", "dropped": "failed", "stopped": "done"}
        table = self._bag.table()
        rows = list(table)[:_BAG_JOBS]
        names = [name for name in table.parameters if len({str(row.get(name)) for row in rows}) > 1][:2]
        values = [list(dict.fromkeys(str(row.get(name)) for row in rows)) for name in names]
        jobs: list[list[Any]] = []
        for row in rows:
            text = ", ".join(f"{name}={row.get(name)}" for name in table.parameters)
            places = [each.index(str(row.get(name))) for name, each in zip(names, values, strict=True)]
            down, across = (places[0], places[1]) if len(places) == 2 else (0, *places, 0)[:2]
            state = str(row["state"])
            jobs.append([str(row["job"]), words.get(state, state), text, down, across])
        return {"jobs": jobs, "axes": names}

    def cancel(self) -> str:
        self._bag.cancel()
        return "the bag was cancelled"


class Listing:
    """All that is registered; what is picked is shown by a source of its own."""

    def data(self) -> dict[str, Any]:
        return {
            "title": "Linnet",
            "sub": "sessions, jobs and bags of this user",
            "jobs": [],
            "list": listed(),
        }

    def cancel(self) -> str:
        raise InputError("pick a session, a job or a bag first")


def listed() -> list[dict[str, Any]]:
    """The registry, for the page."""
    return [
        {"kind": each.kind, "name": each.name, "address": each.address, "begun": each.begun}
        for each in entries()
    ]


def source_of(address: str) -> Source:
    """What an address means: the folder of a bag, or a job."""
    folder = Path(address)
    if folder.is_dir():
        return OneBag(address)
    if "#" not in address:
        raise InputError(
            f"{address} is no folder of a bag, which would have to exist, and no address of a job, as "
            "job.address tells it: STORE#job=NAME"
        )
    return OneJob(address)
