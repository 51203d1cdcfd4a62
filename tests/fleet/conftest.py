"""Data that are not part of the repository: they lie in a folder `shared/data` beside it, or there are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """Finds one of these files, or skips the test."""

    def find(name: str) -> Path:
        for folder in Path(__file__).resolve().parents[2:]:
            path = folder.parent / "shared" / "data" / name
            if path.exists():
                return path
        pytest.skip(f"{name} is not in ../shared/data, beside the repository")

    return find
