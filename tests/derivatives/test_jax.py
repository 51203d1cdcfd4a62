"""Every rule against JAX on the CPU: the calls of `derivative_cases`, run on `jax.numpy`.

`make test-long` installs JAX (`tests/peers.txt`); nothing else needs it.
"""

from __future__ import annotations

import re
from types import CellType, FunctionType
from typing import Any

import derivative_cases
import numpy as np
import pytest
from test_rules import cut, drawn

import linnet as ln


class Namespace:
    """Functions of Linnet and NumPy by their names, but JAX's."""

    def __init__(self, jax_names: Any, plain: Any) -> None:
        self._jax, self._plain = jax_names, plain

    def __getattr__(self, name: str) -> Any:
        if self._plain is ln:
            if name in ("linalg", "fft"):
                return Namespace(getattr(self._jax, name), None)
            return getattr(self._jax, name)
        own = getattr(self._plain, name, None)
        return getattr(self._jax, name) if own is None or isinstance(own, np.ufunc) else own


def in_jax(function: Any, jnp: Any) -> Any:
    """A function of the cases, with JAX's functions in the place of Linnet's."""

    def replaced(value: Any) -> Any:
        for place, there in ((ln, jnp), (ln.linalg, jnp.linalg), (ln.fft, jnp.fft)):
            if value is place:
                return there
            name = getattr(value, "__name__", "")
            if callable(value) and getattr(place, name, None) is value:
                return getattr(there, name)
        own = isinstance(value, FunctionType) and value.__globals__ is vars(derivative_cases)
        return in_jax(value, jnp) if own and value is not function else value

    swapped = replaced(function)
    if swapped is not function:
        return swapped
    names = dict(function.__globals__)
    names |= {name: replaced(names[name]) for name in function.__code__.co_names if name in names}
    names |= {"ln": Namespace(jnp, ln), "np": Namespace(jnp, np)}
    cells = tuple(CellType(replaced(each.cell_contents)) for each in function.__closure__ or ())
    made = FunctionType(function.__code__, names, function.__name__, None, cells)
    made.__defaults__ = tuple(map(replaced, function.__defaults__ or ()))
    return made


LISTS = "takes no lists as operands", TypeError, "requires ndarray or scalar arguments"
ABSENT = "is no function of JAX's", AttributeError, "has no attribute"
SAME = "JAX's arrays cannot be assigned to", TypeError, "JAX arrays are immutable"
PLAIN = "the call asks for the numbers of its argument", TypeError, "__array__"
LACKS: dict[str, tuple[str, type[Exception], str]] = {
    "add": ("has no where=", NotImplementedError, "where argument"),
    "exp": ("has no dtype=", TypeError, "abstract array"),
    "linalg.matmul": ("has no op_a=", TypeError, "op_a"),
    "convolve": (
        "knows one axis alone, no strides= and padding=",
        Exception,
        "1-dimensional|strides|padding",
    ),
    "argmax": ("the call computes its result", AttributeError, "compute"),
    "rechunk": ("has no tiles", AttributeError, "rechunk"),
    "topk": ABSENT,
    "copyto": ABSENT,
    "linalg.solve_triangular": ABSENT,
    "linalg.cho_solve": ABSENT,
    "linalg.cho_factor": ABSENT,
    "linalg.syrk": ABSENT,
    "quantile": LISTS,
    "repeat": LISTS,
    "delete": LISTS,
    "insert": LISTS,
    "take": LISTS,
    "compress": LISTS,
    "x[...] = v": SAME,
    "x += v": SAME,
    "clip": PLAIN,
    "sort": PLAIN,
}
"""Functions of which some calls have no counterpart: why, and what JAX raises then."""


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(derivative_cases.CASES)))
def test_a_rule_gives_what_jax_gives(number: int):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    name, function, shapes = derivative_cases.CASES[number]
    values = drawn(shapes, 0)
    changes = drawn(tuple(np.shape(x) for x in values), 1)
    why, kind, text = LACKS.get(name, ("", (), ""))
    try:
        there = in_jax(function, jax.numpy)
        value, tangent = jax.jvp(there, tuple(map(jax.numpy.asarray, values)), tuple(changes))
    except kind as error:
        assert re.search(text, str(error)), error
        pytest.skip(f"{name}: {why}")
    _, pull = jax.vjp(there, *map(jax.numpy.asarray, values))
    weight = np.random.default_rng(2).uniform(-1, 1, size=value.shape)
    pulled = pull(jax.numpy.asarray(weight, value.dtype))
    ours, slope = ln.jvp(function, tuple(cut(values, True)), tuple(changes))
    _, back = ln.vjp(function, *cut(values, True))
    np.testing.assert_allclose(ours, value, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(slope, tangent, rtol=1e-8, atol=1e-9)
    for mine, theirs in zip(back(weight), pulled, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
