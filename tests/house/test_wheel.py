"""The wheel holds the package and nothing else, and works where only its dependencies are."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_wheel_installs_and_runs_by_itself(fresh, root: Path):
    there = fresh()
    there.uv("build", "--quiet", "--wheel", "--out-dir", str(there.path / "dist"), str(root))
    (wheel,) = (there.path / "dist").glob("linnet_array-*.whl")

    names = zipfile.ZipFile(wheel).namelist()
    assert "linnet/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = {str(path.relative_to(root / "src")) for path in (root / "src/linnet").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources

    there.install(str(wheel))
    where = there.python("-c", "import linnet; print(linnet.__file__)")
    assert str(there.path) in where
    assert importlib.metadata.version("linnet-array") in there.command("linnet", "--version")
    report = there.command("linnet", "doctor")
    assert "numpy" in report
    assert "matplotlib" in report, "doctor should say what the extra `plot` would add"
