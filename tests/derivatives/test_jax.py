"""Every rule against JAX on the CPU: the calls of `derivative_cases`, run on `jax.numpy`.

`make test-long` installs JAX (`tests/peers.txt`); nothing else needs it.
"""

from __future__ import annotations

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
FLAT = "knows one axis alone", ValueError, "1-dimensional"
Lack = tuple[str, type[Exception], str]
LACKS: dict[tuple[str, int], Lack] = {
    ("add", 3): ("has no where=", NotImplementedError, "where argument"),
    ("exp", 1): ("has no dtype=", TypeError, "abstract array"),
    ("linalg.matmul", 0): ("has no op_a=", TypeError, "op_a"),
    **{("convolve", place): FLAT for place in (4, 6, 9)},
    **{
        ("convolve", place): ("has no strides=, no padding=", TypeError, "strides|padding")
        for place in (5, 7, 8)
    },
    ("argmax", 0): ("the call computes its result", AttributeError, "compute"),
    ("rechunk", 0): ("has no tiles", AttributeError, "rechunk"),
    ("topk", 0): ABSENT,
    ("copyto", 0): ABSENT,
    **{("linalg.solve_triangular", place): ABSENT for place in range(4)},
    ("linalg.cho_solve", 0): ABSENT,
    ("linalg.cho_factor", 0): ABSENT,
    ("linalg.syrk", 0): ABSENT,
    ("quantile", 0): LISTS,
    ("repeat", 0): LISTS,
    ("delete", 0): LISTS,
    ("insert", 0): LISTS,
    ("take", 1): LISTS,
    ("take", 2): LISTS,
    ("compress", 0): LISTS,
    ("x[...] = v", 0): SAME,
    ("x[...] = v", 1): SAME,
    ("x += v", 0): SAME,
    ("clip", 2): PLAIN,
    ("sort", 2): PLAIN,
    ("sort", 3): PLAIN,
}
"""Calls without a counterpart, by their name and their place among the cases of this name: why, and what JAX
raises. All others must be equal."""


def which(number: int) -> tuple[str, int]:
    """The name of a case, and its place among those of the name."""
    name = derivative_cases.CASES[number][0]
    return name, sum(each[0] == name for each in derivative_cases.CASES[:number])


def test_calls_without_a_counterpart_are_cases():
    assert set(LACKS) <= set(map(which, range(len(derivative_cases.CASES))))


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(derivative_cases.CASES)))
def test_a_rule_gives_what_jax_gives(number: int):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    _, function, shapes = derivative_cases.CASES[number]
    values = drawn(shapes, 0)
    changes = drawn(tuple(np.shape(x) for x in values), 1)
    arrays = tuple(map(jax.numpy.asarray, values))
    if which(number) in LACKS:
        _, kind, text = LACKS[which(number)]
        with pytest.raises(kind, match=text):
            jax.jvp(in_jax(function, jax.numpy), arrays, tuple(changes))
        return
    there = in_jax(function, jax.numpy)
    value, tangent = jax.jvp(there, arrays, tuple(changes))
    _, pull = jax.vjp(there, *map(jax.numpy.asarray, values))
    weight = np.random.default_rng(2).uniform(-1, 1, size=value.shape)
    pulled = pull(jax.numpy.asarray(weight, value.dtype))
    ours, slope = ln.jvp(function, tuple(cut(values, True)), tuple(changes))
    _, back = ln.vjp(function, *cut(values, True))
    np.testing.assert_allclose(ours, value, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(slope, tangent, rtol=1e-8, atol=1e-9)
    for mine, theirs in zip(back(weight), pulled, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
