"""Workers as jobs of a Slurm cluster."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from linnet.errors import JobError
from linnet.workers.launcher import Order
from linnet.workers.launchers.processes import command, environment

_SHOWN = 2000


class Slurm:
    """Gives each worker to `sbatch` as a job of one task.

    `options` go to `sbatch` as they are (`["--partition=short", "--time=2:00:00"]`). A job that Slurm
    takes its node from is not started again by Slurm: the provisioner starts another worker. What workers
    print goes to files in `logs`, a directory that the nodes can write to.
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

    def start(self, order: Order) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        for name in order.names:
            done = subprocess.run(
                self._call(name, command(order, name)),
                env={**environment(), **order.secrets},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise JobError(f"sbatch took no worker: {done.stderr.strip() or done.stdout.strip()}")
            self.jobs.append(done.stdout.strip().partition(";")[0])

    def _call(self, name: str, worker: Sequence[str]) -> list[str]:
        log = self._logs / f"{name.replace('/', '-')}.log"
        own = ["--parsable", "--no-requeue", "--ntasks=1", "--job-name=linnet-worker", f"--output={log}"]
        return [self._sbatch, *own, *self._options, f"--wrap=exec {shlex.join(worker)}"]

    def ended(self) -> list[str]:
        return []  # the ledger knows as soon as Slurm does

    def problem(self) -> str | None:
        """What workers that failed printed last."""
        for log in sorted(self._logs.glob("*.log"), key=lambda path: -path.stat().st_mtime):
            said = log.read_text(errors="replace")
            if "linnet: error" in said or "Traceback" in said:
                return f"worker {log.stem}: {said[-_SHOWN:].strip()}"
        return None

    def close(self) -> None:
        """Nothing is held."""

    def __repr__(self) -> str:
        return f"Slurm(options={self._options!r})"
