"""Fresh environments for the tests that install what a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A user's shell knows nothing of this one's environment, nor of how these tests are run.
OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if name not in {"PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "CI"}
}


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


class FreshEnvironment:
    """A virtual environment of its own, with nothing in it but what the test installs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uv("venv", "--quiet", "--python", sys.executable, str(path / "venv"))

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """Output of a command; its failure fails the test with everything it said."""
        done = subprocess.run(
            command, cwd=cwd or self.path, env=OUTSIDE, capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.fail(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def uv(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "uv", *arguments)

    def install(self, *requirements: str) -> None:
        self.uv("pip", "install", "--quiet", "--python", str(self.path / "venv/bin/python"), *requirements)

    def python(self, *arguments: str, cwd: Path | None = None) -> str:
        return self.run(str(self.path / "venv/bin/python"), *arguments, cwd=cwd)

    def command(self, name: str, *arguments: str) -> str:
        return self.run(str(self.path / "venv/bin" / name), *arguments)


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], FreshEnvironment]:
    return lambda: FreshEnvironment(tmp_path)
