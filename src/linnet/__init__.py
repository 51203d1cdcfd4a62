"""Linnet runs NumPy programs on computers that come and go.

    import linnet as ln

What works today: tile programs (`ln.tile_program`, `ln.kernel`), their analysis, a threads
engine that runs them, and dense linear algebra made of them (`ln.linalg`). See the
documentation for what is to come.
"""

from typing import TYPE_CHECKING, Any

from linnet.errors import (
    BindError,
    BudgetError,
    InputError,
    KernelDeclarationError,
    KernelError,
    LinAlgError,
    LinnetError,
    MissingExtraError,
    ProgramError,
    SingleAssignmentError,
    UnknownKernelError,
    UnwrittenTileError,
    WireError,
)
from linnet.kernels import Kernel, kernel
from linnet.programs import (
    BoundProgram,
    In,
    Out,
    ProgramBuilder,
    Table,
    Task,
    Temp,
    TileProgram,
    tile_program,
)
from linnet.tiles import TileKey

if TYPE_CHECKING:
    from linnet import linalg
    from linnet.session import init

__version__ = "0.1.0.dev0"

__all__ = [
    "BindError",
    "BoundProgram",
    "BudgetError",
    "In",
    "InputError",
    "Kernel",
    "KernelDeclarationError",
    "KernelError",
    "LinAlgError",
    "LinnetError",
    "MissingExtraError",
    "Out",
    "ProgramBuilder",
    "ProgramError",
    "SingleAssignmentError",
    "Table",
    "Task",
    "Temp",
    "TileKey",
    "TileProgram",
    "UnknownKernelError",
    "UnwrittenTileError",
    "WireError",
    "__version__",
    "init",
    "kernel",
    "linalg",
    "tile_program",
]


def __getattr__(name: str) -> Any:
    """Engines and namespaces are imported when first used: they take longer than all the rest."""
    from importlib import import_module

    if name in ("linalg", "fft", "random"):
        return import_module(f"linnet.{name}")
    if name == "init":
        return import_module("linnet.session").init
    if name.startswith("__") and name not in ("__array_api_version__", "__array_namespace_info__"):
        raise AttributeError(f"module 'linnet' has no attribute {name!r}")
    found = import_module("linnet.arrays.namespace").names()
    if name not in found:
        raise AttributeError(f"module 'linnet' has no attribute {name!r}")
    globals()[name] = found[name]
    return found[name]


def __dir__() -> list[str]:
    from linnet.arrays.namespace import names

    return sorted({*__all__, *names()})
