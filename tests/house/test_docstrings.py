"""Docstrings of public functions: what they take, what they give, and an example of the function itself.

That examples run is seen where all docstrings are run. Names in `LACKING` are still without; the list may only
become shorter.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import linnet as ln

SPACES = ("", "linalg", "fft", "random", "stats")


def functions() -> Iterator[tuple[str, Any]]:
    """Public functions of ours, by the name that users write."""
    for space in SPACES:
        module = getattr(ln, space) if space else ln
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found) and inspect.unwrap(found).__module__.startswith("linnet."):
                yield f"{space}.{name}".lstrip("."), found


def lacking(name: str, function: Any) -> list[str]:
    """What a docstring has not."""
    doc = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    shown = {name.rsplit(".", 1)[-1], function.__name__}  # or by its other name
    examples = [line for line in doc.splitlines() if line.startswith((">>>", "..."))]
    return [
        what
        for what, is_there in {
            "Parameters": "Parameters\n---" in doc or not signature.parameters,
            "Returns": "Returns\n---" in doc or signature.return_annotation in ("None", None),
            "an example of itself": any(
                re.search(rf"\b{re.escape(each)}\b", line) for line in examples for each in shown
            ),
        }.items()
        if not is_there
    ]


LACKING = """
dashboard init kernel parallel sparse tile_program __array_namespace_info__ apply_gufunc array2string
array_repr array_str as_gufunc attach blockwise coarsen cross einsum_path from_hdf5 from_npy from_npz
from_zarr fromfile frompyfunc fromstring genfromtxt isfortran load loadtxt map_blocks map_overlap overlap
packbits pad piecewise plan read_csv read_parquet save savetxt savez savez_compressed sliding_window_view
store submit to_arrow to_csv to_cubed to_dask to_hdf5 to_npy to_parquet to_zarr trim_overlap unify_chunks
unpackbits random.default_rng
"""
"""Functions whose docstrings lack something."""


@pytest.mark.parametrize(("name", "function"), [pytest.param(*each, id=each[0]) for each in functions()])
def test_a_public_function_says_what_it_takes_and_gives_and_shows_it(name, function):
    found = lacking(name, function)
    if name in LACKING.split():
        assert found, f"{name} lacks nothing any more: take it out of the list"
    else:
        assert not found, f"the docstring of ln.{name} lacks {', '.join(found)}"
