"""`linnet fit`: the table and the plot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from linnet.cli import fit as verb
from linnet.cli.app import app
from linnet.errors import FileMissingError, MissingExtraError
from linnet.fleet import FittedModel, Lifetimes
from linnet.fleet.laws import Weibull


@pytest.fixture
def data(tmp_path: Path) -> Path:
    drawn = np.asarray(FittedModel(Weibull(0.6, 10.0), 24.0).sample(25, 0))
    path = tmp_path / "lifetimes.csv"
    path.write_text("lifetime_h,event\n" + "".join(f"{each},1\n" for each in drawn))
    return path


@pytest.mark.slow  # importing matplotlib
@pytest.mark.needs("matplotlib")
def test_the_table_is_printed_and_the_plot_written(data: Path):
    plot = data.with_name("plot.svg")
    done = CliRunner().invoke(app, ["fit", str(data), "--cap", "24", "--plot", str(plot), "--groups"])
    assert done.exit_code == 0, done.output
    for words in ("25 servers", "weibull", "10-fold log L", "a job of 6 h on a fresh server", "all servers'"):
        assert words in done.output
    assert b"<svg" in plot.read_bytes()


def test_without_matplotlib_there_is_the_table(data: Path, monkeypatch: pytest.MonkeyPatch):
    def missing(life: Lifetimes, model: FittedModel, path: Path) -> None:
        raise MissingExtraError("drawing needs matplotlib")

    monkeypatch.setattr(verb, "draw", missing)
    few = data.with_name("few.csv")  # so few that one law is compared, and nothing held out
    few.write_text("".join(data.read_text().splitlines(keepends=True)[:8]))
    done = CliRunner().invoke(app, ["fit", str(few), "--law", "exponential"])
    assert done.exit_code == 0
    assert "exponential(rate=" in done.output
    assert "no plot: drawing needs matplotlib" in done.output
    asked = CliRunner().invoke(app, ["fit", str(few), "--plot", "x.svg"])
    assert isinstance(asked.exception, MissingExtraError)


def test_a_file_that_is_not_there(tmp_path: Path):
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "none.csv")])
    assert isinstance(done.exception, FileMissingError)


def test_the_table_as_json(tmp_path):
    data = tmp_path / "lives.csv"
    rows = [f"{0.5 + n % 7},{'preempted' if n % 3 else 'terminated'}" for n in range(40)]
    data.write_text("lifetime_h,ended\n" + "\n".join(rows) + "\n")
    done = CliRunner().invoke(app, ["fit", str(data), "--law", "exponential", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["servers"], found["taken"]) == (40, "exponential")
    model = Lifetimes.from_csv(data).fit("exponential")
    assert found["mean"] == pytest.approx(model.mean)
    assert {each["law"] for each in found["laws"]} >= {"exponential", "weibull"}
    assert "Law of lifetimes" in model._repr_html_()
    table = Lifetimes.from_csv(data).table()
    assert table._repr_html_().count("<tr") == 1 + len(table.rows)
