"""Linnet runs NumPy programs on computers that come and go.

    import linnet as ln

What works today: tile programs (`ln.tile_program`, `ln.kernel`), their analysis, and a
threads engine that runs them. See the documentation for what is to come.
"""

from linnet.errors import (
    BindError,
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

__version__ = "0.1.0.dev0"

__all__ = [
    "BindError",
    "BoundProgram",
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
    "kernel",
    "tile_program",
]
