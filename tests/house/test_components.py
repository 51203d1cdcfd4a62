"""Under CI a missing component fails the tests that need it; elsewhere it skips them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # left to `make test`

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
MARKED = """
import pytest

@pytest.mark.needs("no_such_module")
def test_absent(): pass

@pytest.mark.needs("sh")
def test_present(): pass

def test_ordinary(): pytest.skip("only on another platform")

def test_another(): pytest.skip("needs no_such_module_either, or sh-utils")

def test_inside(): pytest.importorskip("no_such_module")

@pytest.fixture
def given(): pytest.skip("this no_such_module is too old")

def test_given(given): pass

@pytest.mark.needs("unlisted")
def test_unlisted(): pass
"""
IMPORTING = """
import pytest

pytest.importorskip("no_such_module")
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A small project with our conftest, whose CI must have a module that does not exist."""
    tests = pytester.mkdir("tests")
    shutil.copy(CONFTEST, tests / "conftest.py")
    (pytester.path / "ci-components.txt").write_text("# kind name\nmodule no_such_module  # no\ncommand sh\n")
    (tests / "test_marked.py").write_text(MARKED)
    (tests / "test_importing.py").write_text(IMPORTING)
    pytester.makeini("[pytest]\nmarkers = needs(name): x\naddopts = --strict-markers -p no:cacheprovider\n")
    return pytester


def test_elsewhere_a_missing_component_skips(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CI", raising=False)
    result = project.runpytest_subprocess("-rs")
    # skipped: the marked test, those that skip themselves, the one whose fixture does, the module; the
    # unlisted component is a mistake anywhere
    result.assert_outcomes(passed=1, skipped=6, errors=1)
    result.stdout.fnmatch_lines(["*needs 'unlisted': list it in ci-components.txt with its kind*"])
    result.stdout.fnmatch_lines(["*needs no_such_module, which is not installed here*"])


def test_under_ci_only_ordinary_skips_remain(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "true")
    result = project.runpytest_subprocess("-rs", "--continue-on-collection-errors")
    result.stdout.fnmatch_lines(["*ERROR collecting tests/test_importing.py*", "*CI must have no_such*"])
    result.stdout.fnmatch_lines(["*CI must have no_such_module (ci-components.txt), yet this was skipped*"])
    result.stdout.fnmatch_lines(["*yet this was skipped: *this no_such_module is too old*"])
    result.stdout.fnmatch_lines(["*yet this was skipped: *could not import 'no_such_module'*"])
    # left: the ordinary skips; failed: the test that skips itself; in error: the module, the marked test, the
    # one whose fixture skips, the one that needs what is not listed
    result.assert_outcomes(passed=1, skipped=2, failed=1, errors=4)
