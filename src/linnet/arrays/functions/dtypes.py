"""Types of elements: names, conversion, promotion; what an array is; the namespace on itself."""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import NUMPY, SCALARS, ArrayBase, as_node, axes_of, checked, wrap
from linnet.arrays.elements.creation import check_device
from linnet.arrays.elements.creation import copy as copied
from linnet.arrays.elements.elementwise import cast, placed
from linnet.arrays.expression.builders import each_tile, filled, mapped, recut
from linnet.arrays.expression.traced import traceable
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

# NumPy's scalar types and not its dtypes, which equal None and names: a dtype equals itself alone.
bool = np.bool  # the standard's name
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128
e: float = np.e
pi: float = np.pi
inf: float = np.inf
nan: float = np.nan
newaxis: None = None

KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

# ---- conversion


def _astype(
    self: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True
) -> Array:
    """The array in another dtype."""
    node = as_node(self)
    kind = checked(np.empty(0, dtype)).dtype
    if not np.can_cast(node.dtype, kind, casting):
        raise TypeError(
            f"Cannot cast array data from {node.dtype!r} to {kind!r} according to the rule {casting!r}"
        )
    if kind != node.dtype:
        return wrap(cast(node, kind))
    return copied(self) if copy else self


@traceable
def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Array:
    """The array in another dtype.

    Parameters
    ----------
    x : array_like
    dtype : the type of the result
    copy : whether to copy where the type is that already
    device : optional; "cpu" is the only one

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> astype(asarray([1.5, 2.5]), int64).compute()
    array([1, 2])
    """
    check_device(device)
    if not isinstance(x, ArrayBase | np.ndarray | np.generic):
        raise TypeError(f"Input should be an array. It is a {type(x).__name__}")
    return _astype(x if isinstance(x, ArrayBase) else wrap(as_node(x)), dtype, copy=copy)


def _view(self: Any, dtype: Any = None, type: Any = None) -> Array:
    """The same bytes read as another dtype; elements of another size change the length of the last axis."""
    node = self.__node__
    if dtype is ArrayBase._public or type in (None, ArrayBase._public):
        dtype = None if dtype is ArrayBase._public else dtype
    else:
        raise TypeError("view(type=...) is not supported: arrays in tiles have one class; give a dtype")
    kind = node.dtype if dtype is None else checked(np.empty(0, dtype)).dtype
    if kind == node.dtype:
        return wrap(node)
    old, new = node.dtype.itemsize, kind.itemsize
    if old == new:
        return wrap(each_tile("reinterpret", node, kind, into=kind.str))
    if not node.ndim:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    if node.shape[-1] * old % new:
        raise ValueError(
            f"view of {node.dtype} as {kind}: its size must be a divisor of the total size in bytes of the "
            f"last axis of the array, which is {node.shape[-1] * old}"
        )
    *others, last = node.layout.boundaries
    whole = math.lcm(old, new) // old  # elements that are whole ones of the new size
    cut = (0, *sorted({edge // whole * whole for edge in last[1:-1]} - {0}), last[-1])
    node = recut(node, Layout((*others, cut)))
    layout = Layout((*others, tuple(edge * old // new for edge in cut)))
    return wrap(each_tile("reinterpret", node, kind, layout, into=kind.str, sizes=(old, new)))


def _fill(self: Any, value: Any) -> None:
    """Set every element to one value."""
    node = self.__node__
    one = np.empty((), node.dtype)
    one.fill(value)
    self._node = filled(node.shape, one, node.dtype, node.layout)


def _byteswap(self: Any, inplace: Any = False) -> Array:
    """Refused: the order of bytes in memory is not the user's concern."""
    raise TypeError("byteswap is not supported: tiles are kept in the machine's own order of bytes")


def real_part(self: Any) -> Any:
    """The real part."""
    node = self.__node__
    return wrap(
        node if node.dtype.kind != "c" else mapped("real", [node], np.zeros((), node.dtype).real.dtype)
    )


def imaginary_part(self: Any) -> Any:
    """The imaginary part; zeros, if elements have none."""
    node = self.__node__
    if node.dtype.kind != "c":
        return wrap(filled(node.shape, 0, node.dtype, node.layout))
    return wrap(mapped("imag", [node], np.zeros((), node.dtype).real.dtype))


@traceable
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Put the elements of one array, broadcast, into another.

    Parameters
    ----------
    dst : Array, which is changed
    src : array_like, broadcast
    casting : which casts are allowed
    where : array_like of bool; which elements are replaced

    Returns
    -------
    None

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.zeros(3)
    >>> ln.copyto(x, [1, 2, 3], where=[True, False, True])
    >>> x.compute()
    array([1., 0., 3.])
    """
    if isinstance(dst, ArrayBase) and type(src) in SCALARS:
        number = np.empty((), dst.__node__.dtype)
        np.copyto(number, src, casting=casting)  # which numbers fit is NumPy's to say
        src = number
    source = as_node(src)
    if isinstance(dst, ArrayBase):
        if not np.can_cast(source.dtype, dst.__node__.dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {source.dtype!r} to {dst.__node__.dtype!r} "
                f"according to the rule {casting!r}"
            )
        source = cast(source, dst.__node__.dtype)
    placed(wrap(source), dst, where, "copyto", casting)


# ---- promotion


def _kind(item: Any) -> Any:
    return item.__node__.dtype if isinstance(item, ArrayBase) else item


@traceable
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that arrays, dtypes and Python numbers have together.

    Parameters
    ----------
    arrays_and_dtypes : arrays, dtypes and Python numbers

    Returns
    -------
    dtype

    Examples
    --------
    >>> import linnet as ln
    >>> ln.result_type(ln.ones(2, "f4"), 3)
    dtype('float32')
    """
    return np.result_type(*map(_kind, arrays_and_dtypes))


@traceable
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> builtins.bool:
    """Whether a conversion keeps what the casting rule promises.

    Parameters
    ----------
    from_ : dtype, array or number
    to : dtype
    casting : "no", "equiv", "safe", "same_kind" or "unsafe"

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.can_cast("i4", "f8"), ln.can_cast("f8", "i4")
    (True, False)
    """
    return np.can_cast(_kind(from_), _kind(to), casting)


def promote_types(type1: Any, type2: Any) -> np.dtype[Any]:
    """The dtype two dtypes have together.

    Parameters
    ----------
    type1, type2 : dtypes

    Returns
    -------
    dtype

    Examples
    --------
    >>> import linnet as ln
    >>> ln.promote_types("i4", "f4")
    dtype('float64')
    """
    return np.promote_types(type1, type2)


@dataclass(frozen=True)
class FloatLimits:
    """`np.finfo` with Python's own floats, as the standard asks; what it has besides is NumPy's."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(np.finfo(self.dtype), name)


def finfo(type: Any, /) -> FloatLimits:
    """Limits of floating-point numbers, of a dtype or of an array's.

    Parameters
    ----------
    type : dtype of floats, or an array of them

    Returns
    -------
    object with `bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`

    Examples
    --------
    >>> finfo(float32).eps
    1.1920928955078125e-07
    """
    info = np.finfo(_kind(type))
    eps, largest, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return FloatLimits(info.bits, eps, largest, least, normal, info.dtype)


def iinfo(type: Any, /) -> Any:
    """Limits of integers, of a dtype or of an array's.

    Parameters
    ----------
    type : dtype of integers, or an array of them

    Returns
    -------
    object with `bits`, `max`, `min` and `dtype`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.iinfo("i2").max
    32767
    """
    return np.iinfo(_kind(type))


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind, or of one of several.

    Parameters
    ----------
    dtype : dtype
    kind : dtype, or "bool", "integral", "real floating", "numeric", …; or a tuple of these

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isdtype(ln.float32, "real floating")
    True
    """
    return np.isdtype(dtype, kind)


def common_type(*arrays: Any) -> type[Any]:
    """The inexact scalar type that arrays have together.

    Parameters
    ----------
    arrays : several

    Returns
    -------
    type

    Examples
    --------
    >>> import linnet as ln
    >>> ln.common_type(ln.ones(2, "f4"), ln.ones(2, int)).__name__
    'float64'
    """
    return np.common_type(*(np.empty(0, as_node(each).dtype) for each in arrays))


def min_scalar_type(a: Any, /) -> np.dtype[Any]:
    """The smallest dtype that holds a number; of an array with axes, its own.

    Parameters
    ----------
    a : number or array

    Returns
    -------
    dtype

    Examples
    --------
    >>> import linnet as ln
    >>> ln.min_scalar_type(300)
    dtype('uint16')
    """
    node = as_node(a)
    return node.dtype if node.ndim else np.min_scalar_type(np.asarray(a)[()])


# ---- what an array is


@traceable
def shape(a: Any) -> tuple[int, ...]:
    """Lengths of the axes.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> import linnet as ln
    >>> ln.shape([[1, 2, 3]])
    (1, 3)
    """
    return as_node(a).shape


@traceable
def ndim(a: Any) -> int:
    """How many axes.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    int

    Examples
    --------
    >>> import linnet as ln
    >>> ln.ndim([[1, 2]])
    2
    """
    return as_node(a).ndim


@traceable
def size(a: Any, axis: Any = None) -> int:
    """How many elements, in all or along axes.

    Parameters
    ----------
    a : array_like
    axis : int or tuple of int, optional; None: in all

    Returns
    -------
    int

    Examples
    --------
    >>> import linnet as ln
    >>> ln.size([[1, 2, 3]], axis=1)
    3
    """
    node = as_node(a)
    total = 1
    for each in axes_of(axis, node.ndim):
        total *= node.shape[each]
    return total


# ---- the namespace's description of itself


METHODS: dict[str, Any] = {
    "astype": _astype,
    "byteswap": _byteswap,
    "copy": copied,
    "fill": _fill,
    "imag": property(imaginary_part),
    "real": property(real_part),
    "view": _view,
}
_FUNCTIONS = [
    "can_cast",
    "common_type",
    "copyto",
    "finfo",
    "iinfo",
    "isdtype",
    "min_scalar_type",
    "ndim",
    "promote_types",
    "result_type",
    "shape",
    "size",
]
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_FUNCTIONS,
    "astype",
    "bool",
    "complex64",
    "complex128",
    "e",
    "float16",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
for _name in _FUNCTIONS:
    NUMPY[getattr(np, _name)] = globals()[_name]
if hasattr(np, "astype"):
    NUMPY[np.astype] = astype
