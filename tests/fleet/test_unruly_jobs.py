"""Jobs that leave anything behind: each has its one row, and the server and the controller go on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from linnet.errors import FormatError, JobError
from linnet.fleet import Bag, Fleet, Local
from linnet.fleet.agent import RESULT, open_file, read_result
from linnet.fleet.saving import saved_hours, worked_hours

WRITES_NO_JSON = {
    "bytes": "head -c 100 /dev/urandom > $LINNET_RESULT",
    "another encoding": "printf '\"\\351\"' > $LINNET_RESULT",
    "half of it": "printf '{\"a\": 1' > $LINNET_RESULT",
    "nothing in it": ": > $LINNET_RESULT",
    "too deep": 'python3 -c "print(100000 * chr(91) + 100000 * chr(93))" > $LINNET_RESULT',
    "a link to itself": "ln -s $LINNET_RESULT $LINNET_RESULT",
    "a link to a folder": "ln -s /tmp $LINNET_RESULT",
    "a link to nothing": "ln -s /nonexistent $LINNET_RESULT",
    "a folder": "mkdir $LINNET_RESULT",
    "a pipe that nobody writes": "mkfifo $LINNET_RESULT",
    "a device that never ends": "ln -s /dev/zero $LINNET_RESULT",
    "a socket": "python3 -c \"import os, socket; socket.socket(socket.AF_UNIX).bind('s')\"; mv s $LINNET_RESULT",
    "its own exit": "mkfifo $LINNET_METRICS; echo '{}' > $(dirname $LINNET_RESULT)/exit.json; echo { > $LINNET_RESULT",
}
GOES_WELL = {
    "bytes on its outputs": ("head -c 9999 /dev/urandom; head -c 99 /dev/urandom >&2; echo 5 > $LINNET_RESULT", 5),
    "its folder removed": ("rm -rf $PWD; echo 6 > $LINNET_RESULT", 6),
    "its attempt removed": ("rm -rf $(dirname $LINNET_RESULT)", None),
    "a folder where its end is told": ("mkdir -p $(dirname $LINNET_RESULT)/exit.json/x", None),
    "a link to its result": ("echo 7 > there; ln -s $PWD/there $LINNET_RESULT", 7),
    "a checkpoint that is a pipe": ("mkfifo $LINNET_CHECKPOINTS/state.json $LINNET_CHECKPOINTS/worked", None),
    "a child left behind": ("sleep 1000 & echo 8 > $LINNET_RESULT", 8),
}  # fmt: skip


def test_every_job_has_its_row_whatever_it_leaves(tmp_path):
    codes = [*WRITES_NO_JSON.values(), *(code for code, _ in GOES_WELL.values())]
    bag = Bag(["sh", "-c", "{code}"], [{"code": each} for each in codes], retries=0, folder=tmp_path / "bag")
    fleet = Fleet([Local(2)])
    rows = list(bag.run(fleet).table())
    assert [row["job"] for row in rows] == list(range(len(codes)))
    for name, row in zip(WRITES_NO_JSON, rows, strict=False):
        assert (row["state"], row["exit_status"], row["result"]) == ("failed", 65, None), name
    for (name, (_, result)), row in zip(GOES_WELL.items(), rows[len(WRITES_NO_JSON) :], strict=True):
        assert (row["state"], row["exit_status"], row["result"]) == ("done", 0, result), name
    assert all((row["attempts"], row["preemptions"]) == (1, 0) for row in rows)
    assert fleet.providers[0].left() == []  # type: ignore[attr-defined]
    assert len(bag.state().servers) <= 2  # none of them took a server along


def test_results_are_read_whole_or_not_at_all(tmp_path):
    path = tmp_path / "result.json"
    assert read_result(path) is None
    path.write_text('{"a":\n [1, "ü"]}', encoding="utf-8")
    assert read_result(path) == '{"a": [1, "\\u00fc"]}'
    with open(path, "wb") as file:
        file.truncate(RESULT + 1)
    with pytest.raises(ValueError, match="more than 64 MB"):
        read_result(path)
    os.mkfifo(tmp_path / "state.json")
    os.mkfifo(tmp_path / "worked")
    assert saved_hours(tmp_path) == 0.0
    assert worked_hours(tmp_path) is None
    with pytest.raises(OSError, match="it is no file"):
        open_file(tmp_path / "worked")


def test_a_job_whose_inputs_are_gone_fails_and_says_so(tmp_path):
    (tmp_path / "data").write_text("1")
    bag = Bag("cat data", {"i": [1]}, files=[tmp_path / "data"], retries=0, folder=tmp_path / "bag")
    bag._create()
    (bag.folder / "inputs" / "data").unlink()
    (bag.folder / "inputs" / "data").symlink_to("/nonexistent")
    (row,) = bag.run(Fleet([Local(1)])).table()
    assert (row["state"], row["exit_status"], row["preemptions"]) == ("failed", 71, 0)
    assert "cannot begin" in (bag.folder / "attempts" / "0" / "exit.json").read_text()


def damage(path: Path, begin: int, text: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(begin)
        file.write(text)


def test_a_damaged_database_is_said_to_be_damaged(tmp_path):
    bag = Bag("true", {"i": list(range(300))}, folder=tmp_path / "bag")
    bag._create()
    size = (bag.folder / "bag.sqlite").stat().st_size
    damage(bag.folder / "bag.sqlite", 4096, b"\xff" * (size - 4096))
    with pytest.raises(FormatError, match=r"bag\.sqlite.*(damaged|no bag)"):
        Bag.open(bag.folder).run(Fleet([Local(1)]))
    damage(bag.folder / "bag.sqlite", 0, b"not a database at all")
    with pytest.raises(FormatError, match="is no bag"):
        Bag.open(bag.folder)


def test_a_database_that_cannot_be_written_is_said_so_and_goes_on_later(tmp_path):
    """As on a full disk: SQLite is allowed no more pages."""
    bag = Bag(["sh", "-c", "echo {i} > $LINNET_RESULT"], {"i": list(range(3))}, folder=tmp_path / "bag")
    bag._create()
    pages = next(bag.storage.database.execute("pragma page_count"))[0]
    bag.storage.database.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(JobError, match=r"full.*resume"):
        bag.storage.put({f"key {i}": "x" * 5000 for i in range(100)})
    bag.storage.close()
    again = Bag.open(bag.folder)
    again.run(Fleet([Local(1)]))
    assert [row["result"] for row in again.table()] == [0, 1, 2]
