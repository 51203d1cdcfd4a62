"""Processes that look at a bag, or ask something of it, while its controller writes or is killed."""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linnet.errors import FormatError, InputError, JobError
from linnet.fleet import Bag, Fleet, Local, agent
from linnet.fleet.controller import Controller
from linnet.fleet.records import Added, Ended, Launch, Start, Stop, Up
from linnet.fleet.storage import Storage
from linnet.fleet.stored_offers import merged_offers


def made(folder: Path, **options: Any) -> Bag:
    bag = Bag(["true"], {"x": [1, 2]}, folder=folder, **options)
    bag._create()
    return bag


def before(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Let something happen once, just before a method of the storage is called."""
    original, left = getattr(Storage, name), [act]

    def then(self: Storage, *given: Any) -> Any:
        if left:
            left.pop()()
        return original(self, *given)

    monkeypatch.setattr(Storage, name, then)


FIRST = [Added(0.0, (0, 1)), Launch(0.0, 0, 0), Up(0.1, 0), Start(0.1, 0, 0, (0,))]


def test_offers_and_records_that_come_between_two_reads(tmp_path, monkeypatch):
    bag = made(tmp_path / "bag")
    writer = Storage(bag.folder)

    def begin() -> None:
        merged_offers(writer, Fleet([Local(1)]))
        writer.write(FIRST)

    before(monkeypatch, "records", begin)
    assert bag.status(estimate=False).running == 0
    assert bag.status(estimate=False).running == 1


def test_a_row_that_comes_between_two_reads_is_not_half_in_the_table(tmp_path, monkeypatch):
    bag = made(tmp_path / "bag")
    writer = Storage(bag.folder)
    merged_offers(writer, Fleet([Local(1)]))
    writer.write(FIRST)
    more = [(2, {"x": 3})]
    before(
        monkeypatch,
        "results",
        lambda: writer.write([Ended(0.2, 0, 0, 0.1), Added(0.2, (2,))], [(0, 0, "7")], more),
    )
    table = bag.table()
    assert (table["state"], table["result"]) == (["running", "waiting"], [None, None])
    table = bag.table()
    assert (table["state"], table["result"]) == (["done", "waiting", "waiting"], [7, None, None])


def test_a_bag_that_ends_while_it_is_looked_at_was_not_interrupted(tmp_path, monkeypatch):
    bag = made(tmp_path / "bag")
    controller = Storage(bag.folder)
    controller.lock()
    merged_offers(controller, Fleet([Local(1)]))
    controller.write(FIRST)
    looked = Storage.snapshot
    monkeypatch.setattr(Storage, "snapshot", lambda self: (looked(self), controller.unlock())[0])
    assert bag.status(estimate=False).state == "running"
    assert bag.status(estimate=False).state == "interrupted"


def test_those_who_look_do_not_keep_a_controller_away(tmp_path, monkeypatch):
    bag = made(tmp_path / "bag")
    (bag.folder / "lock").touch()
    with open(bag.folder / "lock") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not bag.storage.is_run()
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        bag.storage.lock()
    other = Bag.open(bag.folder)
    assert other.storage.is_run()
    with pytest.raises(JobError, match="is run by process"):
        other.storage.lock()
    bag.storage.unlock()
    assert not other.storage.is_run()


def test_a_fresh_bag_can_be_read_while_it_is_written_and_read(tmp_path):
    bag = made(tmp_path / "bag")
    writer = sqlite3.connect(bag.folder / "bag.sqlite", isolation_level=None)
    reader = sqlite3.connect(bag.folder / "bag.sqlite", isolation_level=None)
    reader.execute("begin").execute("select * from meta").fetchall()
    writer.execute("begin immediate").execute("insert into meta values ('a', 'b')")
    assert Bag.open(bag.folder).status(estimate=False).jobs == 2
    writer.execute("commit")
    writer.close()
    reader.close()


def test_a_file_that_is_no_bag_is_told_and_left_as_it_is(tmp_path):
    other = sqlite3.connect(tmp_path / "bag.sqlite")
    other.execute("create table mine (x)")
    other.commit()
    with pytest.raises(FormatError, match="is no bag: no such table"):
        Bag.open(tmp_path)
    assert other.execute("select name from sqlite_master").fetchall() == [("mine",)]
    other.close()


def test_inputs_of_which_half_was_copied_are_copied_again(tmp_path):
    given = tmp_path / "data.txt"
    given.write_text("all of it")
    half = tmp_path / "bag" / "inputs"
    half.mkdir(parents=True)
    (half / "data.txt").write_text("all")
    for ending in ("", "-wal", "-shm"):
        (tmp_path / "bag" / f"bag.sqlite.part{ending}").write_text("half a file")
    bag = made(tmp_path / "bag", files=[given])
    assert (bag.folder / "inputs" / "data.txt").read_text() == "all of it"
    assert bag.status().jobs == 2


def test_of_two_that_make_a_bag_the_second_finds_the_first(tmp_path):
    first = Bag(["true"], {"x": [1, 2]}, folder=tmp_path / "bag")
    second = Bag(["true"], {"x": [1, 2]}, folder=tmp_path / "bag")
    other = Bag(["true"], {"x": [3]}, folder=tmp_path / "bag")
    first._create()
    name = first.storage.get("id")
    for bag in (second, other):
        seen = iter([False, True])

        class Late(Storage):
            exists = property(lambda self, seen=seen: next(seen, True))  # type: ignore[assignment]

        bag.storage = Late(bag.folder)
    second._create()
    assert second.storage.get("id") == name
    with pytest.raises(InputError, match="is another one"):
        other._create()


def test_resume_of_a_bag_that_runs_keeps_what_was_asked(tmp_path):
    bag = made(tmp_path / "bag")
    controller = Storage(bag.folder)
    controller.lock()
    bag.cancel()
    with pytest.raises(JobError, match="is run by process"):
        bag.resume(Fleet([Local(1)]))
    assert (bag.folder / "cancel").exists()
    controller.unlock()


def test_a_controller_that_begins_while_a_bag_is_cancelled_ends_it(tmp_path, monkeypatch):
    bag = made(tmp_path / "bag")
    controller = Storage(bag.folder)
    merged_offers(controller, Fleet([Local(1)]))
    original = Storage.lock
    begun: list[None] = []

    def begin_first(self: Storage) -> None:
        if not begun:
            begun.append(None)
            original(controller)
        original(self)

    monkeypatch.setattr(Storage, "lock", begin_first)
    bag.cancel()
    assert (bag.folder / "cancel").exists()
    controller.unlock()


def test_an_attempt_whose_end_was_decided_and_not_carried_out(tmp_path):
    bag = made(tmp_path / "bag")
    merged_offers(bag.storage, Fleet([Local(1)]))
    bag.storage.write([*FIRST, Stop(0.2, 0, "hopeless")])
    fleet = Fleet([Local(1)])
    controller = Controller(bag.storage, bag.program, bag.rules, fleet)
    orders = controller.place.server(controller.name(0)) / "orders"
    orders.mkdir(parents=True)
    (orders.parent / "up").touch()
    (orders / "0.json").write_text("{}")
    fleet.providers[0].open(controller.place)
    controller._begin()
    assert [each.name for each in orders.iterdir()] == ["0.stop"]


def test_an_order_that_is_taken_back_while_a_server_takes_it(tmp_path, monkeypatch):
    (tmp_path / "attempts" / "0").mkdir(parents=True)
    it = agent.Agent({"folder": str(tmp_path), "name": "s", "poll": 1, "idle": 60})
    orders = Path(it.orders)
    orders.mkdir(parents=True)
    order = {"argv": ["true"], "environment": {"LINNET_CHECKPOINTS": str(tmp_path / "c")}}
    (orders / "0.json").write_text(json.dumps(order))
    popen = agent.subprocess.Popen

    def taken_back(*given: Any, **options: Any) -> Any:
        (orders / "0.json").unlink()
        return popen(*given, **options)

    monkeypatch.setattr(agent.subprocess, "Popen", taken_back)
    it.begin("0")
    assert list(it.jobs) == ["0"]
    it.jobs["0"][0].wait()


def run_on_agent(folder: Path, script: str, **options: Any) -> agent.Agent:
    """An agent, not yet looking around, that has begun a job."""
    it = agent.Agent({"folder": str(folder), "name": "s", "poll": 1, "idle": 60, **options})
    orders = Path(it.orders)
    orders.mkdir(parents=True)
    order = {"argv": ["sh", "-c", script], "environment": {"LINNET_CHECKPOINTS": str(folder / "c")}}
    (orders / "0.json").write_text(json.dumps(order))
    it.begin("0")
    it.jobs["0"][0].wait()
    return it


@pytest.mark.parametrize("script", ["kill -KILL $$", "kill -TERM $$", "exit 137", "exit 143"])
def test_a_job_that_is_killed_just_before_its_server_is_no_failure(tmp_path, script):
    said = tmp_path / "attempts" / "0" / "exit.json"
    it = run_on_agent(tmp_path, script, settle=60)
    assert it.step()
    assert not said.exists()  # the server may be about to go, too
    it.told = True
    assert it.step()
    assert json.loads(said.read_text())["warned"]
    assert not it.jobs


@pytest.mark.parametrize(("script", "status"), [("kill -KILL $$", -9), ("exit 143", 143)])
def test_a_job_that_kills_itself_has_failed(tmp_path, script, status):
    it = run_on_agent(tmp_path, script, settle=0)
    assert it.step()
    said = json.loads((tmp_path / "attempts" / "0" / "exit.json").read_text())
    assert (said["status"], said["warned"]) == (status, False)


def test_other_ends_of_jobs_are_told_at_once(tmp_path):
    it = run_on_agent(tmp_path, "exit 3", settle=60)
    assert it.step()
    assert json.loads((tmp_path / "attempts" / "0" / "exit.json").read_text())["status"] == 3


WRITES = ["sh", "-c", "echo {x} > $LINNET_RESULT"]


@pytest.mark.parametrize("go_on", ["run", "resume"])
def test_jobs_that_are_added_to_a_bag_that_is_done_are_run(tmp_path, go_on):
    bag, fleet = Bag(WRITES, {"x": [1]}, folder=tmp_path / "bag"), Fleet([Local(1)])
    bag.run(fleet)
    bag.cancel()  # there is nothing to end
    for x in (2, 3):
        bag.add([{"x": x}])
        getattr(Bag.open(bag.folder), go_on)(fleet)
    assert bag.table()["result"] == [1, 2, 3]
    assert bag.status().state == "done"
    assert bag.state().preemptions == 0
    spent, servers = bag.status().hours, len(bag.state().servers)
    getattr(bag, go_on)(fleet)  # nothing came: nothing is begun
    assert (bag.status().hours, len(bag.state().servers)) == (spent, servers)


def test_jobs_that_come_while_the_last_servers_go(tmp_path, monkeypatch):
    bag, left = Bag(WRITES, {"x": [1]}, folder=tmp_path / "bag"), [2, 3]
    leave = Controller._leave

    def then(self: Controller) -> None:
        if left:
            bag.add([{"x": left.pop(0)}])
        leave(self)

    monkeypatch.setattr(Controller, "_leave", then)
    bag.run(Fleet([Local(1)]))
    assert bag.table()["result"] == [1, 2, 3]


def test_a_bag_that_is_cancelled_does_not_go_on_because_jobs_came(tmp_path, monkeypatch):
    bag = Bag(WRITES, {"x": [1, 2, 3]}, folder=tmp_path / "bag")
    leave = Controller._leave

    def then(self: Controller) -> None:
        bag.add([{"x": 4}])
        leave(self)

    with monkeypatch.context() as patch:
        patch.setattr(Controller, "_leave", then)
        bag.add([{"x": 5}])
        bag.cancel()
        bag.run(Fleet([Local(1)]))
    assert bag.status().state == "cancelled"
    bag.resume()
    assert sorted(bag.table()["result"]) == [1, 2, 3, 4, 5]
