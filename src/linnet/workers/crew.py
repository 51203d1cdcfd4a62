"""The workers of a job, as its client sees to them: started while it runs, seen off when it has ended.

A thread asks the provisioner about twice a second. What goes wrong there is told to whoever waits for the
job, if no worker is left that could. When the job is over, workers leave by themselves; those started here
that a kernel keeps are killed in the end.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress

from linnet.errors import JobError, LinnetError
from linnet.programs import Task
from linnet.workers.embedded import HeldLedgerError
from linnet.workers.files import check_files
from linnet.workers.job_parts import Parts
from linnet.workers.launcher import Billing, Killing, Launcher, Limits
from linnet.workers.names import named
from linnet.workers.provisioner import Policy, Sample, Trials, note_ended, provision
from linnet.workers.report import kernel_counts, slow_tasks, total
from linnet.workers.serving import check_imports
from linnet.workers.spec import JobSpec
from linnet.workers.timeouts import ANSWER, within

_PERIOD = 0.5
"""Seconds between looks of the provisioner."""
_ANSWER = ANSWER
"""Seconds that the ledger gets to answer it."""
_STUCK = 5.0
"""Seconds that the ledger may fail before workers that failed, too, are told of."""
_SLOW = 2.0
"""Seconds between looks for tasks that take far too long."""
_POLL = 0.01
"""Seconds between looks at workers that are to leave."""
LAST = 15.0
"""Seconds that workers get to leave when the job is over, before they are killed."""


class Crew:
    """The workers that one client sees to."""

    def __init__(
        self,
        parts: Parts,
        spec: JobSpec,
        launcher: Launcher | None,
        policy: Policy,
        limits: Limits,
        imports: Sequence[str],
        files: Sequence[str],
    ) -> None:
        self._parts, self._spec = parts, spec
        self._launcher = launcher
        self.policy: Policy = policy
        self._limits, self._imports, self._files = limits, imports, files
        self._stop, self._reprieve = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._names: list[str] = []
        self._stuck_since: float | None = None
        """Since when workers cannot be seen to, because the ledger fails."""
        self._fault: str | None = None
        """The error in seeing to workers, as it was said last."""
        self._looked = 0.0
        self._warned: set[str] = set()
        self.trace: list[Sample] = []
        """What the provisioner saw, about twice a second."""

    def bill(self) -> list[tuple[str, str]]:
        """What the servers cost, for the report, if the launcher knows."""
        if not isinstance(self._launcher, Billing):
            return []
        dollars, hours, servers, lost = self._launcher.bill
        return [
            ("bill", f"{dollars:.4f} dollars: {servers} servers, {lost} lost, {hours:.4g} hours together")
        ]

    # ---- while the job runs

    def start(self) -> None:
        """See to it that there are workers, from now on."""
        if self._launcher is None:
            return
        check_imports(self._spec, self._imports)
        check_files(self._spec.program, self._files)
        # What befell workers before the job was resumed says nothing of those to come.
        trials = Trials(self._launcher.problem())
        self._stop.clear()
        self._reprieve.set()
        self._stuck_since = self._fault = None
        self._thread = threading.Thread(
            target=self._provision, args=(trials,), name="provisioner", daemon=True
        )
        self._thread.start()

    def _provision(self, trials: Trials) -> None:
        assert self._launcher is not None
        given = self._limits, self._imports, self._files, trials
        while not self._stop.is_set():
            try:
                with within(_ANSWER):
                    sample = provision(self._parts, self._launcher, self.policy, *given)
                self.trace.append(sample)
                self._stuck_since = self._fault = None
            except Exception as error:
                # The ledger does not answer now; workers go on, and so does this. Should none be there,
                # whoever waits is told.
                foreseen = isinstance(error, LinnetError | OSError)
                self._fault = str(error) if foreseen else f"{type(error).__name__}: {error}"
                self._stuck_since = self._stuck_since or time.monotonic()
            self._names += trials.started
            trials.started.clear()
            self._stop.wait(_PERIOD)

    def check(self) -> None:
        """Tell whoever waits what nobody else could: that all workers fail, or that a task takes too long."""
        now = time.monotonic()
        since = self._stuck_since
        if since is not None and now - since > _STUCK:
            problem = (self._launcher.problem() if self._launcher is not None else None) or self._fault
            if problem is not None and not self._parts.ledger.workers(within=self.policy.silence):
                self.stop()
                raise JobError(f"no worker is alive: {problem}")
        if now - self._looked > _SLOW:
            self._looked = now
            self._warn_of_slow_tasks()

    def _warn_of_slow_tasks(self) -> None:
        for name, seconds in slow_tasks(self._parts.ledger.workers(within=self.policy.silence)).items():
            task = named(name)
            if name in self._warned or not isinstance(task, Task):
                continue
            self._warned.add(name)
            warnings.warn(
                f"task {name} is in its kernel for {seconds:.0f} s, far longer than others of its kind: does "
                "it hang? cancel() ends it, Options(task_seconds=...) limits all\n"
                f"  in {self._spec.bound.where(task)}",
                RuntimeWarning,
                stacklevel=5,
            )

    def stop(self) -> bool:
        """Start no more workers; whether that was not so before."""
        self._stop.set()
        if self._thread is None:
            return False
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None
        return True

    # ---- when it has ended

    def see_off(self, seconds: float) -> None:
        """Give workers time to see that the job is over: what they write after a deletion would stay."""
        deadline = time.monotonic() + seconds
        with within(seconds + _ANSWER):
            while time.monotonic() < deadline:
                self.note_ended()
                if not self._parts.ledger.workers(within=self.policy.silence):
                    return
                time.sleep(_POLL)

    def make_way(self) -> None:
        """See that the ledger can be written to: a worker that hangs may keep it for itself.

        Whoever calls this ends the job, or begins it anew, so workers that were started here may be killed.
        A ledger on a server is nobody's for long.
        """
        if not self._parts.ledger.url.startswith("file:"):
            return
        try:
            self._write_nothing()
        except HeldLedgerError:
            if not isinstance(self._launcher, Killing):
                raise
            self._launcher.kill(self._names)
            self._write_nothing()

    def _write_nothing(self) -> None:
        try:
            with within(_ANSWER):
                self._parts.ledger.leave("nobody/0")
        except HeldLedgerError:
            raise
        except LinnetError:
            return  # what follows tells it better

    def note_ended(self) -> None:
        """Tell the ledger which workers the launcher saw end."""
        if self._launcher is not None:
            note_ended(self._parts, self._launcher)

    def wait_for_records(self, seconds: float) -> None:
        """Let workers tell what they counted last: those that are alive do so when they leave."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.note_ended()
            ledger = self._parts.ledger
            status, workers = ledger.status(), ledger.workers()
            told = total(workers).get("tasks", 0) >= sum(kernel_counts(status))
            if status.state == "running" or (told and all(each.left for each in workers)):
                return
            if not told and not any(not each.left and each.facts for each in workers):
                return  # who could tell is dead
            time.sleep(_POLL)

    def kill_later(self) -> None:
        """Kill those workers that are still there in some seconds, where the launcher can.

        A kernel that does not give back the interpreter's lock lets no thread of its worker act, so that it
        cannot leave by itself.
        """
        launcher, names = self._launcher, list(self._names)
        if not names or not isinstance(launcher, Killing):
            return
        self._reprieve.clear()

        def kill() -> None:
            if not self._reprieve.wait(LAST):
                with suppress(LinnetError, OSError):
                    launcher.kill(names)

        threading.Thread(target=kill, name="last workers", daemon=True).start()

    def close(self) -> None:
        """Let go of the workers; they go on."""
        self.stop()
        if self._launcher is not None:
            self._launcher.close()
