"""What may befall a job while it runs: each function does one such thing, chosen at random, and returns."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import time

import pytest

from linnet.errors import AddressError, DamagedTileError, MissingTileError
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts

MERCY = 6
"""Kills in a row before something must be done: where workers take longer to start than they live, no job ends."""
MOVED = ".moved"
"""How the keys of tiles end that got another name."""
_MADE = re.compile(r".*=[0-9]+")
"""Keys of tiles that a task wrote: inputs cannot be made again."""


class Disturber:
    """Disturbs one job, which it holds; `job` may be another object for it afterwards."""

    def __init__(self, job, given, launcher, rng, places, attached):
        self.job, self._given = job, given
        self._launcher, self._rng, self._places = launcher, rng, places
        self._attached = attached
        self._stopped = []
        self._fruitless = self._done = 0
        self.killed = 0
        self.counts = {}
        """What was done how often."""

    def disturb(self, kinds):
        """Do one of these things, if it can be done now."""
        done = self.job.progress().done
        self._fruitless = 0 if done > self._done else self._fruitless
        self._done = done
        kind = self._rng.choice(kinds)
        if getattr(self, f"_{kind}")() is not False:
            self.counts[kind] = self.counts.get(kind, 0) + 1

    def _kill(self):
        pids = self._launcher.pids
        if self._fruitless >= MERCY or not pids or (len(pids) == 1 and self._rng.random() > 0.2):
            return False
        os.kill(self._rng.choice(pids), signal.SIGKILL)
        self.killed += 1
        self._fruitless += 1
        return True

    def _stop(self):
        """A worker that was stopped, perhaps past its lease, goes on."""
        for pid in self._stopped:
            if pid in self._launcher.pids:
                os.kill(pid, signal.SIGCONT)
        self._stopped = self._rng.sample(self._launcher.pids, min(1, len(self._launcher.pids)))
        for pid in self._stopped:
            os.kill(pid, signal.SIGSTOP)
        return bool(self._stopped)

    def go_on(self):
        """Let nobody stay stopped."""
        for pid in self._stopped:
            if pid in self._launcher.pids:
                os.kill(pid, signal.SIGCONT)
        self._stopped = []

    def _second_client(self):
        """Somebody else cancels the job, and resumes it."""
        self.go_on()
        with attach(self.job.address, launcher=None) as other:
            other.cancel()
            time.sleep(self._rng.uniform(0, 0.3))
            other.resume()

    def _rot(self):
        """A byte of a tile changes."""
        return self._harm(lambda data: [data[:-9], bytes([data[-9] ^ 0xFF]), data[-8:]])

    def _rename(self):
        """A tile gets another name."""
        return self._harm(None)

    def _harm(self, change):
        store = open_parts(self.job.address).store
        keys = [key for key, _ in store.list(f"{self.job.folder}/") if _MADE.fullmatch(key)]
        if not keys:
            return False
        key = self._rng.choice(keys)
        try:
            data = bytes(store.get(key))
        except MissingTileError:  # it was deleted meanwhile
            return False
        store.put(*((f"{key}{MOVED}", [data]) if change is None else (key, change(data))))
        if change is None:
            store.delete([key])
        return True

    def _same_name(self):
        """Another job under the same name is refused."""
        with pytest.raises(AddressError, match="is taken"):
            submit(*self._given, name=self.job.name, launcher=None, **self._places)

    def _reboot(self):
        """All processes are gone, and so is the clock of the host."""
        self.go_on()
        for pid in self._launcher.pids:
            os.kill(pid, signal.SIGKILL)
        while self._launcher.pids:
            time.sleep(0.01)
        self.job.close()
        with sqlite3.connect(f"{self._places['store']}/.boards/{self.job.name}.sqlite") as tables:
            tables.execute("UPDATE clock SET boot = 'another start'")
        tables.close()
        self.job = self._attached(self.job.address)

    def found(self, end):
        """The outputs of the job, which is resumed where they were harmed."""
        while True:
            self.job.wait(max(end - time.monotonic(), 1))
            try:
                outputs = self.job.result()
                return {name: {i: tile.copy() for i, tile in outputs.tiles(name).items()} for name in outputs}
            except (MissingTileError, DamagedTileError):
                self.job.resume()
