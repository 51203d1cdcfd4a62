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
    last = name.rsplit(".", 1)[-1]
    examples = [line for line in doc.splitlines() if line.startswith((">>>", "..."))]
    return [
        what
        for what, is_there in {
            "Parameters": "Parameters\n---" in doc or not signature.parameters,
            "Returns": "Returns\n---" in doc or signature.return_annotation in ("None", None),
            "an example of itself": any(re.search(rf"\b{re.escape(last)}\b", line) for line in examples),
        }.items()
        if not is_there
    ]


LACKING = """
dashboard init kernel map parallel sparse tile_program __array_namespace_info__ amax amin
apply_along_axis apply_gufunc apply_over_axes arange around array2string array_repr array_str as_gufunc
attach bincount blockwise busday_count busday_offset coarsen compute cross einsum_path eye from_hdf5
from_npy from_npz from_zarr fromfile fromfunction frompyfunc fromstring genfromtxt geomspace histogram
histogram2d histogram_bin_edges histogramdd is_busday isfortran linspace load loadtxt logspace
map_blocks map_overlap meshgrid overlap packbits pad persist piecewise plan poly polyadd polyder polydiv
polyfit polyint polymul polysub polyval read_csv read_parquet roots save savetxt savez savez_compressed
sliding_window_view store submit to_arrow to_csv to_cubed to_dask to_hdf5 to_npy to_parquet to_zarr
trim_overlap unify_chunks unique unpackbits random.default_rng stats.chisquare stats.f_oneway
stats.kurtosis stats.kurtosistest stats.moment stats.normaltest stats.power_divergence stats.skew
stats.skewtest stats.ttest_1samp stats.ttest_ind stats.ttest_rel
"""
"""Functions whose docstrings lack something."""


@pytest.mark.parametrize(("name", "function"), [pytest.param(*each, id=each[0]) for each in functions()])
def test_a_public_function_says_what_it_takes_and_gives_and_shows_it(name, function):
    found = lacking(name, function)
    if name in LACKING.split():
        assert found, f"{name} lacks nothing any more: take it out of the list"
    else:
        assert not found, f"the docstring of ln.{name} lacks {', '.join(found)}"
