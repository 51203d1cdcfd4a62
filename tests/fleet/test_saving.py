"""Jobs that outlive their servers: those that save themselves, by a plan or on notice, and those a tool saves."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from linnet.errors import FormatError, InputError
from linnet.fleet import Bag, Checkpoint, FittedModel, Fleet, Local, Saver
from linnet.fleet.agent import Agent
from linnet.fleet.checkpoints import Schedule
from linnet.fleet.controller import Controller
from linnet.fleet.laws import Exponential
from linnet.fleet.records import Ended, Launch

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


def run_and_warn(bag: Bag, begun: Path) -> None:
    """Run a bag on one server after the other; the first is told that it goes once its job left a file."""
    running = threading.Thread(target=bag.run, args=(Fleet([Local(1)]),))
    running.start()
    until = time.monotonic() + 120
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.01)
    (server,) = (bag.folder / "servers").iterdir()
    os.kill(json.loads((server / "pid").read_text())[0], signal.SIGTERM)
    running.join(120)


@pytest.mark.slow
def test_a_function_that_saves_itself_goes_on_elsewhere(tmp_path):
    bag = Bag("bag_jobs:count_up", {"steps": [40]}, folder=tmp_path / "bag", retries=0)
    run_and_warn(bag, bag.folder / "checkpoints" / "0" / "state.json")
    (row,) = bag.table()
    assert row["state"] == "done"
    assert (row["attempts"], row["preemptions"], row["failures"]) == (2, 1, 0)
    assert row["result"]["total"] == sum(range(40))
    assert 0 < row["result"]["begun_at"] < 40  # the second attempt went on
    assert row["result"]["done"] == 40  # and no step was done twice


def test_checkpoints_are_due_when_the_plan_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("LINNET_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("LINNET_CHECKPOINT_PLAN", "1.0,2.0")
    clock = [0.0]
    monkeypatch.setattr("linnet.fleet.saving.time.monotonic", lambda: clock[0])
    with Checkpoint() as kept:
        written = []
        for minute in range(0, 361, 10):
            clock[0] = 60.0 * minute
            if kept.save(minute):
                written.append(minute)
        assert written == [60, 180, 300]
        assert kept.work == pytest.approx(5.0)
        assert kept.save(7, now=True)
    with Checkpoint() as again:
        assert again.load() == 7
        assert again.work == pytest.approx(6.0)
        again.leaving = True
        with pytest.raises(SystemExit):
            again.save(8)
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(FormatError, match="is no checkpoint"), Checkpoint() as broken:
        broken.load()
    monkeypatch.delenv("LINNET_CHECKPOINTS")
    with pytest.raises(InputError, match="elsewhere give a folder"):
        Checkpoint()


def test_the_length_of_a_job_counts_what_earlier_attempts_saved(tmp_path):
    """Or plans for the jobs that follow would be made for what its last attempt did."""
    bag = Bag("bag_jobs:count_up", {"steps": [40]}, folder=tmp_path / "bag", checkpoint=1e-9, retries=0)
    run_and_warn(bag, bag.folder / "checkpoints" / "0" / "state.json")
    (ended,) = [each for each in bag.storage.records() if isinstance(each, Ended) and each.status == 0]
    assert ended.work is not None
    assert ended.work > 40 * 0.05 / 3600
    assert bag.state().measured["local"].mean == ended.length == ended.work


def test_a_bag_plans_checkpoints_for_what_is_left(tmp_path):
    model = FittedModel(Exponential(1 / 4))
    bag = Bag("bag_jobs:count_up", {"steps": [1]}, hours=5, checkpoint=1 / 60, folder=tmp_path / "bag")
    bag._create()
    fleet = Fleet([Local(1, model=model, boot=0.1)])
    controller = Controller(bag.storage, bag.program, bag.rules, fleet)
    controller.state.apply(Launch(0.0, 0, 0))
    plan = controller._checkpoint_plan(0, [0])
    assert plan is not None
    assert sum(plan) == pytest.approx(5)
    assert list(plan) == list(model.checkpoints(5, 1 / 60, 0.1, 0, 5 / 60).intervals)
    kept = tmp_path / "bag" / "checkpoints" / "0"
    kept.mkdir(parents=True)
    (kept / "state.json").write_text(json.dumps({"state": 0, "work": 3.0}))
    rest = controller._checkpoint_plan(0, [0])
    assert rest is not None
    assert sum(rest) == pytest.approx(2)
    assert Bag.open(tmp_path / "bag").rules.checkpoint == pytest.approx(1 / 60)
    assert Schedule(FittedModel(Exponential(1), cap=24), 5, 0.1, 0.1).intervals(5, 25) is None


SAVED = """
import json, os, signal, sys, time
path = sys.argv[1]
begun = json.load(open(path)) if len(sys.argv) > 2 else 0
step, wanted = begun, []
signal.signal(signal.SIGUSR1, lambda *_: wanted.append(1))
open(os.path.join(os.path.dirname(sys.argv[0]), "begun"), "w").close()
while step < 60:
    time.sleep(0.02)
    step += 1
    if wanted:
        json.dump(step, open(path + ".part", "w")); os.replace(path + ".part", path)
        time.sleep(60)
json.dump({"begun": begun, "step": step}, open(os.environ["LINNET_RESULT"], "w"))
"""


def tool(folder: Path) -> dict[str, Any]:
    """A real tool for a program that saves itself when asked: it asks, waits, and keeps what was written."""
    program, save, restore = folder / "program.py", folder / "save.sh", folder / "restore.sh"
    program.write_text(SAVED)
    save.write_text(
        f"kill -USR1 $1; until [ -e {folder}/state ]; do sleep 0.01; done; cp {folder}/state $2/state\n"
    )
    restore.write_text(f"exec {sys.executable} -S {program} $1/state again\n")
    return {"save": ["sh", str(save), "{pid}", "{folder}"], "restore": ["sh", str(restore), "{folder}"]}


@pytest.mark.slow
def test_a_tool_saves_a_process_and_goes_on_with_it(tmp_path):
    saver = tool(tmp_path)
    bag = Bag(
        [sys.executable, "-S", str(tmp_path / "program.py"), str(tmp_path / "state")],
        folder=tmp_path / "bag", retries=0, saver=saver,
    )  # fmt: skip
    run_and_warn(bag, tmp_path / "begun")
    (row,) = bag.table()
    assert row["state"] == "done"
    assert (row["attempts"], row["preemptions"], row["failures"]) == (2, 1, 0)
    assert row["result"]["step"] == 60
    assert 0 < row["result"]["begun"] < 60
    assert Bag.open(bag.folder).saver == Saver.of(saver)
    with pytest.raises(InputError, match="its rules, saver, command differ"):
        Bag(["sh"], folder=bag.folder)


def test_a_restored_process_writes_where_it_began(tmp_path):
    agent = Agent({"folder": str(tmp_path), "name": "s"})
    for number in ("3", "7"):
        (tmp_path / "attempts" / number).mkdir(parents=True)
    image = tmp_path / "kept" / "image"
    image.mkdir(parents=True)
    (image / "attempt").write_text("3")
    order = {"saver": {"save": ["save"], "restore": ["restore", "{folder}"]}}
    found = agent.resume("7", order, {"LINNET_CHECKPOINTS": str(tmp_path / "kept")})
    assert found == ["restore", str(image)]
    (tmp_path / "attempts" / "3" / "result.json").write_text("5")
    agent.fetch_result("7")
    assert (tmp_path / "attempts" / "7" / "result.json").read_text() == "5"


def test_criu_is_refused_where_it_cannot_work(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match="'no-such-criu' is not on the PATH.*save themselves"):
        Saver.criu("no-such-criu")
    fake = tmp_path / "criu"
    fake.write_text("#!/bin/sh\necho 'Error (criu/cr-check.c:1): no soft-dirty' >&2; exit 1\n")
    fake.chmod(0o755)
    with pytest.raises(InputError, match=r"criu check. says .*no soft-dirty.*save themselves"):
        Bag("true", folder=tmp_path / "bag", saver="criu")
    fake.write_text("#!/bin/sh\nexit 0\n")
    made = Saver.of("criu")
    assert made is not None
    assert made.save[:4] == (str(fake), "dump", "--tree", "{pid}")
    for wrong in ("dmtcp", {"save": ["x"]}, {"save": "x", "restore": "y"}):
        with pytest.raises(InputError, match="give"):
            Saver.of(wrong)
