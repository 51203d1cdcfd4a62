"""The NumPy and array-API face: lazy arrays over tiles, one file per chapter, and their lowering."""

CHAPTERS = (
    "elements.elementwise",
    "functions.contractions",
    "elements.creation",
    "functions.dtypes",
    "functions.spaced_numbers",
    "functions.positions_in_grids",
    "elements.shapes",
    "elements.join_and_split",
    "elements.roll_and_flip",
    "functions.pack_bits",
    "functions.pad",
    "functions.map_blocks",
    "functions.map_overlap",
    "functions.named_axes",
    "functions.piecewise",
    "functions.gufuncs",
    "elements.indexing",
    "functions.blocks_and_points",
    "elements.assignment",
    "elements.take_and_put",
    "functions.flat",
    "elements.search",
    "functions.calculus",
    "elements.cumulative",
    "functions.histograms",
    "functions.nan_reductions",
    "functions.numeric",
    "functions.polynomials",
    "functions.arg_extremes",
    "functions.quantiles",
    "elements.reductions",
    "functions.sets",
    "functions.sort",
    "functions.statistics",
    "functions.window_functions",
    "functions.business_days",
    "functions.array_text",
    "functions.cross_product",
    "functions.sliding_windows",
    "functions.coarsen",
    "files.read",
    "files.write",
    "files.numpy_files",
    "files.store_into",
    "sending.submit",
    "sending.plans",
    "sending.estimate",
    "sending.program_calls",
    "functions.numpy_unchanged",
)
"""Modules with public functions (`__all__`) and methods of arrays (`METHODS`)."""

FURTHER = (
    "linalg.norms_and_products",
    "linalg.factorisations",
    "linalg.linear_systems",
    "linalg.eigen_and_singular",
    "linalg.least_squares",
    "linalg.tensor_equations",
    "functions.fourier",
)
"""Modules of the public namespaces `linalg` and `fft`, which also stand for functions of NumPy's."""

# Last, because it imports the chapters: whoever imports any module of this room gets the class with it.
from linnet.arrays.array import Array  # noqa: E402

__all__ = ["CHAPTERS", "FURTHER", "Array"]
