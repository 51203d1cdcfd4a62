"""Workers as jobs of a Slurm cluster."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from linnet.errors import JobError
from linnet.workers.launcher import Order
from linnet.workers.launchers.processes import command, environment
from linnet.workers.secrets import put_aside, secrets_of, without_secrets

_SHOWN = 2000
_LOOK = 5.0
"""Seconds between two questions to Slurm."""


class Slurm:
    """Gives each worker to `sbatch` as a job of one task.

    `options` go to `sbatch` as they are (`["--partition=short", "--time=2:00:00"]`). A job that Slurm
    takes its node from is not started again by Slurm: the provisioner starts another worker. What workers
    print goes to files in `logs`, a directory that the nodes can write to. Passwords are put there, too, in a
    file for each worker that only its owner can read, and that the worker removes.
    """

    def __init__(
        self,
        *,
        options: Sequence[str] = (),
        logs: str | os.PathLike[str] | None = None,
        sbatch: str = "sbatch",
    ) -> None:
        if shutil.which(sbatch) is None:
            raise JobError(
                f"{sbatch!r} is not on the PATH: is this a machine of a Slurm cluster? "
                "(Debian has it in the package slurm-client)"
            )
        self._sbatch = sbatch
        self._options = list(options)
        self._logs = Path(logs or tempfile.mkdtemp(prefix="linnet-slurm-"))
        self.jobs: list[str] = []
        """Numbers of the Slurm jobs that were submitted."""
        self._of: dict[str, str] = {}
        """Of each worker."""
        self._aside: dict[str, Path] = {}
        """Files with the secrets of workers, which these remove when they begin."""
        self._listed: set[str] = set()
        """Jobs that Slurm lists as waiting or running;"""
        self._asked = -_LOOK
        """when it was asked."""

    def start(self, order: Order) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        shared = environment()
        secrets = secrets_of(shared, order.secrets)
        for name in order.names:
            # Slurm would keep what is in the environment in its own files.
            aside = put_aside(secrets, self._logs) if secrets else None
            done = subprocess.run(
                self._call(name, command(order, name, aside)),
                env=without_secrets(shared),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                if aside is not None:
                    aside.unlink()
                raise JobError(f"sbatch took no worker: {done.stderr.strip() or done.stdout.strip()}")
            if aside is not None:
                self._aside[name] = aside
            self._of[name] = done.stdout.strip().partition(";")[0]
            self.jobs.append(self._of[name])

    def _call(self, name: str, worker: Sequence[str]) -> list[str]:
        log = self._logs / f"{name.replace('/', '-')}.log"
        own = ["--parsable", "--no-requeue", "--ntasks=1", "--job-name=linnet-worker", f"--output={log}"]
        return [self._sbatch, *own, *self._options, f"--wrap=exec {shlex.join(worker)}"]

    def coming(self) -> list[str]:
        """Those whose jobs wait, or run: a cluster that is full may let them wait for days."""
        now = time.monotonic()
        if self._of and now - self._asked > _LOOK:
            self._asked = now
            with suppress(OSError, subprocess.CalledProcessError):  # as it was, until Slurm answers
                self._listed = set(
                    subprocess.run(
                        [str(Path(self._sbatch).with_name("squeue")), "--noheader", "--me", "--format=%i"],
                        env=without_secrets(environment()),
                        capture_output=True,
                        text=True,
                        check=True,
                    ).stdout.split()
                )
        return [name for name, job in self._of.items() if job in self._listed]

    def ended(self) -> list[str]:
        return []  # the ledger knows as soon as Slurm does

    def problem(self) -> str | None:
        """What workers that failed printed last."""
        for log in sorted(self._logs.glob("*.log"), key=lambda path: -path.stat().st_mtime):
            said = log.read_text(errors="replace")
            if "linnet: error" in said or "Traceback" in said:
                return f"worker {log.stem}: {said[-_SHOWN:].strip()}"
        return None

    def kill(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._aside:
                self._aside[name].unlink(missing_ok=True)
        jobs = [self._of[name] for name in names if name in self._of]
        if jobs:
            scancel = str(Path(self._sbatch).with_name("scancel"))
            subprocess.run([scancel, "--quiet", *jobs], env=environment(), capture_output=True, check=False)

    def close(self) -> None:
        """Nothing is held."""

    def __repr__(self) -> str:
        return f"Slurm(options={self._options!r})"
