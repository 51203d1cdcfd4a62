"""What every test shares: hypothesis profiles, and the rule about missing components.

A test that needs something optional says so with `@pytest.mark.needs("matplotlib")`. Where the
component is missing the test is skipped; under CI=true, if ci-components.txt lists it, the skip
is a failure, so that no promise goes untested because an installation quietly failed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("ci", derandomize=True, max_examples=50, deadline=None, database=None)
settings.register_profile("check", derandomize=True, max_examples=10, deadline=None, database=None)
settings.register_profile(
    "long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


def read_components(text: str) -> dict[str, str]:
    """Name to kind ("module" or "command") of the components a list names."""
    rows = [line.partition("#")[0].split() for line in text.splitlines()]
    return {name: kind for kind, name in filter(None, rows)}


COMPONENTS = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COMPONENTS] = read_components((ROOT / "ci-components.txt").read_text(encoding="utf-8"))


def _present(name: str, kind: str) -> bool:
    return shutil.which(name) is not None if kind == "command" else importlib.util.find_spec(name) is not None


def _needed(item: pytest.Item) -> list[str]:
    return [name for mark in item.iter_markers("needs") for name in mark.args]


def pytest_runtest_setup(item: pytest.Item) -> None:
    known = item.config.stash[COMPONENTS]
    for name in _needed(item):
        if name not in known:
            where = "list it in ci-components.txt with its kind"
            raise pytest.UsageError(f"{item.nodeid} needs {name!r}: {where}")
        if not _present(name, known[name]):
            pytest.skip(f"needs {name}, which is not installed here")


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport, names: list[str]) -> None:
    if os.environ.get("CI") == "true" and names:
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        listed = f"CI must have {', '.join(names)} (ci-components.txt)"
        report.longrepr = f"{listed}, yet this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _forbid_skip(report, _needed(item))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped:  # a whole module, by importorskip
        known = collector.config.stash[COMPONENTS]
        _forbid_skip(report, [name for name in known if name in str(report.longrepr)])
    return report
