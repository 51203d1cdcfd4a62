"""Which of NumPy's functions work on arrays in tiles: `python -m linnet.arrays.coverage` writes the page.

What a function does is read from the code, not from a list: it is *chunked* if one of ours stands
for it, *gathering* if ours has to be told `gather=True` to bring a large array together in one
place (whoever gathers takes that keyword; a test sees to it), and otherwise *absent*.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from linnet.arrays import FURTHER
from linnet.arrays.array import Array
from linnet.arrays.elements.core import NUMPY
from linnet.arrays.functions import fourier, fourier_frequencies
from linnet.arrays.functions.numpy_unchanged import SAME
from linnet.arrays.functions.random_counts import Counts
from linnet.arrays.functions.random_numbers import Generator
from linnet.arrays.linalg import norms, norms_and_products, tensor_equations
from linnet.arrays.namespace import names

STATES = ("chunked", "gathering", "absent")

IN_ONE_PLACE = (
    "__array__",
    "__dlpack__",
    "fromstring",
    "genfromtxt",
    "loadtxt",
    "tobytes",
    "tofile",
    "tolist",
)
"""Functions and methods whose result is by its nature in one place; under a budget it lies in a file."""

REMARKS = {
    "only with `axis=`": "unique",
    "its result is in one place": "__array__ __dlpack__ __reduce__ tobytes tofile tolist",
    "NumPy reads it, in one place; `ln.read_csv` reads in tiles": "fromstring genfromtxt loadtxt",
    "the order is drawn in one place, the elements move tile by tile": "choice permutation shuffle",
    "takes no arrays: NumPy's own serves": (
        "get_include getbufsize geterr geterrcall info setbufsize seterr seterrcall show_config "
        "show_runtime test"
    ),
    "makes records, which arrays do not hold": "fromregex",
    "NumPy's own": " ".join(SAME),
    "a file: `np.save(path, x)`": "dump dumps",
    "memory is not shared: slices are not views": ("getfield setfield setflags"),
    "there is no class for matrices": "asmatrix bmat",
    "results are numbers, not objects": "frompyfunc",
    "NumPy's old name of `vstack`": "row_stack",
    "walks element by element": "nested_iters",
    "arrays keep their elements": "__delitem__",
    "gives text: arrays hold no text": "datetime_as_string",
    "the order of bytes is not the user's concern": "byteswap",
}
"""What the page says besides, with the names it is said of; `name.place` where one place is meant."""


@dataclass(frozen=True, slots=True)
class Row:
    """A function of NumPy's and what becomes of it here."""

    name: str
    state: str
    """One of `STATES`."""
    remark: str


def covered() -> dict[str, list[Row]]:
    """The functions of each of NumPy's places, in order.

    >>> rows = {row.name: row.state for row in covered()["numpy.linalg"]}
    >>> rows["norm"], rows["eig"], rows["test"]
    ('chunked', 'gathering', 'absent')
    """
    for chapter in FURTHER:  # they say which functions of NumPy's they stand for
        import_module(f"linnet.arrays.{chapter}")
    return {
        "numpy": list(_rows(np, names())),
        "numpy.linalg": list(
            _rows(np.linalg, {**vars(norms), **vars(norms_and_products), **vars(tensor_equations)})
        ),
        "numpy.fft": list(_rows(np.fft, {**vars(fourier), **vars(fourier_frequencies)})),
        "numpy.random.Generator": list(_rows(np.random.Generator, {**vars(Counts), **vars(Generator)})),
        "numpy.ndarray": list(_rows(np.ndarray, vars(Array))),
    }


def _rows(place: Any, ours: Mapping[str, Any]) -> Iterator[Row]:
    for name in sorted(dir(place)):
        theirs = getattr(place, name)
        if not _counts(name, theirs, place):
            continue
        state = _state(name, theirs, NUMPY.get(theirs) or ours.get(name))
        yield Row(name, state, _remark(name, place.__name__.rpartition(".")[2]))


def _counts(name: str, theirs: Any, place: Any) -> bool:
    """Whether it is a function or method of NumPy's: classes are not, nor what every object has."""
    if not callable(theirs) or isinstance(theirs, type):
        return False
    if not name.startswith("_"):
        return True
    own = name not in dir(object) or name in _OVERRIDDEN
    return place is np.ndarray and own and name not in _INTERNAL


_OVERRIDDEN = ("__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__", "__reduce__")
_INTERNAL = ("__array_finalize__", "__array_wrap__", "__class_getitem__", "__setstate__")
"""Methods that NumPy calls on its own subclasses."""


def _state(name: str, theirs: Any, ours: Any) -> str:
    if isinstance(theirs, np.ufunc) and theirs.signature is None:
        return "chunked"
    if ours is None or (inspect.getdoc(ours) or "").startswith("Refused"):
        return "absent"
    if name in IN_ONE_PLACE or "gather" in inspect.signature(ours).parameters:
        return "gathering"
    return "chunked"


def _remark(name: str, place: str) -> str:
    for remark, said_of in REMARKS.items():
        if name in said_of.split() or f"{name}.{place}" in said_of.split():
            return remark
    return ""


# ---- the page


def page() -> str:
    """The whole page, as Markdown."""
    found = covered()
    lines = [
        "# NumPy's functions, one by one",
        "",
        f"Which of NumPy {np.__version__}'s functions work on arrays in tiles. This page is written by",
        "`python -m linnet.arrays.coverage`, and a test compares it with the code.",
        "",
        "- *chunked*: works tile by tile, under NumPy's name (`np.f(x)`), under `ln.f`, or both;",
        "- *gathering*: brings the array together in one place. Above the memory budget it is refused,",
        "  unless `ln.f(x, gather=True)` says to do it all the same;",
        "- *absent*: there is none of ours. Where NumPy asks the arrays it is given, `np.f(x)` raises a",
        "  `TypeError`; `np.f(np.asarray(x))` is what one writes instead, where the array fits into memory.",
        "",
        "Functions and methods are counted, classes are not. The methods of ufuncs (`reduce`, `accumulate`,",
        "`reduceat`, `outer`, `at`) are chunked.",
        "",
        "| where | functions | chunked | gathering | absent |",
        "|---|---|---|---|---|",
    ]
    for place, rows in found.items():
        counts = [sum(row.state == state for row in rows) for state in STATES]
        lines.append(f"| `{place}` | {len(rows)} | {' | '.join(map(str, counts))} |")
    for place, rows in found.items():
        lines += ["", f"## {place}", "", "| function | state | remark |", "|---|---|---|"]
        lines += [f"| `{row.name}` | {row.state} | {row.remark} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
