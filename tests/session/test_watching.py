"""Progress and reports as users ask for them: in lines, on a terminal, in a notebook, as a page."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest

import linnet as ln
from linnet.errors import InputError
from linnet.events import Events, JobFailed, JobFinished, JobStarted, Progress, TaskFinished, showing
from linnet.events.notebook import NotebookProgress
from linnet.events.progress import ProgressBar, ProgressLines
from linnet.events.record import _TASKS, Record
from linnet.events.watching import RECORD
from linnet.session import make_engine


@pytest.fixture(autouse=True)
def _no_choice():
    yield
    ln.progress(None)
    showing._displays.clear()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["threads", "simulated", "stateless"])
def test_progress_is_shown_on_every_engine(engine, capsys):
    x = np.arange(3600.0).reshape(60, 60)
    options = {"stateless": {"launcher": "threads"}, "simulated": {"cluster": ln.Cluster(nodes=2)}}.get(
        engine, {}
    )
    with ln.init(engine, progress=True, **options):
        found = (ln.asarray(x, chunks=20) @ ln.asarray(x, chunks=20)).persist().compute()
    assert np.allclose(found, x @ x)
    told = capsys.readouterr().err
    assert "tasks on" in told
    assert "finished in" in told


def test_who_decides_what_is_shown(capsys):
    def run(**options):
        x = ln.asarray(np.ones((40, 40)), chunks=20)
        return (x @ x).persist(**options)

    run()
    assert capsys.readouterr().err == "", "nobody looks, and nobody asked"
    run(progress=True)
    assert "finished in" in capsys.readouterr().err
    with ln.progress():
        run()
        assert "finished in" in capsys.readouterr().err
        run(progress=False)
        assert capsys.readouterr().err == ""
    run()
    assert capsys.readouterr().err == "", "the block has ended"
    ln.progress(on=True)
    run()
    assert "finished in" in capsys.readouterr().err
    ln.progress(False)
    run()
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match=r"progress='yes': give True \(show every run\), False"):
        ln.progress("yes")  # pyright: ignore


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_by_default_only_what_takes_long_is_shown_and_only_to_who_looks(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    hub = showing.hub_of_display()
    assert hub is not None
    for job, seconds in (("short", 2.0), ("long", 9.0)):
        hub.emit(JobStarted(job, 0.0, program=job, tasks=10, workers=2))
        hub.emit(Progress(job, seconds, done=5, tasks=10, read=3_000_000, memory=2_000_000_000))
        hub.emit(JobFinished(job, seconds, seconds=seconds))
    assert "short" not in out.getvalue()
    assert "long" in out.getvalue()
    assert "finished in 9.0 s" in out.getvalue()
    assert "3.0 MB read" in out.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert showing.hub_of_display() is None


def test_many_short_runs_are_told_together():
    out = io.StringIO()
    lines = ProgressLines(out)
    for number in range(300):
        lines(JobStarted(f"j{number}", 0.01 * number, program="step", tasks=2, workers=2))
        lines(JobFinished(f"j{number}", 0.01 * number, seconds=0.01))
    lines.close()
    assert len(out.getvalue().splitlines()) < 30
    assert "more short runs" in out.getvalue()
    bars = ProgressBar(Terminal())
    bars(JobStarted("j", 0.0, program="step", tasks=2, workers=2))
    bars(JobFailed("j", 0.1, error="ValueError: no", seconds=0.1))
    assert "failed after 0.1 s" in bars._console.file.getvalue()


def test_a_notebook_gets_html_that_changes_in_place():
    shown: list[str] = []

    def show(page):
        shown.append(page)
        return shown.append

    display, events = NotebookProgress(show), Events()
    display.listen(events)
    events.emit(JobStarted("j", 0.0, program="<fit>", tasks=10, workers=2))
    events.emit(Progress("j", 4.0, done=5, tasks=10))
    events.emit(JobFinished("j", 8.0, seconds=8.0))
    assert "&lt;fit&gt;" in shown[0]
    assert "width:50.0%" in shown[0]
    assert "4.0 s left" in shown[0]
    assert "finished in 8.0 s" in shown[-1]


@pytest.mark.slow
def test_a_report_tells_what_ran(tmp_path):
    x = ln.random.default_rng(0).standard_normal((300, 300), chunks=100)
    with ln.init(workers=2, memory="50 MB"):
        (x @ x.T).persist()
    made = ln.report(tmp_path / "page.html", title="<b>products</b>")
    (*_, job) = made.data["jobs"]
    assert job["state"] == "finished"
    assert job["done"] == job["tasks"] == sum(kernel["tasks"] for kernel in job["kernels"])
    assert job["budget"] == 50_000_000
    assert job["flops"] >= 2 * 300**3
    assert job["samples"][-1][5] > 0, "bytes read"
    page = (tmp_path / "page.html").read_text()
    assert "<title>&lt;b&gt;products" in page
    assert "<b>products" not in page.replace("&lt;", "")
    assert json.loads((tmp_path / "page.json").read_text()) == json.loads(made.json())
    assert "contract" in str(made)
    assert "srcdoc" in made._repr_html_()
    with pytest.raises(
        InputError, match=r"a report is written as .html, .json, .svg, .png or .pdf, not as .txt"
    ):
        ln.report(tmp_path / "page.txt")


def test_a_failure_is_in_the_report():
    bad = ln.map_blocks(lambda tile: 1 / 0, ln.ones((4, 4), chunks=2), dtype=float)
    with pytest.raises(ZeroDivisionError):
        bad.persist()
    job = ln.report().data["jobs"][-1]
    assert job["state"] == "failed"
    assert "ZeroDivisionError" in job["failures"][0][3]


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_a_report_is_a_picture_for_papers(tmp_path):
    RECORD(JobStarted("drawn", 0.0, program="drawn", tasks=2, workers=1))
    RECORD(TaskFinished("drawn", 0.5, (0, (1,)), "gemm", "drawn-w0", seconds=0.4))
    RECORD(JobFinished("drawn", 0.5, seconds=0.5))
    assert b"<svg" in (ln.report().save(tmp_path / "a.svg")).read_bytes()
    assert (ln.report().save(tmp_path / "a.png")).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_million_tasks_take_bounded_room():
    record = Record()
    tasks = 3 * _TASKS
    record(JobStarted("j", 0.0, program="many", tasks=tasks, workers=2))
    for number in range(tasks):
        record(
            TaskFinished(
                "j", 0.001 * (number + 1), (0, (number,)), "gemm", f"j-w{number % 2}", seconds=0.0009
            )
        )
    (job,) = record.jobs
    assert len(job.spans) <= _TASKS
    assert job.kernels["gemm"][0] == tasks
    busy = sum(each[3] for each in job.spans)
    assert busy == pytest.approx(0.0009 * tasks, rel=0.01)


def test_an_engine_made_by_name_is_told_apart():
    showing.set_for_engine(engine := make_engine("threads"), True)
    assert showing.hub_of_display(engine) is not None
    showing.set_for_engine(engine, None)
    assert showing.hub_of_display(engine) is None
