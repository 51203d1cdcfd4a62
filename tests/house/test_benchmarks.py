"""`make bench` runs every benchmark there is, and the list of them names each."""

from __future__ import annotations

import subprocess
from pathlib import Path


def test_every_benchmark_is_run_and_listed(root: Path):
    made = [path.name for path in (root / "benchmarks").glob("*.py") if "__main__" in path.read_text()]
    commands = subprocess.run(
        ["make", "--dry-run", "bench"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    listed = (root / "benchmarks" / "README.md").read_text()
    assert len(made) >= 8
    for name in made:
        assert f"benchmarks/{name}" in commands
        assert f"| `{name}` |" in listed
