"""Controllers killed with SIGKILL again and again, servers killed at random: every job has one right row."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linnet.fleet import Bag, Local
from linnet.fleet.providers import Place

HERE = str(Path(__file__).parent)
CODE = """
import sys
sys.path.insert(0, sys.argv[2])
from linnet.fleet import Bag, Fleet, Local
count = int(sys.argv[3])
bag = Bag("bag_jobs:square", {"x": list(range(count)), "seconds": 0.1}, folder=sys.argv[1], retries=0)
bag.run(Fleet([Local(4)]))
"""


def agents(folder: Path) -> list[int]:
    """Numbers of the servers' processes, as they wrote them down."""
    found = []
    for each in folder.glob("servers/*/pid"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(json.loads(each.read_text())[0]))
    return found


def disturb(folder: Path, jobs: int, kills: int, seed: int) -> Bag:
    """Run a bag whose controller is killed so many times, and a server as often."""
    choose = random.Random(seed)
    for kill in range(kills):
        child = subprocess.Popen([sys.executable, "-c", CODE, str(folder), HERE, str(jobs)])
        try:
            goal = jobs * (kill + 1) // (kills + 2)
            until = time.monotonic() + 150
            while time.monotonic() < until and child.poll() is None:
                if (folder / "bag.sqlite").exists() and len(
                    list(folder.glob("attempts/*/exit.json"))
                ) >= goal:
                    break
                time.sleep(0.01)
            time.sleep(choose.random() * 0.2)
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGKILL)
            child.wait()
        alive = [pid for pid in agents(folder) if Path(f"/proc/{pid}").exists()]
        if alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(choose.choice(alive), signal.SIGKILL)
    subprocess.run([sys.executable, "-c", CODE, str(folder), HERE, str(jobs)], check=True, timeout=170)
    return Bag.open(folder)


def check(bag: Bag, jobs: int) -> None:
    table = bag.table()
    assert table["x"] == list(range(jobs))
    assert table["result"] == [{"square": x * x} for x in range(jobs)]
    assert table["state"] == ["done"] * jobs
    assert table["failures"] == [0] * jobs  # preemptions are none
    count = bag.storage.database.execute("select count(*), count(distinct job) from rows").fetchone()
    assert tuple(count) == (jobs, jobs)
    local = Local(1)
    local.open(Place(str(bag.storage.get("id")), bag.folder))
    assert local.left() == []


@pytest.mark.slow
def test_a_few_kills(tmp_path):
    check(disturb(tmp_path / "bag", jobs=24, kills=3, seed=1), 24)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_kills_in_a_bag_of_two_hundred(tmp_path):
    check(disturb(tmp_path / "bag", jobs=200, kills=20, seed=0), 200)
