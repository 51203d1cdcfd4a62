"""Functions and methods that are known to have no effect on plain values."""

from __future__ import annotations

import builtins
import cmath
import functools
import inspect
import math
import operator
import statistics
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

BUILTINS: dict[int, Any] = {
    id(getattr(builtins, name)): getattr(builtins, name)
    for name in [
        "abs",
        "all",
        "any",
        "ascii",
        "bin",
        "bool",
        "bytes",
        "callable",
        "chr",
        "complex",
        "dict",
        "divmod",
        "float",
        "format",
        "frozenset",
        "hash",
        "hex",
        "int",
        "isinstance",
        "issubclass",
        "len",
        "list",
        "max",
        "min",
        "oct",
        "ord",
        "pow",
        "range",
        "repr",
        "round",
        "set",
        "slice",
        "sorted",
        "str",
        "sum",
        "tuple",
        "type",
    ]
}
"""Cheap, and pure as long as nothing they are given is an iterator or called by them."""

CONSUMERS = frozenset(
    ["all", "any", "bytes", "dict", "frozenset", "list", "max", "min", "set", "sorted", "str", "sum", "tuple"]
)
"""Builtins that go through what they are given at once."""

LOOPING: dict[int, Any] = {id(each): each for each in (enumerate, zip, reversed, range)}
"""What a loop goes over without any effect, if what they are given is plain."""

METHODS: frozenset[str] = frozenset(
    [
        "capitalize",
        "casefold",
        "center",
        "count",
        "encode",
        "decode",
        "endswith",
        "expandtabs",
        "find",
        "format",
        "format_map",
        "index",
        "isalnum",
        "isalpha",
        "isascii",
        "isdecimal",
        "isdigit",
        "isidentifier",
        "islower",
        "isnumeric",
        "isprintable",
        "isspace",
        "istitle",
        "isupper",
        "join",
        "ljust",
        "lower",
        "lstrip",
        "partition",
        "replace",
        "rfind",
        "rindex",
        "rjust",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "translate",
        "upper",
        "zfill",
        "hex",
        "fromhex",
        "removeprefix",
        "removesuffix",
        "bit_length",
        "bit_count",
        "conjugate",
        "is_integer",
        "as_integer_ratio",
        "to_bytes",
        "copy",
        "get",
        "items",
        "keys",
        "values",
        "difference",
        "intersection",
        "symmetric_difference",
        "union",
        "issubset",
        "issuperset",
        "isdisjoint",
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "clip",
        "compress",
        "conj",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "flatten",
        "item",
        "max",
        "mean",
        "min",
        "nonzero",
        "prod",
        "ravel",
        "repeat",
        "reshape",
        "round",
        "searchsorted",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "tobytes",
        "tolist",
        "trace",
        "transpose",
        "var",
        "view",
        "choose",
        "isoformat",
        "strftime",
        "timestamp",
        "total_seconds",
        "date",
        "time",
        "weekday",
        "isoweekday",
        "quantize",
        "limit_denominator",
        "with_suffix",
        "with_name",
        "joinpath",
        "relative_to",
    ]
)
"""Methods that change no plain value, whatever its type. `replace` of files is not among plain types' own:
paths are excluded where they are called."""

CHANGING: dict[type, frozenset[str]] = {
    list: frozenset({"append", "insert", "extend", "pop", "clear", "reverse"}),
    dict: frozenset({"pop", "clear", "setdefault", "update"}),
    set: frozenset({"add", "discard", "clear"}),
}
"""Methods that change a container, and for which its elements need not be known."""

_IMPURE_NUMPY = frozenset(
    [
        "copyto",
        "put",
        "place",
        "putmask",
        "put_along_axis",
        "fill_diagonal",
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
        "load",
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "memmap",
        "open_memmap",
        "fromregex",
        "DataSource",
        "seterr",
        "seterrcall",
        "setbufsize",
        "set_printoptions",
        "errstate",
        "printoptions",
        "apply_along_axis",
        "apply_over_axes",
        "vectorize",
        "frompyfunc",
        "fromfunction",
        "fromiter",
        "piecewise",
        "nditer",
        "nested_iters",
        "ndenumerate",
        "ndindex",
        "info",
        "show_config",
        "show_runtime",
        "test",
        "getbufsize",
        "geterr",
        "geterrcall",
        "get_printoptions",
        "shares_memory",
        "broadcast",
        "flatiter",
        "ndarray",
    ]
)
"""NumPy's functions that write, read files, keep state, call what they are given, or give iterators."""


def _numpys() -> dict[int, Any]:
    found: dict[int, Any] = {}
    for space in (np, np.linalg, np.fft):
        for name in dir(space):
            each = getattr(space, name)
            public = not name.startswith("_") and name not in _IMPURE_NUMPY and callable(each)
            if (
                public
                and (not isinstance(each, type) or issubclass(each, np.generic))
                and each is not np.object_
            ):
                found[id(each)] = each
    return found


NUMPY = _numpys()
"""NumPy's functions, by identity."""


@functools.cache
def _place_of_out(f: Any) -> int:
    """How many positional arguments a function takes before one that it writes into."""
    if isinstance(f, np.ufunc):
        return f.nin
    try:
        parameters = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return 2 if "out" in (f.__doc__ or "")[:400] else 100
    return parameters.index("out") if "out" in parameters else 100


def may_write(f: Any, positional: int, keywords: Iterable[str | None]) -> bool:
    """Whether a call of NumPy's function may write into an array that it is given.

    >>> may_write(np.add, 2, []), may_write(np.add, 3, []), may_write(np.clip, 3, [])
    (False, True, False)
    """
    if id(f) not in NUMPY:
        return False
    return any(name in ("out", None) for name in keywords) or positional > _place_of_out(f)


CREATION: frozenset[int] = frozenset(
    id(getattr(np, name))
    for name in [
        "zeros",
        "ones",
        "empty",
        "arange",
        "array",
        "full",
        "eye",
        "identity",
        "linspace",
        "zeros_like",
        "ones_like",
    ]
)
"""Those that make arrays, at once."""


def _of_modules() -> dict[int, Any]:
    found: dict[int, Any] = {}
    for module in (math, cmath, operator, statistics):
        for name in dir(module):
            each = getattr(module, name)
            # operator's functions that change their operands begin with an i, but for these
            changes = module is operator and (
                (
                    name.startswith("i")
                    and name not in ("index", "inv", "invert", "is_", "is_not", "itemgetter")
                )
                or name in ("setitem", "delitem", "call", "methodcaller", "attrgetter", "itemgetter")
            )
            if not name.startswith("_") and callable(each) and not isinstance(each, type) and not changes:
                found[id(each)] = each
    return found


MATH = _of_modules()
"""Functions of `math`, `cmath`, `operator` and `statistics`, by identity."""

SLEEP = time.sleep
