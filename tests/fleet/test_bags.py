"""Bags on servers of this machine: rows, files, failures, losses, cancelling, adding, resuming."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.errors import FileMissingError, InputError, JobError
from linnet.fleet import Bag, Fleet, Local, Simulated, Trials

pytestmark = pytest.mark.slow

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


def wait_until(true: Callable[[], Any], seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)
    return found


def left_over(bag: Bag) -> list[int]:
    local = Local(1)
    from linnet.fleet.providers import Place

    local.open(Place(str(bag.storage.get("id")), bag.folder))
    return local.left()


def test_a_command_for_each_of_a_product(tmp_path):
    bag = Bag(
        ["sh", "-c", "echo {x}{y} > $LINNET_RESULT; echo said; ls"],
        {"x": [1, 2, 3], "y": ln.fleet.span(0, 1, 2)},
        folder=tmp_path / "bag",
    )
    table = bag.run(Fleet([Local(2)])).table()
    assert table["x"] == [1, 1, 2, 2, 3, 3]
    assert table["result"] == [10.0, 11.0, 20.0, 21.0, 30.0, 31.0]
    assert table["exit_status"] == [0] * 6
    assert table["state"] == ["done"] * 6
    assert table["attempts"] == [1] * 6
    assert table._repr_html_().count("<tr") == 1 + 6
    assert table["preemptions"] == [0] * 6
    assert all(row["hours"] > 0 and row["server"] == "local" for row in table)
    assert (bag.folder / "attempts" / "0" / "stdout").read_text() == "said\n"  # it ran in an empty folder
    assert left_over(bag) == []


def test_functions_scripts_and_files(tmp_path):
    table = Bag("bag_jobs:square", {"x": [2, 3]}, folder=tmp_path / "f").run(Fleet([Local(1)])).table()
    assert table["result"] == [{"square": 4}, {"square": 9}]
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, sys\n"
        "text = open('data.txt').read()\n"
        "json.dump([sys.argv[1], text], open(os.environ['LINNET_RESULT'], 'w'))\n"
    )
    (tmp_path / "data.txt").write_text("staged")
    bag = Bag(
        f"{script} {{word}}", {"word": ["a b", "c"]}, files=[tmp_path / "data.txt"], folder=tmp_path / "s"
    )
    (tmp_path / "data.txt").unlink()  # run() stages it, so it must be there until then
    with pytest.raises(FileNotFoundError):
        bag.run(Fleet([Local(1)]))
    (tmp_path / "data.txt").write_text("staged")
    assert bag.run(Fleet([Local(1)])).table()["result"] == [["a b", "staged"], ["c", "staged"]]


def test_failures_are_retried_shown_and_do_not_stop_others(tmp_path):
    bag = Bag("bag_jobs:fail_first", {"x": [1, 2]}, folder=tmp_path / "a")
    table = bag.run(Fleet([Local(1)])).table()
    assert table["result"] == [1, 2]
    assert table["attempts"] == [2, 2]
    assert table["failures"] == [1, 1]
    assert table["preemptions"] == [0, 0]
    bag = Bag(["sh", "-c", "exit {x}"], {"x": [0, 7]}, retries=0, folder=tmp_path / "b")
    table = bag.run(Fleet([Local(1)])).table()
    assert table["state"] == ["done", "failed"]
    assert table["exit_status"] == [0, 7]
    assert bag.status().failed == 1


def test_a_result_that_is_no_json_is_a_failure(tmp_path):
    bag = Bag(["sh", "-c", "echo '{{' > $LINNET_RESULT"], [{"x": 1}], retries=0, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(1)])).table()
    assert table["state"] == ["failed"]
    assert "no JSON" in json.loads((bag.folder / "attempts" / "0" / "exit.json").read_text())["why"]


@pytest.mark.slow
def test_lost_servers_are_no_failures(tmp_path):
    lives = [0.5, 0.7, 0.4, 1.0, 0.6]  # hours, which are seconds here
    bag = Bag("bag_jobs:square", {"x": list(range(8)), "seconds": 0.15}, folder=tmp_path / "bag")
    fleet = Fleet([Local(2, lives=lives, speed=3600, price=1.0)])
    table = bag.run(fleet).table()
    assert table["result"] == [{"square": x * x} for x in range(8)]
    assert table["failures"] == [0] * 8
    status = bag.status()
    assert status.state == "done"
    assert status.preemptions == sum(table["preemptions"])
    assert status.cost > 0
    assert left_over(bag) == []


def test_a_job_goes_on_from_its_checkpoint(tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n"
        "trap 'echo warned > \"$LINNET_CHECKPOINTS/warned\"; exit 9' TERM\n"
        'if [ -e "$LINNET_CHECKPOINTS/warned" ]; then echo 1 > "$LINNET_RESULT"; exit 0; fi\n'
        "while :; do sleep 0.02; done\n"
    )
    script.chmod(0o755)
    bag = Bag(str(script), [{}], folder=tmp_path / "bag", retries=0)
    # On a slow machine the notice may come before the job listens to it; a later server lives longer.
    fleet = Fleet([Local(1, lives=[2.0, 4.0, 8.0, 20.0, 60.0], notice=1.5, speed=3600)])
    table = bag.run(fleet).table()
    assert table["result"] == [1]  # a server found what the one before had saved
    assert table["failures"] == [0]
    assert table["preemptions"][0] >= 1


def test_hopeless_jobs_are_stopped(tmp_path):
    # Alike, so that none of the four is worse than the others' median, however long a slow machine takes.
    bag = Bag("bag_jobs:report_metric", {"x": [1, 1, 1, 1, 9]}, stop="median", folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(2)])).table()
    assert table["state"][:4] == ["done"] * 4
    assert table["state"][4] == "stopped"
    assert left_over(bag) == []


def test_a_fraction_is_enough(tmp_path):
    bag = Bag(["sh", "-c", "sleep {s}"], {"s": [0, 0, 600]}, fraction=0.6, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(3)])).table()
    assert sorted(table["state"]) == ["done", "done", "stopped"]
    assert left_over(bag) == []


def test_another_specification_is_refused(tmp_path):
    fleet = Fleet([Local(1)])
    Bag("bag_jobs:square", {"x": [1]}, folder=tmp_path / "bag").run(fleet)
    assert Bag("bag_jobs:square", {"x": [1]}, folder=tmp_path / "bag").run(fleet).table()["attempts"] == [1]
    with pytest.raises(InputError, match=r"is another one \(its parameters differ\)"):
        Bag("bag_jobs:square", {"x": [2]}, folder=tmp_path / "bag")
    with pytest.raises(InputError, match=r"its rules differ"):
        Bag("bag_jobs:square", {"x": [1]}, retries=5, folder=tmp_path / "bag")
    with pytest.raises(InputError, match=r"its command differ"):
        Bag("bag_jobs:fail_first", {"x": [1]}, folder=tmp_path / "bag")
    with pytest.raises(FileMissingError, match="there is no bag in"):
        Bag.open(tmp_path / "nothing").status()


def test_jobs_are_added_and_the_bag_is_cancelled_while_it_runs(tmp_path):
    bag = Bag(["sh", "-c", "sleep {s}"], {"s": [0, 600]}, folder=tmp_path / "bag")
    other = threading.Thread(target=bag.run, args=[Fleet([Local(2)])])
    bag._create()
    seen = Bag.open(bag.folder)
    other.start()
    try:
        wait_until(lambda: seen.status(estimate=False).done == 1)
        with pytest.raises(JobError, match="run by process"):
            seen.run(Fleet([Local(1)]))
        assert seen.add({"s": [0, 0]}) == 2
        wait_until(lambda: seen.status(estimate=False).done == 3)
        assert seen.status().state == "running"
    finally:
        seen.cancel()
        other.join()
    assert seen.status().state == "cancelled"
    assert sorted(seen.table()["state"]) == ["done", "done", "done", "stopped"]
    assert left_over(bag) == []


def test_a_search_asks_and_tells(tmp_path):
    class Halving:
        """Finds the square root of 2 by halving."""

        def __init__(self) -> None:
            self.low, self.high, self.out = 1.0, 2.0, False

        def ask(self):
            if self.out or self.high - self.low < 0.05:
                return None
            self.out = True
            return {"x": (self.low + self.high) / 2}

        def tell(self, parameters, result):
            self.out = False
            if result["square"] > 2:
                self.high = parameters["x"]
            else:
                self.low = parameters["x"]

    search = Halving()
    bag = Bag("bag_jobs:square", search=search, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(2)])).table()
    assert len(table) == 5
    assert search.low <= np.sqrt(2) <= search.high


def test_a_study_that_asks_and_tells_as_optuna_does(tmp_path):
    class Study:
        """Trials with numbers, told by number: what Optuna's `Study` does."""

        def __init__(self) -> None:
            self.told: dict[int, Any] = {}
            self.asked = 0

        def ask(self) -> Any:
            self.asked += 1
            return SimpleNamespace(number=self.asked - 1)

        def tell(self, trial: int, values: Any = None, state: Any = None, skip_if_finished: bool = False):
            assert skip_if_finished or trial not in self.told
            self.told.setdefault(trial, values if state is None else state)

    study = Study()
    # The third fails: no such function can square a text.
    space = lambda trial: {"x": "a text" if trial.number == 2 else trial.number}  # noqa: E731
    value = lambda result: result["square"]  # noqa: E731
    bag = Bag("bag_jobs:square_of", search=Trials(study, space, 5, value), folder=tmp_path / "bag", retries=0)
    bag.run(Fleet([Local(2)]))
    assert [study.told[i] for i in (0, 1, 3, 4)] == [0, 1, 9, 16]
    assert "FAIL" in str(study.told[2])
    again = Study()  # another process that goes on is told what came before
    Bag.open(tmp_path / "bag", search=Trials(again, space, 5, value)).resume()
    assert again.asked == 0
    assert again.told[4] == 16
    with pytest.raises(InputError, match="ask\\(\\) and tell"):
        Trials(3, space, 5)


@pytest.mark.slow
@pytest.mark.needs("mpi4py")
def test_mpi_programs_run_on_gangs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os\n"
        "from mpi4py import MPI\n"
        "total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)\n"
        "hosts = os.environ['LINNET_HOSTS'].split(',')\n"
        "if not MPI.COMM_WORLD.rank:\n"
        "    json.dump([MPI.COMM_WORLD.size, total, len(hosts)], open(os.environ['LINNET_RESULT'], 'w'))\n"
    )
    run = f"mpiexec -n $LINNET_CORES {sys.executable} {program}"
    bag = Bag(["sh", "-c", run], {"x": [1, 2]}, cores=3, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(3, cores=1)])).table()
    assert table["result"] == [[3, 6, 3]] * 2


def test_every_job_has_the_names_of_the_command(tmp_path):
    with pytest.raises(InputError, match="the command has {y}"):
        Bag("echo {x} {y}", [{"x": 1, "y": 2}, {"x": 1}], folder=tmp_path / "bag")


def test_a_server_that_may_be_taken_away_soon_gets_no_more_jobs(tmp_path):
    job = """echo "\\"$LINNET_SERVER\\"" > $LINNET_RESULT
    touch $(dirname $LINNET_RESULT)/../../servers/$LINNET_SERVER/rebalance; sleep 0.3"""
    bag = Bag(["sh", "-c", job], {"x": [1, 2, 3]}, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(1)])).table()
    assert len(set(table["result"])) == 3  # each recommended itself away after its job
    assert table["preemptions"] == [0, 0, 0]


def test_tables_leave_as_csv_arrow_and_pandas(tmp_path):
    bag = Bag("bag_jobs:square", {"x": [1.5, 2.5]}, folder=tmp_path / "bag")
    table = bag.run(Fleet([Local(1)])).table()
    table.to_csv(tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["x"]) for row in rows] == [1.5, 2.5]
    assert json.loads(rows[1]["result"]) == {"square": 6.25}
    assert table.to_pandas()["x"].tolist() == [1.5, 2.5]
    assert table.to_arrow().column("result").to_pylist() == [{"square": 2.25}, {"square": 6.25}]


def test_bad_input_is_told(tmp_path):
    def make(*given: Any, **options: Any) -> Bag:
        return Bag(*given, folder=tmp_path / "bag", **options)

    for given, options, words in [
        (("echo {x}", {"y": [1]}), {}, r"the command has \{x\}, and parameters are y"),
        (("echo", {"x": []}), {}, "a parameter without values"),
        (("echo", {"x": [1]}), {"fraction": 0}, "fraction=0"),
        (("echo", {"x": [1]}), {"budget": -1}, "budget=-1"),
        (("echo", {"x": [1]}), {"cores": 0}, "cores=0"),
        (("echo", {"x": [1]}), {"sample": "latin"}, 'give None for the product, "zip"'),
        (("echo", {"result": [1]}), {}, "parameters cannot be called result"),
        (("echo", {"x": [1j]}), {}, "cannot be stored"),
        ((lambda: 1, {}), {}, "has no import name"),
        (("echo", {"x": [1]}), {"stop": "nonsense"}, "stop='nonsense'"),
    ]:
        with pytest.raises(InputError, match=words):
            make(*given, **options)
    with pytest.raises(FileMissingError, match="there is no program 'nothing-of-this-name'"):
        make("nothing-of-this-name {x}", {"x": [1]})
    with pytest.raises(InputError, match="how long a job takes is not known yet"):
        make("echo {x}", {"x": [1]}).plan(Fleet([Local(1)]))
    with pytest.raises(InputError, match="jobs cannot run on simulated servers"):
        make("echo {x}", {"x": [1]}).run(Fleet([Simulated(1)]))
    with pytest.raises(InputError, match="give how many servers"):
        Local(0)


def test_samples(tmp_path):
    def jobs(sample: str | None, **axes: Any) -> list[dict[str, Any]]:
        return Bag("echo", axes, sample=sample, folder=tmp_path / "none")._jobs

    assert jobs("zip", a=[1, 2], b=[3, 4]) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    with pytest.raises(InputError, match="lists of one length"):
        jobs("zip", a=[1, 2], b=[3])
    latin = jobs("latin:20", a=ln.fleet.span(0, 1), b=ln.fleet.span(1, 100, log=True))
    assert sorted(int(job["a"] * 20) for job in latin) == list(range(20))  # one in each strip
    assert sorted(int(np.log10(job["b"]) * 10) for job in latin) == list(range(20))
    assert jobs("latin:20", a=ln.fleet.span(0, 1)) == jobs("latin:20", a=ln.fleet.span(0, 1))
    assert len(jobs("random:7", a=[1, 2], b=range(3))) == 7
    assert jobs(None, a=np.arange(2), b="text") == [{"a": 0, "b": "text"}, {"a": 1, "b": "text"}]
    assert len(Bag("echo", {"a": [1, 2]}, repeats=3, folder=tmp_path / "none")._jobs) == 6
    own = ({"a": i} for i in range(4))
    assert len(Bag("echo {a}", own, folder=tmp_path / "none")._jobs) == 4


def test_a_controller_that_is_killed_leaves_a_bag_that_goes_on(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from linnet.fleet import Bag, Fleet, Local\n"
        "Bag('bag_jobs:square', {'x': list(range(12)), 'seconds': 0.2}, folder=sys.argv[1]).run(Fleet([Local(3)]))\n"
    )
    folder = tmp_path / "bag"
    for done in (1, 4, 8):
        with subprocess.Popen([sys.executable, "-c", code, str(folder), HERE]) as child:
            try:
                wait_until(lambda: (folder / "bag.sqlite").exists())
                bag = Bag.open(folder)
                wait_until(lambda bag=bag, done=done: bag.status(estimate=False).done >= done)
            finally:
                os.kill(child.pid, signal.SIGKILL)
        assert bag.status().state == "interrupted"
    table = bag.resume().table()
    assert table["result"] == [{"square": x * x} for x in range(12)]
    assert table["failures"] == [0] * 12
    assert table["preemptions"] == [0] * 12  # servers went on without a controller
    assert left_over(bag) == []


@pytest.mark.long
@pytest.mark.parametrize("checkpoint", [None, 0.02])
def test_the_simulator_tells_what_processes_do(checkpoint):
    """200 jobs at 3600 times the speed, servers killed by a law: cost and makespan within 5%."""
    sys.path.insert(0, str(Path(HERE).parents[1] / "benchmarks"))
    from fleet import compare_local  # type: ignore[import-not-found]

    cost, makespan = compare_local(checkpoint=checkpoint)
    assert cost == pytest.approx(1, abs=0.05)
    assert makespan == pytest.approx(1, abs=0.05)


@pytest.mark.long
def test_a_study_of_optuna_drives_a_bag(tmp_path):
    optuna = pytest.importorskip("optuna")
    stored = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(
        storage=stored, study_name="s", sampler=optuna.samplers.TPESampler(seed=0), direction="minimize"
    )

    def space(trial: Any) -> dict[str, Any]:
        return {
            "x": trial.suggest_float("x", -10, 10),
            "fails": trial.suggest_categorical("fails", [True, False]),
        }

    bag = Bag("bag_jobs:loss", search=Trials(study, space, 12), folder=tmp_path / "bag", retries=0)
    bag.run(Fleet([Local(2)]))
    rows = sorted(bag.table(), key=lambda row: row["trial"])
    told = optuna.load_study(storage=stored, study_name="s").trials  # by another one, as after a restart
    assert [(row["x"], row["fails"]) for row in rows] == [
        (each.params["x"], each.params["fails"]) for each in told
    ]
    assert [each.state.name for each in told] == ["FAIL" if row["fails"] else "COMPLETE" for row in rows]
    assert {row["fails"] for row in rows} == {True, False}
    assert [each.value for each in told if each.value is not None] == [
        row["result"]["value"] for row in rows if not row["fails"]
    ]
