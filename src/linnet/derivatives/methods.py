"""What traced arrays can do: operators, indexing, and the methods that are no functions of users.

Methods that are such functions (`x.sum()`) need nothing here: these find their rules by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from linnet.arrays.elements import elementwise, operators
from linnet.arrays.elements.assignment import setitem
from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.functions.contractions import matmul
from linnet.derivatives.names import ln
from linnet.derivatives.tracing import TracedArray, become, by_rule, plain, variable_of
from linnet.errors import DerivativeError


def _primal(self: Any) -> Any:
    return variable_of(self).primal


def _of_primal(name: str) -> property:
    """An attribute that has no derivative."""
    return property(lambda self: getattr(plain(self), name))


def _binary(ufunc: np.ufunc, reverse: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        other = operators.taken(other)
        if other is NotImplemented:
            return other
        return elementwise.call(ufunc, (other, self) if reverse else (self, other), {})

    return method


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: elementwise.call(ufunc, (self,), {})


def _inplace(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return updated(ufunc, self, other)

    return method


def updated(ufunc: np.ufunc, array: Any, other: Any) -> Any:
    """`array op= other`, where one of them is traced: the array becomes the result."""
    result = elementwise.call(ufunc, (array, other), {})
    if result.shape != array.shape:
        raise ValueError(
            f"{ufunc.__name__}: a result of shape {result.shape} cannot be written over an array of shape "
            f"{array.shape}"
        )
    if result.dtype != array.dtype:
        if not np.can_cast(result.dtype, array.dtype, "same_kind"):
            raise TypeError(
                f"{ufunc.__name__}: the result is {result.dtype} and cannot be written over {array.dtype}"
            )
        result = result.astype(array.dtype)
    become(array, result)
    return array


def picked(x: Any, key: Any) -> Any:
    """`x[key]`."""
    return x[key]


def assigned(array: Any, key: Any, value: Any) -> None:
    """`array[key] = value`, where one of them is traced."""
    become(array, replaced(array, key, value))


def replaced(array: Any, key: Any, value: Any) -> Any:
    """The array with other elements at some places, as a new one.

    >>> from linnet.arrays.elements.creation import asarray
    >>> replaced(asarray([1.0, 2.0]), 0, 5.0).compute()
    array([5., 2.])
    """
    if type(array) is TracedArray or type(value) is TracedArray:
        return by_rule(replaced, array, key, value)
    made = ArrayBase._public(array.__node__)
    setitem(made, key, value)
    return made


def _matmul(self: Any, other: Any) -> Any:
    other = operators.taken(other)
    return other if other is NotImplemented else matmul(self, other)


def _rmatmul(self: Any, other: Any) -> Any:
    other = operators.taken(other)
    return other if other is NotImplemented else matmul(other, self)


def _imatmul(self: Any, other: Any) -> Any:
    result = matmul(self, other)
    become(self, result if result.dtype == self.dtype else result.astype(self.dtype))
    return self


def _power(self: Any, exponent: Any) -> Any:
    exponent = operators.taken(exponent)
    if exponent is NotImplemented:
        return exponent
    short = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal, 1: np.positive}
    if type(exponent) in (int, float) and exponent in short and self.dtype.kind in "fc":
        return elementwise.call(short[exponent], (self,), {})
    return elementwise.call(np.power, (self, exponent), {})


def _values(what: str) -> Callable[..., NoReturn]:
    def refused(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise DerivativeError(
            f"{what} asks for the values of an array of shape {self.shape} that is being differentiated, "
            f"and the "
            "derivative would be lost; use functions of ln or np on the array itself (comparisons, as in "
            "`if x.sum() > 0`, may be asked)"
        )

    return refused


def _truth(self: Any) -> bool:
    return bool(plain(self))


def _shaped(self: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    return ln.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transposed(self: Any, *axes: Any) -> Any:
    return ln.transpose(self, axes[0] if len(axes) == 1 else axes or None)


def _filled(self: Any, value: Any) -> None:
    assigned(self, ..., value)


def _sorted(self: Any, axis: int = -1, **options: Any) -> None:
    become(self, ln.sort(self, axis=axis, **options))


def _array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
    if method == "__call__" and ufunc.signature is None:
        return elementwise.call(ufunc, inputs, keywords)
    return super(TracedArray, self).__array_ufunc__(ufunc, method, *inputs, **keywords)


def _repr(self: Any) -> str:
    return f"Array(shape={self.shape}, dtype={self.dtype}, being differentiated)"


def _iterate(self: Any) -> Any:
    return iter([self[place] for place in range(len(self))])


def _set_shape(self: Any, shape: Any) -> None:
    become(self, ln.reshape(self, shape))


_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "divmod": np.divmod, "pow": np.power,
}  # fmt: skip
_COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}

_METHODS: dict[str, Any] = {
    "shape": property(lambda self: plain(self).shape, _set_shape),
    **{name: _of_primal(name) for name in ("dtype", "ndim", "size", "itemsize", "nbytes", "chunks", "grid")},
    "T": property(lambda self: ln.transpose(self)),
    "mT": property(lambda self: ln.matrix_transpose(self)),
    "real": property(lambda self: ln.real(self)),
    "imag": property(lambda self: ln.imag(self)),
    "__getitem__": lambda self, key: by_rule(picked, self, key),
    "__setitem__": assigned,
    "__iter__": _iterate,
    "__matmul__": _matmul,
    "__rmatmul__": _rmatmul,
    "__imatmul__": _imatmul,
    "__pow__": _power,
    "__len__": lambda self: len(plain(self)),
    "__bool__": _truth,
    "__repr__": _repr,
    "__str__": _repr,
    "__format__": lambda self, spec: _repr(self),
    "__copy__": lambda self: ln.positive(self),
    "__deepcopy__": lambda self, memo: ln.positive(self),
    "__array_ufunc__": _array_ufunc,
    "copy": lambda self, order="C": ln.positive(self),
    "reshape": _shaped,
    "transpose": _transposed,
    "flatten": lambda self, order="C": ln.ravel(self, order),
    "astype": lambda self, dtype, *args, **options: ln.astype(self, dtype),
    "rechunk": lambda self, chunks="auto": ln.rechunk(self, chunks),
    "fill": _filled,
    "sort": _sorted,
    "compress": lambda self, condition, axis=None: ln.compress(condition, self, axis),
    "compute": _values("compute()"),
    "persist": _values("persist()"),
    "item": _values("item()"),
    "tolist": _values("tolist()"),
    "__array__": _values("np.asarray()"),
    "__float__": _values("float()"),
    "__int__": _values("int()"),
    "__complex__": _values("complex()"),
    "__index__": _values("an index"),
    "__dlpack__": _values("from_dlpack()"),
    "__reduce__": _values("pickle"),
    "_repr_html_": _repr,
}
for _name, _ufunc in _OPERATORS.items():
    _METHODS.setdefault(f"__{_name}__", _binary(_ufunc))
    _METHODS[f"__r{_name}__"] = _binary(_ufunc, reverse=True)
    if _name != "divmod":
        _METHODS[f"__i{_name}__"] = _inplace(_ufunc)
for _name, _ufunc in _COMPARISONS.items():
    _METHODS[f"__{_name}__"] = _binary(_ufunc)
for _name, _ufunc in _UNARY.items():
    _METHODS[f"__{_name}__"] = _unary(_ufunc)
for _name, _method in _METHODS.items():
    setattr(TracedArray, _name, _method)

__all__ = ["assigned", "picked", "replaced", "updated"]
