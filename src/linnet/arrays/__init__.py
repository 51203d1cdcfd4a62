"""The NumPy and array-API face: lazy arrays over tiles, one file per chapter, and their lowering."""

CHAPTERS = (
    "elementwise",
    "contraction",
    "creation",
    "dtypes",
    "spacing",
    "grids",
    "shapes",
    "joining",
    "manipulation",
    "packing",
    "padding",
    "blockwise",
    "branching",
    "gufuncs",
    "indexing",
    "assignment",
    "picking",
    "searching",
    "calculus",
    "cumulative",
    "histograms",
    "nans",
    "numeric",
    "polynomials",
    "positions",
    "quantiles",
    "reductions",
    "sets",
    "sorting",
    "statistics",
    "tapers",
    "vectors",
    "windows",
    "reading",
    "writing",
    "submitting",
    "planned",
)
"""Modules with public functions (`__all__`) and methods of arrays (`METHODS`)."""

# Last, because it imports the chapters: whoever imports any module of this room gets the class with it.
from linnet.arrays.array import Array  # noqa: E402

__all__ = ["CHAPTERS", "Array"]
