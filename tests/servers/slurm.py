"""Slurm: a controller and several nodes, all on this machine, with an authentication daemon of their own."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from servers.process import Process, free_ports, program

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
MpiDefault=none
SlurmdTimeout=10
InactiveLimit=0
KillWait=2
MinJobAge=300
ReturnToService=1
JobRequeue=1
SwitchType=switch/none
"""


class SlurmCluster:
    """Nodes n1 … n4 with one core each, in the partition `tests`.

    Programs of Slurm find it by the variables in `environment`; `run("squeue")` sets them.
    """

    def __init__(self, folder: Path, nodes: int = 4) -> None:
        self.folder = folder
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.configuration = folder / "slurm.conf"
        self._processes: list[Process] = []

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.configuration)}

    def run(self, *command: str) -> str:
        """What a program of Slurm says, without the line's end; its failure is an error with its words."""
        done = subprocess.run(
            [program(command[0]), *command[1:]],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(
                f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout.strip()

    def states(self) -> dict[str, str]:
        """Node to its state: idle, mixed, allocated, down …"""
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)

    def preempt(self, node: str) -> None:
        """Takes a node away; what ran there is put back into the queue."""
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=preempted")

    def give_back(self, node: str) -> None:
        self.run("scontrol", "update", f"nodename={node}", "state=resume")

    def start_now(self, job: str) -> None:
        """Skips the two minutes that Slurm holds a job back that was requeued."""
        self.run("scontrol", "update", f"jobid={job}", "StartTime=now")

    def start(self) -> None:
        self._configure()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        places = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        options = [f"--{option}={self.folder}/munge.{ending}" for option, ending in places.items()]
        munge = self._launch("munged", "--foreground", "--force", *options)
        munge.wait_until((self.folder / "munge.socket").exists)
        controller = self._launch("slurmctld", "-D", "-i")
        for node in self.nodes:
            self._launch("slurmd", "-D", "-N", node)
        controller.wait_until(self._ready)

    def _configure(self) -> None:
        host = socket.gethostname().partition(".")[0]
        port, *ports = free_ports(1 + len(self.nodes))
        text = CONFIGURATION.format(host=host, port=port, user=getpass.getuser(), folder=self.folder)
        for node, each in zip(self.nodes, ports, strict=True):
            text += (
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={each} CPUs=1 RealMemory=2000\n"
            )
        text += f"PartitionName=tests Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP\n"
        self.configuration.write_text(text, encoding="utf-8")
        for each in ("state", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / each).mkdir(parents=True, exist_ok=True)

    def _launch(self, name: str, *options: str) -> Process:
        log = self.folder / f"{name}{options[-1] if '-N' in options else ''}.log"
        process = Process([program(name), *options], log, self.environment)
        self._processes.append(process)
        return process

    def _ready(self) -> bool:
        try:
            return set(self.states().values()) == {"idle"}
        except RuntimeError:  # the controller does not answer yet
            return False

    def stop(self) -> None:
        """Ends the jobs, then the daemons, which have nothing left to save, and what jobs left behind."""
        if self._ready_to_cancel():
            self.run("scancel", "--quiet", f"--user={getpass.getuser()}")
            end = time.monotonic() + 10
            while self.run("squeue", "--noheader") and time.monotonic() < end:
                time.sleep(0.05)
        for process in self._processes:
            process.kill()
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _ready_to_cancel(self) -> bool:
        return len(self._processes) > 1 and all(process.alive for process in self._processes[:2])

    def _left(self) -> list[int]:
        """Processes that were started under this cluster's configuration: steps that wait for a controller."""
        mark = f"SLURM_CONF={self.configuration}".encode()
        found: list[int] = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # gone, or somebody else's
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
