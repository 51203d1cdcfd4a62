"""What numbers are: real, complex, infinite."""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import NUMPY, as_node, chunked, wrap
from linnet.arrays.elements.elementwise import apply, placed
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import filled
from linnet.arrays.expression.traced import traceable

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.functions.dtypes import imaginary_part, real_part


@traceable
def iscomplexobj(x: Any) -> builtins.bool:
    """Whether the dtype is complex.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.iscomplexobj([1 + 0j])
    True
    """
    return as_node(x).dtype.kind == "c"


@traceable
def isrealobj(x: Any) -> builtins.bool:
    """Whether the dtype is not complex.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isrealobj([1.0])
    True
    """
    return not iscomplexobj(x)


@chunked(np.iscomplex, times=chunking.LINEAR)
def iscomplex(x: Any) -> Array:
    """Where the imaginary part is not zero.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.iscomplex([1 + 2j, 3]).compute()
    array([ True, False])
    """
    array = wrap(as_node(x))
    if not iscomplexobj(array):
        return wrap(filled(array.shape, False, "?", array.__node__.layout))
    return apply(np.not_equal, imaginary_part(array), 0)


@chunked(np.isreal, times=chunking.LINEAR)
def isreal(x: Any) -> Array:
    """Where the imaginary part is zero.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isreal([1 + 2j, 3]).compute()
    array([False,  True])
    """
    return apply(np.logical_not, iscomplex(wrap(as_node(x))))


@chunked(np.isposinf, times=chunking.LINEAR)
def isposinf(x: Any, out: Any = None) -> Array:
    """Where elements are positive infinity.

    Parameters
    ----------
    x : array_like
    out : array, optional; where the result goes

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isposinf([-ln.inf, ln.inf]).compute()
    array([False,  True])
    """
    return _infinite(x, out, positive=True)


@chunked(np.isneginf, times=chunking.LINEAR)
def isneginf(x: Any, out: Any = None) -> Array:
    """Where elements are negative infinity.

    Parameters
    ----------
    x : array_like
    out : array, optional; where the result goes

    Returns
    -------
    Array of booleans

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isneginf([-ln.inf, ln.inf]).compute()
    array([ True, False])
    """
    return _infinite(x, out, positive=False)


def _infinite(x: Any, out: Any, *, positive: Any) -> Any:
    array = wrap(as_node(x))
    if array.dtype.kind == "c":
        raise TypeError(f"infinities of {array.dtype} values have no sign; take the real or imaginary part")
    side = apply(np.signbit, array)
    found = apply(np.logical_and, apply(np.isinf, array), apply(np.logical_not, side) if positive else side)
    return found if out is None else placed(found, out, True, "isposinf" if positive else "isneginf")


@chunked(np.real_if_close, times=chunking.LINEAR)
def real_if_close(a: Any, tol: float = 100) -> Array:
    """The real part, if all imaginary parts are close to zero: this computes them.

    Parameters
    ----------
    a : array_like of complex numbers
    tol : how many units of rounding the imaginary parts may be

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.real_if_close([1 + 1e-15j]).compute()
    array([1.])
    """
    array = wrap(as_node(a))
    if array.dtype.kind != "c":
        return array
    limit = tol * np.finfo(array.dtype).eps if tol > 1 else tol
    largest = NUMPY[np.all](apply(np.less, apply(np.absolute, imaginary_part(array)), limit))
    return real_part(array) if operator.truth(largest) else array


METHODS: dict[str, Any] = {}
__all__ = ["iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj", "real_if_close"]
NUMPY[np.iscomplexobj] = iscomplexobj
NUMPY[np.isrealobj] = isrealobj
