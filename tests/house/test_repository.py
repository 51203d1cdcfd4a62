"""The repository speaks of the project alone, and says first what a newcomer types first."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

# Written in pieces, or this file would find itself.
PRIVATE = "|".join(["wor" + "k", "ro" + "ot", "hom" + "e", "User" + "s", "t" + "mp"])
MACHINE_PATH = re.compile(rf"(?<![\w.~/-])/(?:{PRIVATE})/\w")
REGISTRY = re.compile(
    "|".join(
        [
            "@ fi" + "le://",  # a requirement that was on some disk
            "pypi[.]org/" + "simple",
            "files[.]python" + "hosted",
            "registry[.]" + "(npmjs|yarnpkg)",
            "-index" + "-url",
            "--find" + "-links",
        ]
    )
)


@pytest.fixture(scope="module")
def tracked(root: Path) -> dict[str, str]:
    """Every text file under version control."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    texts: dict[str, str] = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = root / name
        if path.is_file() and b"\0" not in (data := path.read_bytes()):
            texts[name] = data.decode("utf-8")
    return texts


def offending(tracked: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in tracked.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.slow
def test_no_file_names_a_path_of_some_machine(tracked: dict[str, str]):
    assert offending(tracked, MACHINE_PATH) == []


def test_no_file_names_a_package_registry(tracked: dict[str, str]):
    assert offending(tracked, REGISTRY) == []
    assert not {"uv.lock", "package-lock.json"} & {Path(name).name for name in tracked}


def test_the_patterns_find_what_they_look_for():
    assert MACHINE_PATH.search("see /ho" + "me/ann/linnet")
    assert MACHINE_PATH.search('open("/t' + 'mp/x")')
    assert not MACHINE_PATH.search("docs/home/index and https://example.org/home/x")
    assert REGISTRY.search("--extra-index" + "-url https://example.org")


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_shows_the_two_commands_on_its_first_screen(root: Path, command: str):
    first_screen = (root / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert any(command in line for line in first_screen)


def test_ci_runs_the_command_the_readme_shows(root: Path):
    assert "make test" in (root / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.slow
def test_nobody_inside_imports_the_root(root: Path):
    """The root gathers what users see; a room that imports it would import everything above itself."""
    rooms = {path.stem if path.is_file() else path.name for path in (root / "src/linnet").iterdir()}
    found: list[str] = []
    for path in sorted((root / "src/linnet").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            whole = isinstance(node, ast.Import) and any(name.name == "linnet" for name in node.names)
            part = (
                isinstance(node, ast.ImportFrom)
                and node.module == "linnet"
                and any(name.name not in rooms for name in node.names)
            )
            if whole or part:
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []


def test_the_makefile_is_documented_by_its_own_help(root: Path):
    said = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in ("demo", "test", "test-long", "check", "bench", "docs", "lock", "clean"):
        assert f"make {name} " in said


@pytest.mark.parametrize("listed", ["", "# nothing but a remark\n"])
def test_no_system_package_listed_means_nothing_is_installed(root: Path, tmp_path: Path, listed: str):
    packages = tmp_path / "packages.txt"
    packages.write_text(listed, encoding="utf-8")
    done = subprocess.run(
        [root / "tools/system-packages.sh", packages], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
