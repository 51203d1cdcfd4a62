"""The command: its verbs, their output, and how errors end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from linnet import kernels
from linnet.cli import app as command
from linnet.cli import doctor, kriging, machine, sizing
from linnet.cli.app import app
from linnet.engines import Threads
from linnet.errors import InputError
from linnet.tiles import TiledArray, human
from linnet.tiles.amounts import total_memory

run = CliRunner()


def invoke(*arguments):
    return run.invoke(app, list(arguments))


@pytest.mark.slow
def test_version_and_help():
    assert invoke("--version").output.startswith("linnet 0.")
    assert "demo" in invoke("--help").output
    assert "--size" in invoke("demo", "--help").output


@pytest.mark.slow
def test_demo_survives_killed_workers_and_verifies(tmp_path):
    report = tmp_path / "report.html"
    result = invoke("demo", "--size", "900", "--tile", "60", "--workers", "3", "--report", str(report))
    assert result.exit_code == 0, result.output
    for words in ("weights.bind(N=15)", "GFLOP/s", "workers killed", "verified", str(report)):
        assert words in result.output
    page = report.read_text()
    for words in ("Who was busy when", "killed", "downdate", "residual"):
        assert words in page


def test_demo_refuses_what_does_not_fit(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["linnet", "demo", "--size", "90000000"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("linnet: error: a matrix of 90,000,000 rows and its factor need")
    assert "Traceback" not in error


def test_debug_shows_where(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["linnet", "--debug", "demo", "--size", "90000000"])
    with pytest.raises(SystemExit):
        command.main()
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (InputError("no"), "linnet: error: no", 1),
        (ZeroDivisionError("oh"), "linnet: unexpected error: ZeroDivisionError: oh", 1),
        (MemoryError("much"), "linnet: error: out of memory (much); try a smaller --size", 1),
        (KeyboardInterrupt(), "linnet: interrupted", 130),
    ],
)
def test_errors_are_one_message(capsys, monkeypatch, error, words, code):
    def broken():
        raise error

    monkeypatch.setattr(command, "app", broken)
    monkeypatch.setattr(sys, "argv", ["linnet", "demo"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == code
    assert capsys.readouterr().err.startswith(words)


def test_the_check_of_the_demo_finds_a_wrong_weight():
    given = kriging.inputs(50, 20)
    found = Threads(2).run(kriging.weights.bind(N=3), given)["W"].to_numpy()
    good, limit = kriging.residual(given, TiledArray.from_numpy(found, (20, 1)))
    assert good < limit
    found[40, 0] += 1e-6
    bad, limit = kriging.residual(given, TiledArray.from_numpy(found, (20, 1)))
    assert bad > limit


@pytest.mark.slow
def test_a_wrong_result_fails_the_demo(monkeypatch, tmp_path):
    monkeypatch.setattr(kriging, "residual", lambda given, found: (1.0, 1e-12))
    result = invoke("demo", "--size", "100", "--workers", "1", "--report", str(tmp_path / "r.html"))
    assert result.exit_code == 1
    assert "linnet: error: the result is wrong" in result.output


def test_sizes_follow_the_machine(monkeypatch):
    monkeypatch.setattr(sizing, "speed", lambda workers: workers * 40e9)
    large = sizing.choose(None, None, workers=2, free=24 * 10**9)
    assert 8_000 <= large.size <= 14_000
    assert large.tile == 512
    assert large.tiles * large.tile == large.size
    small = sizing.choose(None, None, workers=2, free=200 * 10**6)
    assert small.bytes <= 200 * 10**6
    assert sizing.choose(100, 30, workers=1, free=10**9).tiles == 4
    with pytest.raises(InputError, match="choose a smaller --size"):
        sizing.choose(10_000, None, workers=1, free=10**6)


def test_speed_is_plausible(monkeypatch):
    monkeypatch.setattr(sizing, "_TRIAL", 0.02)
    assert 1e8 < sizing.speed(2) < 1e14


def test_memory_is_plausible():
    assert 0 < machine.free_memory() <= total_memory()
    assert machine.peak_memory() > 10**6
    assert human(999) == "999 bytes"
    assert human(2.5e13) == "25.0 TB"


def test_doctor_reports_what_is_here():
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    for words in ("Python", "cores", "numpy", "scipy", "BLAS", "extra plot", "scratch", "works"):
        assert words in result.output


def test_doctor_for_scripts(monkeypatch):
    found = json.loads(invoke("doctor", "--json").stdout)
    assert found["works"] is True
    assert {"Python", "cores", "BLAS", "scratch"} <= {each["label"] for each in found["findings"]}
    monkeypatch.setattr(doctor, "requirements", lambda: {None: ["no-such-package-here"]})
    result = invoke("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["works"] is False


def test_doctor_says_what_an_extra_would_add(monkeypatch):
    monkeypatch.setattr(doctor, "requirements", lambda: {None: ["numpy"], "plot": ["no-such-package-here"]})
    result = invoke("doctor")
    assert 'without no-such-package-here; pip install "linnet-array[plot]" adds it' in result.output
    assert result.exit_code == 0


def test_doctor_fails_on_a_fault(monkeypatch):
    monkeypatch.setattr(doctor, "requirements", lambda: {None: ["no-such-package-here"]})
    monkeypatch.setattr(kernels, "chol", lambda a: 1 // 0)
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "missing; pip install linnet-array (!)" in result.output
    assert "chol: ZeroDivisionError" in result.output
    assert "2 faults found" in result.output


@pytest.mark.slow
def test_the_command_imports_little():
    script = "import sys, linnet.cli; print([m for m in ('scipy', 'linnet.engines', 'rich.progress') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "linnet.cli", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("linnet 0.")
