"""What tests of bridges share: a store in the manner of climate models, and a count of what is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cmip import write

    path = tmp_path_factory.mktemp("cmip") / "day.zarr"
    write(path)
    return path


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A list that gets an entry whenever an engine runs something."""
    from linnet.engines import Threads

    found: list[Any] = []
    run = Threads.run

    def counted(self: Any, program: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(program)
        return run(self, program, *args, **kwargs)

    monkeypatch.setattr(Threads, "run", counted)
    return found
