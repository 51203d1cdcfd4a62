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
    "overlapping",
    "named_axes",
    "branching",
    "gufuncs",
    "indexing",
    "views",
    "assignment",
    "picking",
    "flat",
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
    "business_days",
    "printing",
    "vectors",
    "windows",
    "coarsening",
    "reading",
    "writing",
    "numpy_files",
    "storing",
    "submitting",
    "planned",
    "calling",
    "numpys_own",
)
"""Modules with public functions (`__all__`) and methods of arrays (`METHODS`)."""

FURTHER = (
    "linear_algebra",
    "factors",
    "systems",
    "spectra",
    "least_squares",
    "tensor_equations",
    "transforms",
)
"""Modules of the public namespaces `linalg` and `fft`, which also stand for functions of NumPy's."""

# Last, because it imports the chapters: whoever imports any module of this room gets the class with it.
from linnet.arrays.array import Array  # noqa: E402

__all__ = ["CHAPTERS", "FURTHER", "Array"]
