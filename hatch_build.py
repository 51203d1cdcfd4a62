"""Builds the compiled core of the kernels into the package, where there is a C compiler.

Without one (or with one that fails) the package is built all the same, pure Python, and the kernels
take their slower way. `CC` names another compiler than `cc`.
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

SOURCE = Path("src/linnet/kernels/compiled")
LIBRARY = SOURCE / "chase.so"
ALWAYS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")
# Sums may be taken in any order (vectors need it), products and sums be fused; inf and nan are kept.
FASTER = (
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-fcx-limited-range",
    "-ffp-contract=fast", "-Wno-psabi",
)  # fmt: skip


def compile_core(root: Path) -> str | None:
    """Build the library in its place in the sources; returns why it could not be built, or None."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if not compiler or not shutil.which(compiler[0]):
        return f"there is no C compiler {shlex.join(compiler)!r}; set CC, or install one"
    fresh = root / LIBRARY.with_suffix(".new")
    said = ""
    for flags in ((*ALWAYS, *FASTER), ALWAYS):
        command = [*compiler, *flags, "-o", str(fresh), str(root / SOURCE / "chase.c"), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            fresh.replace(root / LIBRARY)  # at once: a process may have the old one loaded
            return None
        said = done.stderr.strip()
    return f"{shlex.join(compiler)} failed: {said}"


class CompiledCore(BuildHookInterface):
    """Adds the library to wheels, which then belong to one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        missing = compile_core(Path(self.root))
        if missing:
            self.app.display_warning(f"Linnet is built without its compiled core: {missing}")
            return
        build_data["artifacts"].append(f"/{LIBRARY.as_posix()}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
