"""Builds the compiled core into the package, where there is a C compiler.

Without one (or with one that fails) the package is built all the same, pure Python, and what is compiled
takes its slower way. `CC` names another compiler than `cc`, `LINNET_PLATFORM` the tag of wheels for an
index (`tools/dist.py` checks that it is true). Every library says which sources it was built
from, so that one left over from other sources is not taken (`linnet.machine.libraries`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = "src/linnet/*/compiled/*.c"
"""Each becomes a library beside it."""
ALWAYS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off")
# Sums may be taken in any order (vectors need it), products and sums be fused; inf and nan are kept.
FASTER = (
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-fcx-limited-range",
    "-ffp-contract=fast", "-Wno-psabi",
)  # fmt: skip
ANY_ORDER = ("chase.c", "kmeans.c", "sparse.c", "substitute.c")
"""Sources that are built with these. The others promise the bits of their Python twins."""


def compile_core(root: Path) -> tuple[list[Path], list[str]]:
    """Build the libraries in their places in the sources: those that were built, and what went wrong."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if not compiler or not shutil.which(compiler[0]):
        return [], [f"there is no C compiler {shlex.join(compiler)!r}; set CC, or install one"]
    sources = sorted(root.glob(SOURCES))
    with ThreadPoolExecutor(os.cpu_count()) as several:  # half a minute one after another
        said = dict(zip(sources, several.map(partial(compile_library, compiler), sources), strict=True))
    built = [source.with_suffix(".so") for source, problem in said.items() if not problem]
    failed = [f"{shlex.join(compiler)} failed on {source.name}: {why}" for source, why in said.items() if why]
    return built, failed


def compile_library(compiler: list[str], source: Path) -> str:
    """Build one library beside its source; returns what the compiler said where that failed."""
    fresh = source.with_suffix(".new")
    said = ""
    for flags in ((*ALWAYS, *FASTER), ALWAYS) if source.name in ANY_ORDER else (ALWAYS,):
        command = [*compiler, *flags, "-o", str(fresh), str(source), "-x", "c", "-", "-x", "none", "-lm"]
        done = subprocess.run(command, input=built_from(source, flags), capture_output=True, text=True)
        if done.returncode == 0:
            fresh.replace(source.with_suffix(".so"))  # at once: a process may have the old one loaded
            return ""
        said = done.stderr.strip()
    return said or f"{source.name} could not be built"


def built_from(source: Path, flags: tuple[str, ...]) -> str:
    """A line of C: what a library was built from, and how; `linnet.machine.libraries` reads it."""
    parts = [source, *sorted(source.parent.glob("*.h"))]
    text = hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()[:16]
    order = "any order" if FASTER[0] in flags else "one order"
    quoted = f'"{text} {order} " __VERSION__'
    return f'__attribute__((visibility("default"))) const char linnet_built_from[] = {quoted};\n'


class CompiledCore(BuildHookInterface):
    """Adds the libraries to wheels, which then belong to one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        built, failed = compile_core(Path(self.root))
        for problem in failed:
            self.app.display_warning(f"Linnet is built without a part of its compiled core: {problem}")
        if built:
            build_data["artifacts"] += [f"/{each.relative_to(self.root).as_posix()}" for each in built]
            build_data["pure_python"] = False
            platform = os.environ.get("LINNET_PLATFORM") or sysconfig.get_platform()
            platform = platform.replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"
