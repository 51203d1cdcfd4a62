"""Builds the compiled core into the package, where there is a C compiler.

Without one (or with one that fails) the package is built all the same, pure Python, and what is compiled
takes its slower way. `CC` names another compiler than `cc`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = "src/linnet/*/compiled/*.c"
"""Each becomes a library beside it."""
ALWAYS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")
# Sums may be taken in any order (vectors need it), products and sums be fused; inf and nan are kept.
FASTER = (
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-fcx-limited-range",
    "-ffp-contract=fast", "-Wno-psabi",
)  # fmt: skip


def compile_core(root: Path) -> str | None:
    """Build the libraries in their places in the sources; returns why one could not be built, or None."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if not compiler or not shutil.which(compiler[0]):
        return f"there is no C compiler {shlex.join(compiler)!r}; set CC, or install one"
    for source in root.glob(SOURCES):
        said = compile_library(compiler, source)
        if said:
            return f"{shlex.join(compiler)} failed: {said}"
    return None


def compile_library(compiler: list[str], source: Path) -> str:
    """Build one library beside its source; returns what the compiler said where that failed."""
    fresh = source.with_suffix(".new")
    said = ""
    for flags in ((*ALWAYS, *FASTER), ALWAYS):
        command = [*compiler, *flags, "-o", str(fresh), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            fresh.replace(source.with_suffix(".so"))  # at once: a process may have the old one loaded
            return ""
        said = done.stderr.strip()
    return said or f"{source.name} could not be built"


class CompiledCore(BuildHookInterface):
    """Adds the libraries to wheels, which then belong to one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        missing = compile_core(Path(self.root))
        if missing:
            self.app.display_warning(f"Linnet is built without its compiled core: {missing}")
            return
        sources = (source.relative_to(self.root) for source in Path(self.root).glob(SOURCES))
        build_data["artifacts"] += [f"/{source.with_suffix('.so').as_posix()}" for source in sources]
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
