"""A bag of jobs: one command or function, many parameters, run on a fleet until every job has one row."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from linnet.errors import FileMissingError, FormatError, InputError, JobError
from linnet.fleet.bag_events import ToldBag
from linnet.fleet.controller import Controller, Search
from linnet.fleet.fleet import Fleet
from linnet.fleet.inbox import refused
from linnet.fleet.planning import Plan, make_plan
from linnet.fleet.policies import AfterLoss, StopRule
from linnet.fleet.records import Ended
from linnet.fleet.rules import Rules
from linnet.fleet.saving import Saver
from linnet.fleet.specification import Command, Parameters, Program, digest, make_jobs
from linnet.fleet.state import State
from linnet.fleet.status import Status
from linnet.fleet.stop_rules import rule_name, rule_of
from linnet.fleet.storage import Storage, check_format
from linnet.fleet.stored_offers import stored_offers
from linnet.fleet.table import COLUMNS, Table, check_names
from linnet.reports.html_facts import facts_as_html
from linnet.reports.registry import register


class Bag:
    """Many jobs of one kind.

    Parameters
    ----------
    command : a command line with `{name}` for parameters (`"./simulate --x {x}"`), a list of such texts, or
    a Python
        function at the top of a module (or its import name, `"module:function"`)
    parameters : names with values, ranges, lists or `span(...)`, whose product is taken; or dictionaries,
    one a job
    sample : None for the product, "zip", "latin:50" or "random:50"
    repeats : how often each job is run
    cores, memory : of a job; memory in bytes
    deadline : hours in which the bag must be done
    budget : dollars that are never passed
    fraction : share of the jobs that must be done
    folder : where the bag lives; by default one in the current folder, named after what the bag computes
    hours : how long a job takes, if that is known; plans need it before the first jobs ran
    files : files and folders that each job finds where it runs
    retries : how often a job that fails by itself is run again. Preemption is no failure
    on_demand_after : preemptions after which a job runs on demand
    on_loss : "replenish", "smaller", "discard", or None for the best
    smallest : fewest cores a job can run on. Once the best type of server is known, one job each tries half
        as many servers, for as long as that costs less; and after a loss a job may begin again on those
        that are left. What a job saved goes on with as many servers as saved it
    stop : "median", or a function (own metric, others' metrics) -> bool: which jobs are hopeless
    search : an object with `ask()` and `tell(parameters, result)` that makes jobs while the bag runs; if it
        has `failed(parameters)`, that is called for jobs without a result. `linnet.fleet.Trials` makes one of
        a study of Optuna
    seed : of samples and of the order of jobs
    checkpoint : hours that saving its state takes a job; it is told when to (`linnet.fleet.Checkpoint`)
    saver : a tool that saves the process of a job before its server goes: "criu", or a `linnet.fleet.Saver`

    A job finds its parameters in `LINNET_PARAMETERS` (JSON), writes its result as JSON to the file
    `LINNET_RESULT` (a
    Python function returns it), appends lines of step and value to `LINNET_METRICS`, and keeps what should
    outlive a
    lost server in the folder `LINNET_CHECKPOINTS`.

    Examples
    --------
    >>> import tempfile
    >>> from linnet.fleet import Bag, Fleet, Local
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bag = Bag("statistics:mean", {"data": [[2, 4], [5, 7]]}, folder=folder + "/bag")
    ...     bag.run(Fleet([Local(1)])).table()["result"]
    [3, 6]
    """

    def __init__(
        self,
        command: Command,
        parameters: Parameters | None = None,
        *,
        sample: str | None = None,
        repeats: int = 1,
        cores: int = 1,
        memory: float | None = None,
        deadline: float | None = None,
        budget: float | None = None,
        fraction: float = 1.0,
        folder: str | os.PathLike[str] | None = None,
        hours: float | None = None,
        files: Sequence[str | os.PathLike[str]] = (),
        retries: int = 1,
        on_demand_after: int | None = None,
        on_loss: AfterLoss | None = None,
        smallest: int | None = None,
        stop: str | StopRule | None = None,
        search: Search | None = None,
        seed: int = 0,
        checkpoint: float | None = None,
        saver: str | Mapping[str, Any] | Saver | None = None,
    ) -> None:
        self.saver: Saver | None = Saver.of(saver)
        self.program: Program = Program.of(command)
        self.rules: Rules = Rules(
            cores,
            memory,
            deadline,
            budget,
            fraction,
            hours,
            retries,
            on_demand_after,
            on_loss,
            smallest,
            stop=None if stop is None else rule_name(stop),
            checkpoint=checkpoint,
        )
        self.seed: int = seed
        self.search: Search | None = search
        jobs = (
            [] if search is not None and parameters is None else make_jobs(parameters, sample, repeats, seed)
        )
        if not jobs and search is None:
            raise InputError("the bag has no jobs")
        for job in jobs:
            self.program.check(job)
        check_names(jobs)
        self.files: list[Path] = [_present(each) for each in files]
        self._jobs = jobs
        described = {**self._specification(), "program": {**self.program.to_json(), "path": ""}}
        self._digest = digest(described, jobs)
        self.storage: Storage = Storage(folder if folder is not None else f"linnet-bag-{self._digest[:8]}")
        if self.storage.exists:
            self._compare()

    def _specification(self) -> dict[str, Any]:
        return {
            "program": self.program.to_json(),
            "rules": self.rules.to_json(),
            "files": [str(each) for each in self.files],
            "seed": self.seed,
            "searched": self.search is not None,
            **({} if self.saver is None else {"saver": self.saver.to_json()}),
        }

    def _compare(self) -> None:
        """Refuse a folder in which there is another bag."""
        found = check_format(self.storage)
        if found.get("digest") == self._digest:
            return
        mine = self._specification()
        compared = ("rules", "files", "seed", "searched", "saver")
        differs = [key for key in compared if found.get(key) != mine.get(key)]
        theirs = found.get("program", {})
        if (theirs.get("argv"), theirs.get("function")) != (list(self.program.argv), self.program.function):
            differs.append("command")
        if not differs:
            differs.append("parameters")
        raise InputError(
            f"the bag in {self.folder} is another one (its {', '.join(differs)} differ): give the same "
            f"specification, "
            "open it with Bag.open(folder), or choose another folder"
        )

    @property
    def folder(self) -> Path:
        """Where the bag lives."""
        return self.storage.folder

    @classmethod
    def open(cls, folder: str | os.PathLike[str], search: Search | None = None) -> Bag:
        """The bag that lives in a folder.

        Parameters
        ----------
        folder : where it was made
        search : what makes its jobs, if something did: an object cannot be stored
        """
        storage = Storage(folder)
        found = check_format(storage)
        bag = cls.__new__(cls)
        try:
            program = found["program"]
            bag.program = Program(tuple(program["argv"]), program["function"], program["path"])
            bag.rules = Rules(**found["rules"])
            bag.files = [Path(each) for each in found["files"]]
            bag.seed, bag.search = found["seed"], search
            bag.saver = Saver.of(found.get("saver"))
            bag._digest = found["digest"]
        except (KeyError, TypeError) as error:
            raise FormatError(
                f"{storage.folder / 'bag.sqlite'} is damaged: what it runs is not told: {error}"
            ) from error
        bag._jobs = []
        bag.storage = storage
        return bag

    def _create(self) -> None:
        """Make the folder, if there is none yet."""
        if self.storage.exists:
            return
        with self.storage.making():
            if self.storage.exists:  # another process was first
                self._compare()
                return
            staged = self.folder / "inputs"
            shutil.rmtree(staged, ignore_errors=True)  # half of them, from one that was killed
            staged.mkdir()
            for each in self.files:
                copy = shutil.copytree if each.is_dir() else shutil.copy2
                copy(each, staged / each.name)
            self.storage.create({**self._specification(), "digest": self._digest}, self._jobs)

    # ---- before

    def plan(
        self, fleet: Fleet, *, hours: float | None = None, runs: int | None = None, seed: int = 0
    ) -> Plan:
        """What it will cost and take, by simulation, before anything is paid.

        Parameters
        ----------
        fleet : the servers to run it on
        hours : how long a job takes; by default what is known: from jobs that ran, or `Bag(hours=…)`
        runs : how many simulations

        Returns
        -------
        Plan with `cost` and `hours`, which have `.mean` and `.quantile(q)`; beside it on-demand,
        restart-always and no
        preemption
        """
        state = self.state()
        lengths = [hours] if hours is not None else self._lengths(state)
        if not lengths:
            raise InputError(
                "how long a job takes is not known yet: give hours=… to plan (or to Bag), or run a few "
                "jobs first"
            )
        offers = [_measured(offer, state) for offer in fleet.offers()]
        rules = replace(self.rules, servers=fleet.servers)
        notes = [str(fleet.prices)] if fleet.prices is not None else []
        jobs = state.left if state.jobs else self._count()
        if jobs == 0:
            raise InputError("nothing is left to be done in this bag")
        return make_plan(rules, offers, lengths, jobs, runs=runs, seed=seed, gap=_gap(state), notes=notes)

    def _count(self) -> int:
        return self.storage.count() if self.storage.exists else len(self._jobs)

    def _lengths(self, state: State) -> list[float]:
        found = (
            []
            if not self.storage.exists
            else [
                each.length for each in self.storage.records() if isinstance(each, Ended) and each.status == 0
            ]
        )
        if found:
            return found
        return [] if self.rules.hours is None else [self.rules.hours]

    # ---- running

    def run(self, fleet: Fleet, *, progress: Callable[[Status], None] | None = None) -> Bag:
        """Run it until every job has its row; a bag that was run before goes on where it was.

        Parameters
        ----------
        fleet : the servers to run it on
        progress : a function that is given a `Status` now and then

        Returns
        -------
        the bag; its rows are `bag.table()`
        """
        return self._run(fleet, progress, again=False)

    def _run(self, fleet: Fleet, progress: Callable[[Status], None] | None, *, again: bool) -> Bag:
        """Run it; `again`: whoever asked for its end before does not count any more."""
        self._create()
        self.storage.lock()
        register("bag", self.folder.name, str(self.folder))
        told = ToldBag(f"bag {self.folder.name}", fleet, progress)
        try:
            if again:
                (self.folder / "cancel").unlink(missing_ok=True)
            rules = replace(self.rules, servers=fleet.servers)
            inputs = [str(each) for each in sorted((self.folder / "inputs").iterdir())]
            controller = Controller(
                self.storage, self.program, rules, fleet, inputs=inputs, rule=rule_of(self.rules.stop),
                search=self.search, seed=self.seed, saver=self.saver,
                progress=_Progress(told, self),
            )  # fmt: skip
            controller.run()
        finally:
            told.end()
            self.storage.unlock()
        return self

    def resume(
        self, fleet: Fleet | None = None, *, budget: float | None = None, deadline: float | None = None,
        progress: Callable[[Status], None] | None = None,
    ) -> Bag:  # fmt: skip
        """Go on with it, after its controller ended, after `cancel`, or with more money or time.

        Parameters
        ----------
        fleet : the servers; by default those it ran on last
        budget, deadline : another one than before
        """
        if not self.storage.exists:
            raise FileMissingError(f"there is no bag in {self.folder}")
        if budget is not None or deadline is not None:
            self.rules = replace(
                self.rules,
                budget=self.rules.budget if budget is None else budget,
                deadline=self.rules.deadline if deadline is None else deadline,
            )
        return self._run(fleet or self.fleet(), progress, again=True)

    def fleet(self) -> Fleet:
        """The fleet it ran on last."""
        found = self.storage.get("fleet")
        if found is None:
            raise InputError(f"the bag in {self.folder} never ran: give a fleet")
        return Fleet.from_json(json.loads(found))

    def add(self, parameters: Parameters, *, sample: str | None = None, repeats: int = 1) -> int:
        """Add jobs, also while it runs (from any process); how many they are."""
        self._create()
        jobs = make_jobs(parameters, sample, repeats, self.seed)
        for job in jobs:
            self.program.check(job)
        check_names(jobs)
        self.storage.send(jobs)
        return len(jobs)

    def cancel(self, fleet: Fleet | None = None) -> None:
        """End it: jobs are stopped, servers are given back. Rows that are there stay; `resume` goes on."""
        if not self.storage.exists:
            raise FileMissingError(f"there is no bag in {self.folder}")
        (self.folder / "cancel").touch()
        if self.storage.is_run():
            return
        if self.state().closed is not None:
            (self.folder / "cancel").unlink(missing_ok=True)  # nothing is left to end; it may go on later
        elif self.storage.get("fleet") is not None:
            try:
                self.run(fleet or self.fleet())
            except JobError:
                if not self.storage.is_run():
                    raise
                # A controller began meanwhile: it sees what was asked for, and ends the bag.

    # ---- what is known

    def state(self) -> State:
        """What all records add up to."""
        if not self.storage.exists:
            return State(self.rules, [])
        with self.storage.snapshot() as seen:
            return self._state_in(seen)

    def _state_in(self, storage: Storage) -> State:
        state = State(self.rules, stored_offers(storage))
        for record in storage.records():
            state.apply(record)
        return state

    def status(self, estimate: bool = True) -> Status:
        """How it stands, with what is left to pay and to wait."""
        # Asked first: a controller that ends meanwhile has closed the bag, and did not leave it interrupted.
        is_run = self.storage.exists and self.storage.is_run()
        state = self.state()
        left: Plan | None = None
        lengths = self._lengths(state)
        if estimate and state.left and lengths and state.closed is None and state.offers:
            offers = [_measured(offer, state) for offer in state.offers if offer.limit != 0]
            with suppress(InputError):  # no servers there are could do it: how it stands is told nevertheless
                left = make_plan(
                    replace(self.rules, budget=None), offers, lengths, state.left, runs=10, gap=_gap(state),
                    compare=False,
                )  # fmt: skip
        return self._status(state, left, is_run)

    def _status(self, state: State, left: Plan | None, is_run: bool) -> Status:
        if state.closed is not None:
            name = state.closed
        elif is_run:
            name = "running"
        else:
            name = "interrupted" if state.jobs else "not begun"
        reasons = tuple(f"{state.offers[i].name}: {why}" for i, (_, _, why) in state.refusals.items())
        jobs = len(state.jobs) or self._count()
        waiting = len(state.waiting) if state.jobs else jobs
        return Status(
            name, jobs, state.done, state.failed, state.dropped, state.stopped, len(state.running), waiting,
            state.preemptions, len(state.live), state.cost(), state.now, reasons, left, self.rules.deadline,
            refused(self.folder),
        )  # fmt: skip

    def table(self) -> Table:
        """One row for each job, by job."""
        if not self.storage.exists:
            raise FileMissingError(f"there is no bag in {self.folder}; run it first")
        with self.storage.snapshot() as seen:
            state, results, jobs = self._state_in(seen), seen.results(), list(seen.jobs())
        rows: list[dict[str, Any]] = []
        names: dict[str, None] = {}
        for number, parameters in jobs:
            names.update(dict.fromkeys(parameters))
            job = state.jobs.get(number)
            row: dict[str, Any] = {"job": number, **parameters}
            if job is None:
                row.update(dict.fromkeys(COLUMNS[1:]), state="waiting")
            else:
                kind = None if job.offer is None else state.offers[job.offer].type
                row.update(
                    state=job.state, result=results.get(number), exit_status=job.status,
                    attempts=job.attempts,
                    preemptions=job.preemptions, failures=job.failures, server=kind, hours=job.hours,
                    dollars=job.dollars,
                )  # fmt: skip
            rows.append(row)
        return Table(rows, list(names))

    def report(self) -> str:
        """The bill: what it cost and took, beside on-demand, restart-always and no preemption (S10)."""
        state = self.state()
        lines = [str(self._status(state, None, False))]
        lengths = self._lengths(state)
        if lengths and state.done:
            offers = [_measured(offer, state) for offer in state.offers if offer.limit != 0]
            lines.append("The same jobs, simulated:")
            lines.append(
                str(make_plan(replace(self.rules, budget=None), offers, lengths, state.done, runs=10))
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Bag of {self._count()} jobs in {self.folder}>"

    def _repr_html_(self) -> str:
        told = {"folder": str(self.folder), "jobs": f"{self._count():,}"}
        if not self.storage.exists:
            return facts_as_html("Bag", told)
        status = self.status(estimate=False)
        told |= {"state": status.state, "done": f"{status.done:,}", "cost": f"{status.cost:.4g} dollars"}
        return facts_as_html("Bag", told, status.done / max(status.jobs, 1))


class _Progress:
    """Tells the user how a bag stands, at most once a second."""

    def __init__(self, tell: Callable[[Status], None], bag: Bag) -> None:
        self.tell, self.bag, self.told = tell, bag, -inf

    def __call__(self, controller: Controller) -> None:
        import time

        if controller.state.closed is not None or time.monotonic() - self.told >= 1:
            self.told = time.monotonic()
            self.tell(self.bag._status(controller.state, None, True))  # pyright: ignore[reportPrivateUsage]


def _measured(offer: Any, state: State) -> Any:
    """An offer with the boot that was measured, if any was: waiting in a queue counts."""
    seen = state.measured.get(offer.type)
    return replace(offer, boot=seen.boot_hours / seen.boots) if seen is not None and seen.boots else offer


def _gap(state: State) -> float:
    gaps = sum(each.gaps for each in state.measured.values())
    return sum(each.gap_hours for each in state.measured.values()) / gaps if gaps else 0.0


def _present(path: str | os.PathLike[str]) -> Path:
    found = Path(path).resolve()
    if not found.exists():
        raise FileMissingError(f"there is no input file {found}")
    return found
