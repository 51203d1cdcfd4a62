"""The documentation builds without a warning, and every Python example in it runs."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TAKE_LONG = {"bridges.md", "files.md", "linalg.md", "workers.md"}
EXAMPLES = [
    pytest.param(
        page, marks=[pytest.mark.slow] if page.name in TAKE_LONG else [], id=str(page.relative_to(ROOT))
    )
    for page in PAGES
]


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_run(page: Path):
    """`python` blocks are run; in `pycon` blocks the answers are compared too. A page is one session."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": f"page_{page.stem}"}
    for block in BLOCK.finditer(text):
        kind, source = block.groups()
        line = text.count("\n", 0, block.start(2))
        if kind == "python":
            # Blank lines before the block keep line numbers those of the page, also for inspect.
            exec(compile("\n" * line + source, str(page), "exec"), names)
        else:
            test = doctest.DocTestParser().get_doctest(source, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=OPTIONS)
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            names.update(test.globs)
            assert runner.failures == 0, "".join(said)


def commands() -> list[Any]:
    """Each line of a `sh` block that calls `linnet`."""
    shell = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        pytest.param(line, id=f"{page.relative_to(ROOT)}: {line.split('#')[0].strip()}"[:90])
        for page in PAGES
        for block in shell.findall(page.read_text(encoding="utf-8"))
        for line in block.splitlines()
        if re.match(r"(python -m )?linnet ", line)
    ]


@pytest.mark.parametrize("line", commands())
def test_the_commands_are_ones_that_linnet_has(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Verbs, options and numbers of arguments are those of the command; nothing is run."""
    import typer

    from linnet.cli.app import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("")
    words = shlex.split(line, comments=True)
    command: Any = typer.main.get_command(app)
    words = words[words.index("linnet") + 1 :]
    while hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, f"{line}: there is no {name!r}"
        command = command.commands[name]
    with command.make_context(command.name, words):
        pass


def test_commands_are_found():
    assert len(commands()) >= 15


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("builder", ["dummy", pytest.param("html", marks=pytest.mark.long)])
def test_the_documentation_builds_without_a_warning(builder: str, tmp_path: Path):
    """Most of the time goes into writing pages: the ordinary run reads them all and follows their links."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "-E"]
    done = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path):
    """Pages under docs/ are checked by Sphinx; these are outside it."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_files_that_the_design_page_names_are_there():
    source = ROOT / "src" / "linnet"
    named = set(
        re.findall(r"`([\w/]+\.(?:py|pyi|c))`", (ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    )
    assert len(named) >= 50
    assert [
        name for name in sorted(named) if not any(source.rglob(name)) and not (ROOT / name).exists()
    ] == []
