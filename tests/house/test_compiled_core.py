"""Compiled libraries: built one by one, told apart by their sources, and missed with a word."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import types
import warnings

import pytest

from linnet.errors import CompiledCoreWarning
from linnet.machine import libraries

pytestmark = pytest.mark.needs("cc")
SOURCE = '__attribute__((visibility("default"))) int answer(void) { return LINE; }\n'


@pytest.fixture
def build(root, monkeypatch):
    """`hatch_build.py`, which is no part of the package; hatchling need not be installed for it."""
    hooks = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    hooks.BuildHookInterface = object
    parts = hooks.__name__.split(".")
    for count in range(1, len(parts)):
        name = ".".join(parts[:count])
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, hooks.__name__, hooks)
    spec = importlib.util.spec_from_file_location("hatch_build", root / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "src" / "linnet" / "room" / "compiled"
    made.mkdir(parents=True)
    (made / "numbers.h").write_text("#define LINE 42\n")
    for name in ("one", "two"):
        (made / f"{name}.c").write_text('#include "numbers.h"\n' + SOURCE)
    return made


def told(place):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = libraries.loaded(place)
    return found, [str(each.message) for each in caught if each.category is CompiledCoreWarning]


@pytest.fixture(autouse=True)
def nobody_was_warned(monkeypatch):
    monkeypatch.setattr(libraries, "_warned", False)


@pytest.mark.slow
def test_each_library_says_what_it_was_built_from(build, folder, tmp_path):
    built, failed = build.compile_core(tmp_path)
    assert [each.name for each in built] == ["one.so", "two.so"]
    assert failed == []
    library, words = told(folder / "one.so")
    assert library.answer() == 42
    assert words == []
    assert "one order" in libraries.built_from(library)


def test_only_kernels_may_sum_in_any_order(build, root):
    sources = {each.name for each in root.glob(build.SOURCES)}
    assert set(build.ANY_ORDER) < sources
    assert {"simulate.c", "place.c", "fields.c", "runs.c"} <= sources - set(build.ANY_ORDER)


def test_a_source_that_fails_does_not_take_the_others_along(build, folder, tmp_path):
    (folder / "two.c").write_text("this is no C\n")
    built, failed = build.compile_core(tmp_path)
    assert [each.name for each in built] == ["one.so"]
    (why,) = failed
    assert "failed on two.c" in why


def test_without_a_compiler_nothing_is_built(build, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    built, (why,) = build.compile_core(tmp_path)
    assert built == []
    assert "no C compiler 'no-such-compiler'" in why


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["one.c", "numbers.h"])
def test_a_library_from_other_sources_is_not_taken(build, folder, tmp_path, changed):
    build.compile_core(tmp_path)
    with (folder / changed).open("a") as file:
        file.write("/* another line */\n")
    library, (words,) = told(folder / "one.so")
    assert library is None
    assert "one.so was built from other sources" in words
    assert "make dev" in words


def test_a_library_from_before_they_said_so_is_not_taken(folder):
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "one.so", folder / "one.c"], check=True)
    library, (words,) = told(folder / "one.so")
    assert library is None
    assert "from other sources" in words


@pytest.mark.slow
def test_where_the_sources_are_not_beside_it_a_library_is_taken(build, folder, tmp_path):
    build.compile_core(tmp_path)
    (folder / "two.c").unlink()
    assert told(folder / "two.so")[0] is not None


def test_a_process_is_told_once(folder):
    _, (words,) = told(folder / "one.so")
    assert "one.so was not built" in words
    assert told(folder / "two.so") == (None, [])


def test_a_file_for_another_machine(folder):
    (folder / "one.so").write_bytes(b"\x7fELF nonsense")
    library, (words,) = told(folder / "one.so")
    assert library is None
    assert "for another machine" in words


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_compiled_core_under_sanitizers(build, root, tmp_path):
    """Its tests, with libraries that stop at the first access or operation that C does not define."""
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    build.ALWAYS += ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    built, failed = build.compile_core(tmp_path)
    assert failed == []
    assert len(built) == len(list(root.glob(build.SOURCES)))
    # ASan must come first, and with it what it looks for when it starts.
    preloaded = [
        subprocess.run(
            ["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    tests = [
        "tests/kernels/test_bulge.py", "tests/kernels/test_substitution.py", "tests/io/test_csv_plain.py",
        "tests/planning/test_simulate.py", "tests/planning/test_policies.py",
        "tests/engines/test_mapped_tiles.py",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *tests],
        cwd=root,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path / "src"),
            "LD_PRELOAD": " ".join(preloaded),
            "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
