"""Arrays of other libraries, in and out; and libraries that work on our arrays.

`ln.asarray` takes arrays, columns and tables of the libraries below; this room tells it how. Nothing
of theirs is imported here: a converter runs when one of their objects is there already.

    in      dask, cubed             chunk by chunk, when tiles are asked for
            pandas, polars, arrow   columns without a copy where one dtype allows it, else tile by tile
            scipy.sparse, sparse    made dense tile by tile
            xarray                  the array inside
    out     to_dask, to_cubed       lazily, a block for each tile
            to_arrow, and Arrow's   one chunk for each tile
            own protocols
    below   xarray                  the chunk manager "linnet" (an entry point; see `chunk_manager`)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from linnet.arrays.elements.core import FOREIGN, ArrayBase

_CONVERTERS = {
    "cubed": "cubed_arrays",
    "dask": "dask_arrays",
    "pandas": "pandas_columns",
    "polars": "polars_columns",
    "pyarrow": "arrow_columns",
    "scipy": "sparse_arrays",
    "sparse": "sparse_arrays",
    "xarray": "labelled",
}
"""The package of an object's type, and the module here that knows it."""


def _converter(module: str) -> Any:
    def convert(obj: Any, chunks: Any) -> Any:
        return import_module(f"linnet.bridges.{module}").converted(obj, chunks)

    return convert


def _arrow_array(self: Any, type: Any = None) -> Any:
    """What `pyarrow.array(x)` asks for."""
    return import_module("linnet.bridges.arrow_columns").whole(self, type)


def _arrow_stream(self: Any, requested_schema: Any = None) -> Any:
    """What other libraries of Arrow's ask for: a stream of arrays, one for each tile."""
    table = import_module("linnet.bridges.arrow_columns").to_arrow(self)
    return table.__arrow_c_stream__(requested_schema)


FOREIGN.update({package: _converter(module) for package, module in _CONVERTERS.items()})
ArrayBase._public.__arrow_array__ = _arrow_array
ArrayBase._public.__arrow_c_stream__ = _arrow_stream

NAMES = {"to_arrow": "arrow_columns", "to_cubed": "cubed_arrays", "to_dask": "dask_arrays"}
"""Public functions, and their modules: what `linnet` itself shows of this room."""


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'linnet.bridges' has no attribute {name!r}")
    return getattr(import_module(f"linnet.bridges.{NAMES[name]}"), name)
