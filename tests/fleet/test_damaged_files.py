"""Files that are half written, damaged, or of somebody else: they are told or passed over, and the bag goes on."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from linnet.errors import FormatError, InputError
from linnet.fleet import Bag, Fleet, Local
from linnet.fleet.agent import Agent
from linnet.fleet.elapsed import elapsed
from linnet.fleet.inbox import read_jobs
from linnet.fleet.providers.provider import Place
from linnet.fleet.saving import exit_of, saved_hours, worked_hours
from linnet.fleet.specification import Program

DEEP = 100_000 * "[" + 100_000 * "]"
NO_JOBS = {
    "half of it": '[{"x": 1}, {"x',
    "nothing": "",
    "another encoding": b'[{"x": "\xe9"}]',
    "too deep": DEEP,
    "no list": '{"x": 1}',
    "a number": "3",
    "a number among them": '[{"x": 1}, 3]',
    "another parameter": '[{"y": 1}]',
    "a column's name": '[{"x": 1, "result": 2}]',
    "a zero byte": '[{"x": "\\u0000"}]',
    "a number that is too long": f'[{{"x": {"9" * 5000}}}]',
}


def put(path: Path, data: str | bytes) -> None:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def test_what_is_no_request_is_set_aside_and_the_bag_goes_on(tmp_path):
    bag = Bag("echo {x}", {"x": [1]}, folder=tmp_path / "bag")
    bag.add([{"x": 2}])
    inbox = bag.folder / "inbox"
    for number, data in enumerate(NO_JOBS.values()):
        put(inbox / f"0{number:02}", data)
    os.mkfifo(inbox / "0pipe")
    (inbox / "0folder").mkdir()
    (inbox / "0link").symlink_to("/nonexistent")
    bag.run(Fleet([Local(2)]))
    assert [(row["x"], row["state"]) for row in bag.table()] == [(1, "done"), (2, "done")]
    assert list(inbox.iterdir()) == []
    told = bag.status().refused
    assert len(told) == len(NO_JOBS) + 3
    assert all(f"set aside: {each}" in str(bag.status()) for each in told)
    assert (bag.folder / "refused" / "000").read_text() == NO_JOBS["half of it"]
    assert "no JSON" in told[0]
    Bag.open(bag.folder).resume()  # nothing of it comes again
    assert len(bag.table()) == 2


@pytest.mark.parametrize("data", NO_JOBS.values(), ids=NO_JOBS.keys())
def test_requests_are_read_whole_or_refused(tmp_path, data):
    put(tmp_path / "message", data)
    with pytest.raises((FormatError, InputError)):
        read_jobs(tmp_path / "message", Program(("echo", "{x}")))
    put(tmp_path / "message", '[{"x": 1}]')
    assert read_jobs(tmp_path / "message", Program(("echo", "{x}"))) == [{"x": 1}]


@pytest.mark.parametrize(
    "text",
    ["", "{", "3", "[]", DEEP, '{"work": null}', '{"work": -1}', '{"work": NaN}', '{"work": Infinity}', '{"work": "x"}',
     '{"work": 1e999}', f'{{"work": {"9" * 400}}}', f'{{"work": {"9" * 5000}}}'],
)  # fmt: skip
def test_hours_that_cannot_be_count_for_nothing(tmp_path, text):
    for name in ("state.json", "worked"):
        (tmp_path / name).write_text(text)
    assert saved_hours(tmp_path) == 0.0
    assert worked_hours(tmp_path) == (3.0 if text == "3" else None)
    (tmp_path / "exit.json").write_text(
        text.replace('{"', '{"status": 0, "warned": false, "').replace("work", "hours")
    )
    assert exit_of(tmp_path / "exit.json") == (65, 0.0, False)


def test_ends_that_can_be_are_read(tmp_path):
    (tmp_path / "exit.json").write_text('{"status": 3, "hours": 0.5, "warned": true}')
    assert exit_of(tmp_path / "exit.json") == (3, 0.5, True)
    (tmp_path / "exit.json").write_text('{"status": Infinity, "hours": 0.5, "warned": true}')
    assert exit_of(tmp_path / "exit.json") == (65, 0.0, False)


def server(folder: Path, **options: Any) -> Agent:
    found = Agent({"folder": str(folder), "name": "local-1-0", "poll": 0.01, "idle": 60.0, **options})
    os.makedirs(found.orders)
    return found


@pytest.mark.parametrize(
    "text", ["", "{", "3", "[]", "{}", DEEP, '{"argv": ["true"]}', '{"argv": [3], "environment": {}}']
)
def test_a_damaged_order_fails_its_attempt_and_the_server_goes_on(tmp_path, text):
    found = server(tmp_path)
    Path(found.orders, "7.json").write_text(text)
    Path(found.orders, "other.json").write_text(text)
    Path(found.orders, "8.json").mkdir()
    assert found.step()
    assert os.listdir(found.orders) == []
    for number in "78":
        assert exit_of(tmp_path / "attempts" / number / "exit.json")[0] == 71
    assert sorted(os.listdir(tmp_path / "done")) == ["7", "8"]


@pytest.mark.parametrize("text", ["", "3", "[]", "[1]", '["x", 1]', "[Infinity, 1]", DEEP])
def test_a_damaged_number_of_a_process_is_unknown(tmp_path, text):
    local = Local(1)
    local.open(Place("1", tmp_path))
    here = local.place.server("local-1-0")
    here.mkdir(parents=True)
    (here / "pid").write_text(text)
    assert local.seen() == {}
    local.release(["local-1-0"])


def test_a_damaged_specification_is_told(tmp_path):
    bag = Bag("echo {x}", {"x": [1]}, folder=tmp_path / "bag")
    bag._create()
    whole = json.loads(bag.storage.get("specification") or "")
    for text in ("", "{", "3", DEEP, "{}", json.dumps({**whole, "rules": {"nonsense": 1}})):
        bag.storage.put({"specification": text})
        with pytest.raises(FormatError, match="damaged"):
            Bag.open(bag.folder)
    bag.storage.put({"specification": json.dumps(whole)})
    assert Bag.open(bag.folder).rules == bag.rules


@pytest.mark.parametrize("jump", [5 * 3600.0, -5 * 3600.0])
def test_a_clock_that_is_set_while_a_bag_runs_neither_costs_nor_saves(tmp_path, monkeypatch, jump):
    wall, begun = time.time, elapsed()
    bag = Bag("sleep 0.2", {"x": [1, 2]}, budget=1.0, folder=tmp_path / "bag")
    moved = False

    def progress(_: object) -> None:
        nonlocal moved
        moved = True
        monkeypatch.setattr(time, "time", lambda: wall() + jump)

    bag.run(Fleet([Local(1, price=1.0)]), progress=progress)
    took = (elapsed() - begun) / 3600
    assert moved
    assert bag.status().state == "done"
    assert 0.4 / 3600 <= bag.status().cost <= took
    assert bag.status().hours <= took


@pytest.mark.parametrize("jump", [5 * 3600.0, -5 * 3600.0])
def test_a_server_counts_by_itself_how_long_nobody_came(tmp_path, monkeypatch, jump):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    found = server(tmp_path, idle=10.0)
    beat = tmp_path / "heartbeat"
    for at in range(5):  # the controller is there, but by another clock
        beat.touch()
        os.utime(beat, (1e9 + jump + at, 1e9 + jump + at))
        now[0] += 8
        assert not found.forgotten()
    now[0] += 9
    assert not found.forgotten()
    now[0] += 2
    assert found.forgotten()
