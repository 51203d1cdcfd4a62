"""Every example runs as a user would run it, and says what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAID = {
    "climatology": "warming found: 0.0",
    "convolutional_network": "pictures told apart: 100%",
    "factor_and_solve": "largest difference from NumPy",
    "files": "warmest: station",
    "fleet_factorise": "bill: ",
    "stateless_workers": "one worker killed at",
    "tree_sum": "sum of squares",
    "xarray_climatology": "warming found: 0.0",
}


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path) -> None:
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert SAID[example.stem] in done.stdout
