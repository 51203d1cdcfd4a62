"""scikit-learn, SciPy, einops and opt_einsum on arrays: the page that lists them is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import linnet as ln

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.needs("sklearn")
@pytest.mark.needs("einops")
@pytest.mark.slow
def test_the_page_is_what_its_script_writes() -> None:
    """SciPy looks at SCIPY_ARRAY_API when it is imported, so the script runs in a process of its own."""
    done = subprocess.run(
        [sys.executable, DOCS / "libraries_page.py", "--check"],
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_every_tagged_estimator_passes() -> None:
    page = (DOCS / "libraries.md").read_text(encoding="utf-8")
    title = next(line for line in page.splitlines() if line.startswith("### Estimators: "))
    passing, _, tagged = title.removeprefix("### Estimators: ").partition(" of ")
    assert passing == tagged
    assert int(tagged) >= 15


def test_the_dtype_of_an_array_is_found_among_the_namespaces() -> None:
    """scikit-learn looks for the name of a dtype so."""
    names = {dtype: name for name, dtype in ln.__array_namespace_info__().dtypes().items()}
    assert names[ln.asarray([1.0]).dtype] == "float64"
    assert names[ln.asarray([True]).dtype] == "bool"
