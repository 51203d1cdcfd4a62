"""Hot paths take no more instructions than are kept in benchmarks/instructions.json."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.needs("valgrind", "cc")
def test_hot_paths_take_no_more_instructions_than_before(root: Path):
    command = [sys.executable, root / "benchmarks" / "instructions.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_more_instructions_than_kept_are_told(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    import instructions

    kept = {"a": 100.0, "b": 100.0}
    assert instructions.slower({"a": 114.0, "b": 50.0}, kept) == []
    assert instructions.slower({"a": 116.0, "c": 1.0}, kept) == [
        "a: 116.0 thousandths of the reference, kept are 100.0 (+16%)",
        "c: 1.0, and no count is kept",
    ]
