"""`linnet plan` plans and runs nothing; `--json` is for scripts."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from linnet.cli.app import app

SCRIPT = """
import linnet as ln

x = ln.random.default_rng(0).standard_normal((40_000, 40_000), chunks=10_000)
low = ln.linalg.cholesky(x @ x.T)
print("mean", float(low.mean().compute()), low.shape)
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "big.py").write_text(SCRIPT)
    return str(tmp_path / "big.py")


def test_what_would_take_hours_is_planned_at_once(script):
    told = CliRunner().invoke(app, ["plan", "--nodes", "4", "--workers", "2", script])
    assert told.exit_code == 0, told.output
    assert "1. plan of expression" in told.output
    assert "4 nodes with 8 workers" in told.output
    assert "mean 0.0 (40000, 40000)" in told.output


def test_plans_for_scripts(script):
    told = CliRunner().invoke(app, ["plan", "--json", "--nodes", "2", script])
    assert "mean 0.0 (40000, 40000)" in told.stderr, "what the script prints does not stand between the plans"
    (plan, *_) = [json.loads(line) for line in told.stdout.splitlines()]
    assert plan["tasks"] > 30
    assert plan["seconds"] > 1
    assert plan["bytes_moved"] > 0


def test_a_script_that_computes_nothing(tmp_path):
    (tmp_path / "nothing.py").write_text("print('hello')")
    told = CliRunner().invoke(app, ["plan", str(tmp_path / "nothing.py")])
    assert told.exit_code == 0
    assert "computes nothing that would be planned" in told.output
    assert CliRunner().invoke(app, ["plan", str(tmp_path / "missing.py")]).exit_code == 2


def test_on_one_node_nothing_is_said_of_others(script):
    told = CliRunner().invoke(app, ["plan", "--workers", "2", script])
    assert "1 node with 2 workers" in told.output
    assert not any(word in told.output for word in ("between nodes", "received", "placed by", "node 0"))


def test_completion_is_there():
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output
