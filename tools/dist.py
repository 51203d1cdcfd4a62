"""Builds what a package index takes into dist/, and tests each in an environment of its own.

    python tools/dist.py

A wheel with the compiled core for manylinux_2_28_x86_64, a pure one for every other platform, and an sdist,
from which both are built. auditwheel is not needed: the libraries are plain C, so it is enough that they ask
for no other libraries than the platform has, and no symbols newer than its glibc.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLATFORM = "manylinux_2_28_x86_64"
GLIBC = (2, 28)
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}
"""Libraries that every such system has, as far as the core may need them."""
NO_COMPILER = "/no/compiler"
SMOKE = """
import numpy as np, linnet as ln
x = ln.asarray(np.arange(40000.0).reshape(200, 200), chunks=64)
y = x.compute()
assert np.allclose((x @ x.T).compute(), y @ y.T)
assert np.allclose(ln.linalg.svdvals(x).compute()[:2], np.linalg.svd(y, compute_uv=False)[:2])
"""


def run(*command: str | Path, cc: str | None = None, platform: str | None = None, cwd: Path = ROOT) -> str:
    """What a command wrote; its failure ends the build with all that it said."""
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV", "CC"}}
    kept |= {} if cc is None else {"CC": cc}
    kept |= {} if platform is None else {"LINNET_PLATFORM": platform}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=kept, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def unfit(wheel: Path) -> list[str]:
    """What in the libraries of a wheel a system of the platform would not have."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        sources = [name for name in archive.namelist() if name.endswith(".c")]
        if len(libraries) != len(sources):
            problems.append(f"{len(libraries)} libraries were built from {len(sources)} sources")
        for name in libraries:
            path = archive.extract(name, folder)
            needed = set(re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "--dynamic", path)))
            problems += [f"{name} needs {each}" for each in sorted(needed - ALLOWED)]
            symbols = run("readelf", "--version-info", "--wide", path)
            for major, minor in set(re.findall(r"Name: GLIBC_(\d+)\.(\d+)", symbols)):
                if (int(major), int(minor)) > GLIBC:
                    problems.append(f"{name} needs symbols of glibc {major}.{minor}")
    return problems


def build(out: Path, what: Path = ROOT, *, kind: str = "--wheel", core: bool = True) -> Path:
    """Build a wheel or an sdist; what was built."""
    before = set(out.glob("*"))
    cc = None if core else NO_COMPILER
    run(
        sys.executable, "-m", "uv", "build", "--quiet", kind, "--out-dir", out, what, cc=cc, platform=PLATFORM
    )
    (made,) = set(out.glob("linnet_array-*")) - before
    return made


def try_out(what: Path, *, core: bool, compiler: bool = True) -> None:
    """Install a distribution where nothing else is, and compute with it."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "venv/bin/python")
        cc = None if compiler else NO_COMPILER
        run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, Path(folder, "venv"))
        run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, what, cc=cc)
        run(python, "-W", "ignore", "-c", SMOKE, cwd=Path(folder), cc=cc)
        libraries = [*Path(folder, "venv").glob("lib/python*/site-packages/linnet/*/compiled/*.so")]
        if bool(libraries) != core:
            sys.exit(f"error: {what.name} was installed with {len(libraries)} compiled libraries")
    print(f"tested: {what.name}, {'with' if compiler else 'without'} a compiler")


def main() -> None:
    """Build all, check all, then put them into dist/: nothing untested is there."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "dist")
        sdist = build(out, kind="--sdist")
        compiled = build(out)
        pure = build(out, core=False)
        if not compiled.name.endswith(f"-py3-none-{PLATFORM}.whl") or not pure.name.endswith(
            "-py3-none-any.whl"
        ):
            sys.exit(f"error: built {compiled.name} and {pure.name}; is there a C compiler?")
        if problems := unfit(compiled):
            sys.exit(f"error: {compiled.name} does not run on {PLATFORM}:\n  " + "\n  ".join(problems))
        try_out(compiled, core=True, compiler=False)
        try_out(pure, core=False)
        for core in (True, False):  # what pip makes of it where there is a compiler, and where there is none
            try_out(build(Path(folder, f"from-sdist-{core}"), sdist, core=core), core=core, compiler=core)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(out, ROOT / "dist", ignore=shutil.ignore_patterns(".gitignore"))
    print(*sorted(each.name for each in (ROOT / "dist").iterdir()), sep="\n")


if __name__ == "__main__":
    main()
