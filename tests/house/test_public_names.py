"""What users can rely on is a list, and changing it is a decision.

Names are fixed: adding one is a line here and a fragment in `changes/`, removing one breaks somebody.
"""

from __future__ import annotations

import linnet as ln

PUBLIC = {
    # the language
    "tile_program", "TileProgram", "BoundProgram", "ProgramBuilder", "Task", "TileKey",
    # roles of parameters
    "In", "Out", "Temp", "Table",
    # linear algebra, and what runs it
    "linalg", "init",
    # kernels
    "kernel", "Kernel",
    # errors
    "LinnetError", "ProgramError", "SingleAssignmentError", "UnwrittenTileError", "BindError", "WireError",
    "UnknownKernelError", "KernelDeclarationError", "KernelError", "LinAlgError", "InputError",
    "MissingExtraError", "BudgetError",
    # about the package
    "__version__",
}  # fmt: skip


def test_the_public_names_are_those_listed():
    assert set(ln.__all__) == PUBLIC
    assert len(ln.__all__) == len(PUBLIC)


def test_every_public_name_is_there_and_says_what_it_is():
    for name in PUBLIC - {"__version__"}:
        assert getattr(ln, name).__doc__, f"ln.{name} has no docstring"
