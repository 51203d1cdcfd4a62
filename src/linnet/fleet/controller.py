"""The controller: carries out what is decided about a bag, and tells the state what happened. All I/O is
here.

Each round: look (what ended, which servers came or went, what others ask for), decide, store both in one
transaction, and only then act. Whatever was stored and not done, because the controller was killed in
between, is
done by the next one: every action can be repeated, and servers and attempts have names that were stored
before.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from linnet.errors import FormatError, InputError, JobError
from linnet.fleet.agent import UNREADABLE, open_file, read_result
from linnet.fleet.deciding import Decider
from linnet.fleet.elapsed import elapsed
from linnet.fleet.fleet import Fleet
from linnet.fleet.inbox import read_jobs, set_aside
from linnet.fleet.offers import Offer
from linnet.fleet.policies import StopRule
from linnet.fleet.providers.provider import Place, Seen, Wanted
from linnet.fleet.records import (
    Added,
    Cancelled,
    Decision,
    Ended,
    Event,
    Launch,
    Lost,
    Refused,
    Release,
    Reopened,
    Reported,
    Start,
    Stop,
    Up,
    Warned,
)  # fmt: skip
from linnet.fleet.rules import Rules
from linnet.fleet.saving import Saver, exit_of, saved_hours, worked_hours
from linnet.fleet.specification import Program
from linnet.fleet.state import State
from linnet.fleet.storage import Storage
from linnet.fleet.stored_offers import merged_offers

METRICS_EVERY = 0.5
"""Seconds between two looks at metrics."""
METRICS = 1 << 20
"""Bytes of metrics that are read at a look, at most."""
PATIENCE = 120.0
"""Seconds to wait at the end until providers say that no server is left."""


class Search(Protocol):
    """Makes jobs while the bag runs: it asks for parameters and is told results."""

    def ask(self) -> Mapping[str, Any] | None:
        """Parameters of one more job; None: not now, or no more once nothing runs."""
        ...

    def tell(self, parameters: Mapping[str, Any], result: Any) -> None:
        """What a job gave."""
        ...


class Controller:
    """Runs one bag on one fleet, in this process."""

    def __init__(
        self,
        storage: Storage,
        program: Program,
        rules: Rules,
        fleet: Fleet,
        *,
        inputs: Sequence[str] = (),
        rule: StopRule | None = None,
        search: Search | None = None,
        seed: int = 0,
        saver: Saver | None = None,
        progress: Callable[[Controller], None] | None = None,
    ) -> None:
        self.saver: Saver | None = saver
        self.storage: Storage = storage
        self.program: Program = program
        self.rules: Rules = rules
        self.fleet: Fleet = fleet
        self.inputs: list[str] = list(inputs)
        self.search: Search | None = search
        self.progress = progress
        self.place: Place = Place(str(storage.get("id")), storage.folder)
        self._order = random.Random(seed)
        self.offers: list[Offer] = merged_offers(storage, fleet)
        self.state: State = State(rules, self.offers)
        self._stopped: dict[int, int] = {}
        for record in storage.records():
            if isinstance(record, Stop) and (stopped := self.state.running.get(record.attempt)) is not None:
                self._stopped[record.attempt] = stopped.servers[0]
            self.state.apply(record)
        self.poll: float = max(each.poll for each in fleet.providers)
        self.decider: Decider = Decider(
            self.state, rule, margin=3 * self.poll / 3600 * fleet.speed, saver=saver is not None
        )
        self._since = elapsed()
        self._hours = max((time.time() - self._begun()) / 3600 * fleet.speed, self.state.now)
        self._asked: dict[str, float] = {}
        self._metrics_at = 0.0
        self._read: dict[int, int] = {}
        self._where = {number: self.name(each.servers[0]) for number, each in self.state.running.items()}
        self._numbers: list[int] = []
        self._told_failures: set[int] = set()

    def _begun(self) -> float:
        found = self.storage.get("epoch")
        if found is None:
            found = repr(time.time())
            self.storage.put({"epoch": found})
        return float(found)

    def now(self) -> float:
        """Hours since the bag began.

        The clock of the wall is read once: while the controller runs, it may be set back or forward, and
        servers are paid for neither more nor less.
        """
        return max(self._hours + (elapsed() - self._since) / 3600 * self.fleet.speed, self.state.now)

    def name(self, server: int) -> str:
        """Of a server; its provider knows it by this."""
        return f"{self.offers[self.state.servers[server].offer].provider}-{self.place.id}-{server}"

    # ---- the run

    def run(self) -> None:
        """Until the bag is over."""
        for provider in self.fleet.providers:
            provider.open(self.place)
        try:
            self._begin()
            while True:
                while self.state.closed is None:
                    self.storage.beat()
                    self._round()
                    if self.progress is not None:
                        self.progress(self)
                    if self.state.closed is None:
                        time.sleep(self.poll)
                self._leave()
                if not self._more_came():
                    break
                self._reopen()
        finally:
            for provider in self.fleet.providers:
                provider.close()

    def _begin(self) -> None:
        """Add jobs that were never added, and put right what a killed controller left undone."""
        self.storage.beat()
        there = {each.name for each in self.fleet.providers}
        absent = {self.offers[self.state.servers[each].offer].provider for each in self.state.live} - there
        if absent:
            raise InputError(
                f"servers of {', '.join(sorted(absent))} still belong to this bag, and the fleet has no such "
                "provider: resume it with one that has"
            )
        known = self.state.jobs.keys()
        missing = [number for number, _ in self.storage.jobs() if number not in known]
        if missing:
            self._order.shuffle(missing)
            added = Added(self.now(), tuple(missing))
            self.state.apply(added)
            self.storage.write([added])
        if self.state.closed in ("cancelled", "budget"):
            (self.storage.folder / "cancel").unlink(missing_ok=True)
            self._reopen()
        elif self._more_came():
            self._reopen()
        self._tell_what_was()
        if self.state.closed is not None and not self.state.live:
            return
        seen = self._seen()
        undone = [
            each for each in sorted(self.state.live) if self.name(each) not in seen and not self._was_up(each)
        ]
        self._launch([(each, self.state.servers[each].offer) for each in undone])
        self._end_orphans(seen)
        for number, attempt in self.state.running.items():
            if not self._ordered(number, self.name(attempt.servers[0])):
                self._order_attempt(number, attempt.job, attempt.servers)
        for number, server in self._stopped.items():
            if server in self.state.live and not (self.storage.attempt(number) / "exit.json").exists():
                self._where[number] = self.name(server)
                self._stop_attempt(number)

    def _more_came(self) -> bool:
        """Whether jobs were asked for after the last ones were done."""
        if self.state.closed != "done":
            return False
        return any(not self.storage.is_taken(each.name) for each in self.storage.inbox())

    def _reopen(self) -> None:
        reopened = Reopened(self.now())
        self.state.apply(reopened)
        self.storage.write([reopened])

    def _tell_what_was(self) -> None:
        """A search that goes on with a bag does not know what came before."""
        if self.search is not None:
            for job, result in self.storage.results().items():
                self.search.tell(self.storage.parameters(job), result)

    def _was_up(self, server: int) -> bool:
        folder = self.place.server(self.name(server))
        return self.state.servers[server].up is not None or (folder / "up").exists()

    def _ordered(self, attempt: int, server: str) -> bool:
        place = self.storage.attempt(attempt)
        order = self.place.server(server) / "orders" / f"{attempt}.json"
        return order.exists() or (place / "work").exists() or (place / "exit.json").exists()

    def _round(self) -> None:
        rows: list[tuple[int, int, str | None]] = []
        markers: list[Path] = []
        events: list[Event] = []
        new: list[tuple[int, Mapping[str, Any]]] = []
        self._look_at_attempts(events, rows, markers)
        self._look_at_servers(events)
        self._look_at_metrics(events)
        self._look_at_inbox(events, new, markers)
        if (self.storage.folder / "cancel").exists() and not self.state.cancelled:
            events.append(Cancelled(self.now()))
        for event in events:
            self.state.apply(event)
        self._search(events, new, rows)
        decisions = self.decider.decide(self.now(), more=self.search is not None and bool(self.state.running))
        if events or decisions:
            self.storage.write(
                events + decisions, rows, new, [each.name for each in markers if each.parent.name == "inbox"]
            )
        for marker in markers:
            marker.unlink(missing_ok=True)
        self._carry_out(decisions)
        lost = [each.server for each in events if isinstance(each, Lost | Refused)]
        if lost:
            self._release(lost)

    # ---- looking

    def _look_at_attempts(
        self, events: list[Event], rows: list[tuple[int, int, str | None]], markers: list[Path]
    ) -> None:
        for entry in os.scandir(self.storage.folder / "done"):
            if not entry.name.isdecimal():
                continue
            marker, number = Path(entry.path), int(entry.name)
            attempt = self.state.running.get(number)
            if attempt is not None:
                place = self.storage.attempt(number)
                status, hours, warned = exit_of(place / "exit.json")
                hours *= self.fleet.speed
                text: str | None = None
                if status == 0:
                    try:
                        text = read_result(place / "result.json")
                    except ValueError:
                        status = UNREADABLE
                self._read_metrics(number, attempt.job, events)
                events.append(
                    Ended(self.now(), number, status, hours, warned, self._work(attempt.job, hours))
                )
                if status == 0:
                    rows.append((attempt.job, number, text))
            markers.append(marker)

    def _seen(self) -> dict[str, Seen]:
        return {name: seen for each in self.fleet.providers for name, seen in each.seen().items()}

    def _look_at_servers(self, events: list[Event]) -> None:
        seen, now = self._seen(), self.now()
        for number in sorted(self.state.live):
            name, server = self.name(number), self.state.servers[number]
            found = seen.get(name)
            folder = self.place.server(name)
            if server.up is None and found is not None and (folder / "up").exists():
                events.append(Up(now, number))
            if found is None:
                asked = self._asked.get(name)
                provider = self.fleet.provider(self.offers[server.offer].provider)
                if asked is not None and time.monotonic() - asked < provider.patience:
                    continue
                events.append(Lost(now, number, "it is gone"))
            elif found.condition == "gone":
                events.append(Lost(now, number, found.why or "it is gone"))
            elif found.condition == "refused":
                events.append(Refused(now, number, found.why))
            elif not server.warned and ((folder / "warned").exists() or (folder / "rebalance").exists()):
                # Also on a recommendation to rebalance: what runs goes on, and no more comes.
                events.append(Warned(now, number))
        self._end_orphans(seen)

    def _end_orphans(self, seen: Mapping[str, Seen]) -> None:
        """Servers of this bag that it gave back, or does not know, are ended."""
        live = {self.name(each) for each in self.state.live}
        for provider in self.fleet.providers:
            over = [
                name
                for name, each in seen.items()
                if name not in live and name.startswith(f"{provider.name}-") and each.condition != "gone"
            ]
            if over:
                provider.release(over)

    def _look_at_metrics(self, events: list[Event]) -> None:
        if self.decider.rule is None or time.monotonic() - self._metrics_at < METRICS_EVERY:
            return
        self._metrics_at = time.monotonic()
        for number, attempt in self.state.running.items():
            self._read_metrics(number, attempt.job, events)

    def _read_metrics(self, attempt: int, job: int, events: list[Event]) -> None:
        """Whole lines of step and value that came since the last look; other lines are no metric."""
        if self.decider.rule is None:
            return
        begun = self._read.get(attempt, 0)
        with (
            contextlib.suppress(OSError),
            open_file(self.storage.attempt(attempt) / "metrics") as file,
        ):
            file.seek(begun)
            data = file.read(METRICS)
            lines, end, _ = data.rpartition(b"\n")
            # A piece without any end of a line holds no metric: what comes after it may.
            self._read[attempt] = begun + (len(lines) + len(end) or len(data) // METRICS * METRICS)
            for line in lines.decode(errors="replace").splitlines():
                with contextlib.suppress(ValueError):
                    step, value = (float(each) for each in line.replace(",", " ").split())
                    if isfinite(step):
                        events.append(Reported(self.now(), job, step, value))

    def _look_at_inbox(
        self, events: list[Event], new: list[tuple[int, Mapping[str, Any]]], markers: list[Path]
    ) -> None:
        for message in self.storage.inbox():
            if self.storage.is_taken(message.name):
                markers.append(message)
                continue
            try:
                jobs = read_jobs(message, self.program)
            except (FormatError, InputError) as error:
                set_aside(self.storage.folder, message, error)
            else:
                markers.append(message)
                self._add(jobs, events, new)

    def _add(
        self, jobs: Sequence[Mapping[str, Any]], events: list[Event], new: list[tuple[int, Mapping[str, Any]]]
    ) -> None:
        first = max(self.state.jobs, default=-1) + 1 + len([1 for n, _ in new if n not in self.state.jobs])
        numbers = tuple(range(first, first + len(jobs)))
        new.extend(zip(numbers, jobs, strict=True))
        events.append(Added(self.now(), numbers))

    def _search(
        self,
        events: list[Event],
        new: list[tuple[int, Mapping[str, Any]]],
        rows: Iterable[tuple[int, int, str | None]],
    ) -> None:
        """Tell the search what came, and ask it for as many jobs as servers could take."""
        if self.search is None:
            return
        for job, _, text in rows:
            self.search.tell(self.storage.parameters(job), None if text is None else json.loads(text))
        self._tell_failures()
        room = sum(
            (each.limit or 1) * slots for each, slots in zip(self.offers, self.state.slots, strict=True)
        )
        while len(self.state.waiting) + len(self.state.running) < room:
            found = self.search.ask()
            if found is None:
                return
            before = len(events)
            self._add([dict(found)], events, new)
            for event in events[before:]:
                self.state.apply(event)

    def _tell_failures(self) -> None:
        """Say which jobs will have no result, to a search that wants to know."""
        failed = getattr(self.search, "failed", None)
        state = self.state
        over = state.failed + state.dropped + state.stopped
        if failed is None or over == len(self._told_failures):
            return
        for number, job in state.jobs.items():
            if job.state in ("failed", "dropped", "stopped") and number not in self._told_failures:
                self._told_failures.add(number)
                failed(self.storage.parameters(number))

    # ---- acting

    def _carry_out(self, decisions: Sequence[Decision]) -> None:
        self._launch([(each.server, each.offer) for each in decisions if isinstance(each, Launch)])
        for each in decisions:
            if isinstance(each, Start):
                self._order_attempt(each.attempt, each.job, each.servers)
            elif isinstance(each, Stop):
                self._stop_attempt(each.attempt)
        self._release([each.server for each in decisions if isinstance(each, Release)])

    def _launch(self, servers: Sequence[tuple[int, int]]) -> None:
        groups: dict[str, list[Wanted]] = {}
        for server, offer in servers:
            name = self.name(server)
            wanted = Wanted(name, self.offers[offer], self._number(server))
            groups.setdefault(self.offers[offer].provider, []).append(wanted)
            self._asked[name] = time.monotonic()
        for provider, wanted in groups.items():
            self.fleet.provider(provider).launch(wanted)

    def _number(self, server: int) -> int:
        """How many servers of its offer were asked for before."""
        for each in self.state.servers[len(self._numbers) :]:
            before = sum(1 for other in self.state.servers[: len(self._numbers)] if other.offer == each.offer)
            self._numbers.append(before)
        return self._numbers[server]

    def _release(self, servers: Sequence[int]) -> None:
        groups: dict[str, list[str]] = {}
        for server in servers:
            provider = self.offers[self.state.servers[server].offer].provider
            groups.setdefault(provider, []).append(self.name(server))
        for provider, names in groups.items():
            self.fleet.provider(provider).release(names)

    def _order_attempt(self, attempt: int, job: int, servers: Sequence[int]) -> None:
        """Put an order where the first of the servers finds it."""
        parameters = self.storage.parameters(job)
        place = self.storage.attempt(attempt)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        server = self.state.servers[servers[0]]
        environment = {
            "LINNET_RESULT": str(place / "result.json"),
            "LINNET_METRICS": str(place / "metrics"),
            "LINNET_CHECKPOINTS": str(self.storage.folder / "checkpoints" / str(job)),
            "LINNET_PARAMETERS": json.dumps(parameters),
            "LINNET_JOB": str(job),
            "LINNET_BAG": self.place.id,
            "LINNET_SERVERS": ",".join(self.name(each) for each in servers),
            "LINNET_HOSTS": ",".join(self._host(each) for each in servers),
            "LINNET_CORES": str(min(self.rules.cores, len(servers) * self.offers[server.offer].cores)),
            "LINNET_SERVER_AGE": f"{self.now() - server.launched:.6f}",
        }
        if self.program.path:
            environment["LINNET_PATH"] = self.program.path
        if (plan := self._checkpoint_plan(job, servers)) is not None:
            environment["LINNET_CHECKPOINT_PLAN"] = ",".join(f"{each:.6g}" for each in plan)
        order: dict[str, Any] = {
            "argv": self.program.command(parameters), "environment": environment, "inputs": self.inputs,
        }  # fmt: skip
        if self.saver is not None:
            order["saver"] = self.saver.to_json()
        self._where[attempt] = self.name(servers[0])
        folder = self.place.server(self._where[attempt]) / "orders"
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{attempt}.part"
        part.write_text(json.dumps(order), encoding="utf-8")
        part.rename(folder / f"{attempt}.json")

    def _host(self, server: int) -> str:
        """The machine of a server, for programs that run on several: `mpiexec -hosts $LINNET_HOSTS`."""
        try:
            return (self.place.server(self.name(server)) / "host").read_text(encoding="utf-8")
        except (OSError, ValueError):
            return self.name(server)

    def _checkpoint_plan(self, job: int, servers: Sequence[int]) -> list[float] | None:
        """Hours of the clock between checkpoints, for what is left of a job on a server of this age."""
        offer = self.state.servers[servers[0]].offer
        age = self.now() - min(self.state.servers[each].launched for each in servers)
        saved = saved_hours(self.storage.folder / "checkpoints" / str(job)) * self.fleet.speed
        found = self.decider.known.saves(offer, len(servers), saved, age)
        return None if found is None else [each / self.fleet.speed for each in found]

    def _work(self, job: int, hours: float) -> float | None:
        """Hours of work of a job over all its attempts: as it says, or at least what is known to be saved."""
        if self.rules.checkpoint is None:
            return None
        folder = self.storage.folder / "checkpoints" / str(job)
        found = worked_hours(folder)
        if found is None:
            return max(hours, saved_hours(folder) * self.fleet.speed)
        return found * self.fleet.speed

    def _stop_attempt(self, attempt: int) -> None:
        name = self._where.pop(attempt, None)
        if name is not None and (orders := self.place.server(name) / "orders").exists():
            (orders / f"{attempt}.json").unlink(missing_ok=True)
            (orders / f"{attempt}.stop").touch()

    def _leave(self) -> None:
        """Wait until no server is left; what is still there is ended again."""
        until = time.monotonic() + PATIENCE
        alive: dict[str, Seen] = {}
        while time.monotonic() < until:
            alive = {
                name: each for name, each in self._seen().items() if each.condition in ("alive", "starting")
            }
            if not alive:
                return
            self._end_orphans(alive)
            time.sleep(max(self.poll, 0.01))
        raise JobError(
            f"the bag is over, but servers {', '.join(sorted(alive))} are still there; end them by hand, "
            "they may cost money"
        )
