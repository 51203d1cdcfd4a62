"""The NumPy and array-API face: lazy arrays over tiles, one file per chapter, and their lowering."""

CHAPTERS = (
    "elementwise",
    "reductions",
)
"""Modules with public functions (`__all__`) and methods of arrays (`METHODS`)."""
