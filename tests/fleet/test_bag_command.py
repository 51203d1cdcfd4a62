"""`linnet bag`: plan, run, status, resume, results, cancel."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from linnet.cli.app import app
from linnet.cli.bag import read_bag
from linnet.errors import FileMissingError, FormatError, InputError

TEXT = """
command: "sh -c 'echo {x} > $LINNET_RESULT'"
parameters:
  x: {range: [0, 3]}
  y: {span: [0, 1, 2]}
hours: 0.001
deadline: 5
fleet:
  providers: [{kind: local, servers: 2, price: 0.5}]
"""


def told(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["bag", *words])
    assert done.exit_code == status, (done.output, done.exception)
    return done.output


@pytest.mark.slow
@pytest.mark.needs("yaml")
def test_a_bag_from_plan_to_results(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(TEXT)
    said = told("plan", str(path))
    assert "6 jobs" in said
    assert "no preemption" in said
    assert "deadline 5 h" in said
    price = json.loads(told("plan", str(path), "--json"))
    assert price["jobs"] == 6
    assert price["dollars"]["0.1"] <= price["dollars"]["0.9"]
    assert price["deadline"] == 5
    said = told("run", str(path))
    assert "done: 6 of 6 jobs done" in said
    folder = str(tmp_path / "sweep.bag")
    assert "done: 6 of 6 jobs" in told("status", folder)
    told("results", folder, "-o", str(tmp_path / "rows.csv"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text())))
    assert [row["result"] for row in rows] == ["0", "0", "1", "1", "2", "2"]
    assert [row["result"] for row in json.loads(told("results", folder, "--json"))] == [0, 0, 1, 1, 2, 2]
    now = json.loads(told("status", folder, "--json"))
    assert (now["state"], now["done"], now["jobs"]) == ("done", 6, 6)
    assert "6 of 6" in told("resume", folder)
    told("cancel", folder)


def test_files_that_are_wrong_are_told(tmp_path):
    def read(**given: object) -> None:
        path = tmp_path / "bag.json"
        path.write_text(json.dumps(given))
        read_bag(path)

    with pytest.raises(FileMissingError, match="there is no file"):
        read_bag(Path(tmp_path, "nothing.json"))
    with pytest.raises(FormatError, match="`command` is missing"):
        read(parameters={"x": [1]})
    with pytest.raises(FormatError, match="unexpected keyword argument 'nonsense'"):
        read(command="echo", parameters={"x": [1]}, nonsense=1)
    with pytest.raises(FormatError, match=r"a value, a list, \{span"):
        read(command="echo", parameters={"x": {"spam": [1]}})
    with pytest.raises(FormatError, match="a fleet has providers"):
        read(command="echo", parameters={"x": [1]}, fleet={"servers": 3})
    with pytest.raises(InputError, match="no provider is called 'moon'"):
        read(command="echo", parameters={"x": [1]}, fleet={"providers": [{"kind": "moon"}]})
    with pytest.raises(FormatError, match="both `jobs` and `parameters`"):
        read(command="echo", parameters={"x": [1]}, jobs=[{"x": 1}])
    (tmp_path / "bag.json").write_text("[")
    with pytest.raises(FormatError, match="cannot be read"):
        read_bag(tmp_path / "bag.json")
