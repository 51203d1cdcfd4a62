"""What all tests of tile programs share: their kernels, and golden texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The oracle and the generator are modules beside the tests, imported by name.
sys.path.insert(0, str(HERE))

import sample_kernels  # noqa: E402, F401  registers the kernels that the programs here call

# Importing it a second time under another name, as a doctest run would, registers each kernel twice.
collect_ignore = ["sample_kernels.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/programs/golden from what is printed now"
    )


class Golden:
    """Compares text with a file in `golden/`, or rewrites the file."""

    def __init__(self, update: bool) -> None:
        self.update = update

    def check(self, name: str, text: str) -> None:
        path = HERE / "golden" / f"{name}.txt"
        if self.update:
            path.write_text(text + "\n", encoding="utf-8")
        assert path.exists(), f"{path.name} is missing; run pytest tests/programs --update-golden"
        assert text + "\n" == path.read_text(encoding="utf-8"), (
            f"{path.name} differs from what is printed now; if the new text is right, "
            "run pytest tests/programs --update-golden"
        )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--update-golden", default=False)))
