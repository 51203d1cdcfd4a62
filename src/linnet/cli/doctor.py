"""`linnet doctor`: what is installed here, what each extra would add, and whether the parts work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from linnet.errors import DISTRIBUTION

_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:.*;.*\bextra\s*==\s*[\"'](?P<extra>[^\"']+)[\"'])?")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    label: str
    """What was looked at."""
    text: str
    """What was found."""
    fault: bool = False
    """Whether Linnet cannot work like this."""
    slow: bool = False
    """Whether it works, but slower than it could."""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, for scripts.")] = False,
) -> None:
    """Show what is installed here, what each extra would add, and whether the parts work."""
    sections = (_machine, _packages, _extras, _blas, _kernels, _compiled, _scratch)
    if as_json:
        lines = [each for section in sections for each in section()]
        broken = any(each.fault for each in lines)
        typer.echo(json.dumps({"works": not broken, "findings": [asdict(each) for each in lines]}, indent=1))
        raise typer.Exit(int(broken))
    faults, slow = 0, False
    for section in sections:
        for finding in section():
            mark = " (!)" if finding.fault else " (slow)" if finding.slow else ""
            typer.echo(f"{finding.label:<14} {finding.text}{mark}")
            faults += finding.fault
            slow = slow or finding.slow
    if faults:
        typer.echo(f"\n{faults} fault{'s' if faults > 1 else ''} found: see the lines marked (!).", err=True)
        raise typer.Exit(1)
    works = "Linnet works here, but slower than it could: see the line marked (slow)."
    typer.echo("\n" + (works if slow else "Everything needed is here and works."))


def _machine() -> Iterator[Finding]:
    import os
    import platform

    from linnet.cli.machine import free_memory
    from linnet.engines import available_cores
    from linnet.tiles import human
    from linnet.tiles.amounts import total_memory

    yield Finding("Python", f"{platform.python_version()} ({platform.python_implementation()})")
    yield Finding("platform", platform.platform())
    yield Finding("cores", f"{available_cores()} usable, of {os.cpu_count()}")
    yield Finding("memory", f"{human(free_memory())} free, of {human(total_memory())}")


def requirements() -> dict[str | None, list[str]]:
    """Names of the packages Linnet asks for: under None the core's, and those of each extra."""
    from importlib.metadata import metadata, requires

    packages: dict[str | None, list[str]] = {None: []}
    packages.update({extra: [] for extra in metadata(DISTRIBUTION).get_all("Provides-Extra") or []})
    for line in requires(DISTRIBUTION) or []:
        matched = _REQUIREMENT.match(line)
        if matched:
            packages.setdefault(matched["extra"], []).append(matched["name"])
    return packages


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _packages() -> Iterator[Finding]:
    for package in [DISTRIBUTION, *requirements()[None]]:
        version = _version(package)
        yield Finding(package, version or f"missing; pip install {DISTRIBUTION}", fault=version is None)
    if _version("linnet") is not None:
        yield Finding(
            "linnet",
            f"a package of somebody else, which puts its files where ours are: pip uninstall linnet, then "
            f"pip install --force-reinstall {DISTRIBUTION}",
            fault=True,
        )


def _extras() -> Iterator[Finding]:
    for extra, packages in requirements().items():
        if extra is None:
            continue
        versions = {package: _version(package) for package in packages}
        missing = [package for package, version in versions.items() if version is None]
        if missing:
            text = f'without {", ".join(missing)}; pip install "{DISTRIBUTION}[{extra}]" adds it'
        else:
            text = ", ".join(f"{package} {version}" for package, version in versions.items())
        yield Finding(f"extra {extra}", text)


def _blas() -> Iterator[Finding]:
    import importlib

    import threadpoolctl

    importlib.import_module("scipy.linalg.cython_lapack")
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas":
            core = library.get("architecture") or "unknown core"
            yield Finding(
                "BLAS",
                f"{library['internal_api']} {library['version']} for {core}, "
                f"{library['num_threads']} threads, {_origin(library['filepath'])}",
            )


def _origin(path: str) -> str:
    """The package a shared library came with, or its path."""
    from pathlib import Path

    parts = Path(path).parts
    return next((f"from {part.removesuffix('.libs')}" for part in parts if part.endswith(".libs")), path)


def _kernels() -> Iterator[Finding]:
    import numpy as np

    from linnet import kernels

    a = np.array([[4.0, 2.0], [2.0, 5.0]])

    def chol() -> bool:
        return bool(np.allclose(kernels.chol(a), [[2.0, 0.0], [1.0, 2.0]]))

    def qr() -> bool:
        r = kernels.geqrt(a * 1j)[2]
        return bool(np.allclose(r.conj().T @ r, a @ a))

    def product() -> bool:
        return bool(np.allclose(kernels.gemm(a.astype("f4"), a.astype("f4")), a @ a))

    checks: dict[str, Callable[[], bool]] = {"chol": chol, "geqrt": qr, "gemm": product}
    broken: list[str] = []
    for name, works in checks.items():
        try:
            if not works():
                broken.append(f"{name} gives a wrong result")
        except Exception as error:  # whatever it is, it belongs into the report
            broken.append(f"{name}: {type(error).__name__}: {error}")
    text = "; ".join(broken) or f"{len(kernels.names())} registered; BLAS and LAPACK answer"
    yield Finding("kernels", text, fault=bool(broken))


def _compiled() -> Iterator[Finding]:
    import warnings

    from linnet.engines import compiled as engines
    from linnet.errors import CompiledCoreWarning
    from linnet.io import compiled as io
    from linnet.kernels import compiled as kernels
    from linnet.planning import compiled as planning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompiledCoreWarning)  # it is said below
        parts = {
            "chase": kernels.library(),
            "substitute": kernels.substitutes(),
            "fields": io.library(),
            "simulate": planning.library("simulate"),
            "place": planning.library("place"),
            "runs": engines.library(),
        }
    missing = [name for name, library in parts.items() if library is None]
    if not missing:
        text = "here: small triangles, bands of matrices, numbers in text, plans and simulations are in C"
    else:
        text = (
            f"{', '.join(missing)} missing, or built from other sources or for another machine: some "
            "functions are many times slower. Install a C compiler, then Linnet anew, from source"
        )
    yield Finding("compiled core", text, slow=bool(missing))


def _scratch() -> Iterator[Finding]:
    import shutil
    import tempfile

    from linnet.tiles import human

    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"linnet")
        yield Finding("scratch", f"{folder}, {human(shutil.disk_usage(folder).free)} free")
    except OSError as error:
        yield Finding("scratch", f"cannot write to {folder}: {error.strerror}; set TMPDIR", fault=True)
