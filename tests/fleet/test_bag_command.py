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


YAML_THAT_IS_REFUSED = {
    "aliases that blow up": (
        "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30)),
        "aliases make more than",
    ),
    "a value that holds itself": ("command: echo\nparameters: &p {x: *p}\n", "holds itself"),
    "a Python object": ("command: !!python/object/apply:os.system [touch made]\n", "python/object"),
    "a name twice": ("command: echo {x}\nparameters: {x: [1], x: [2]}\n", "'x' is given twice"),
    "a number that is too long": (f"command: echo\nretries: {'9' * 5000}\n", "cannot be read"),
    "too deep": ("command: " + "[" * 20_000 + "]" * 20_000, "too deep"),
    "another encoding": (b"command: \xe9", "cannot be read"),
    "two documents": ("command: echo\n---\ncommand: ls\n", "cannot be read"),
}


@pytest.mark.needs("yaml")
@pytest.mark.parametrize(("text", "word"), YAML_THAT_IS_REFUSED.values(), ids=YAML_THAT_IS_REFUSED.keys())
def test_yaml_that_is_refused(tmp_path, monkeypatch, text, word):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bag.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError, match=word):
        read_bag(path)
    assert [each.name for each in tmp_path.iterdir()] == ["bag.yaml"]  # nothing was run, nothing was made


@pytest.mark.needs("yaml")
def test_anchors_that_are_of_use(tmp_path):
    path = tmp_path / "bag.yaml"
    path.write_text("command: echo {x} {y}\nparameters: {x: &both [1, 2], y: *both}\nsample: zip\n")
    bag, _ = read_bag(path)
    assert bag._jobs == [{"x": 1, "y": 1}, {"x": 2, "y": 2}]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"command": "echo {x}", "parameters": {"x": [1], "x": [2]}}', "'x' is given twice"),
        ('{"command": "echo", "retries": ' + "9" * 5000 + "}", "cannot be read"),
        ("[" * 100_000, "too deep"),
        ("[]", "names with values"),
    ],
)
def test_json_that_is_refused(tmp_path, text, word):
    (tmp_path / "bag.json").write_text(text)
    with pytest.raises(FormatError, match=word):
        read_bag(tmp_path / "bag.json")
    with pytest.raises(FormatError, match="cannot be read"):
        read_bag(tmp_path)


def test_what_needs_a_file_is_given_the_folder_of_a_bag(tmp_path):
    assert "directory" in told("plan", str(tmp_path), status=2)
