"""Arrays as text: `array2string`, `array_repr`, `array_str`. Of long arrays only the ends are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import as_node, chunked, wrap
from linnet.arrays.elements.join_and_split import joined, part_of


def corners(a: Any, ends: int) -> NDArray[Any]:
    """An array without what lies between its first and last elements along long axes.

    >>> corners(np.arange(100), 2)
    array([ 0,  1,  2, 98, 99])
    """
    node = as_node(a)
    for axis, length in enumerate(node.shape):
        if length > 2 * ends + 1:  # one more is kept than is shown, so that there is a gap
            parts = [part_of(node, axis, 0, ends + 1), part_of(node, axis, length - ends, length)]
            node = joined(parts, axis)
    return np.asarray(wrap(node))


def _shown(a: Any, threshold: int | None, edgeitems: int | None) -> tuple[NDArray[Any], dict[str, Any]]:
    """What is shown of an array, and how NumPy is told to."""
    options = np.get_printoptions()
    most = options["threshold"] if threshold is None else threshold
    ends = options["edgeitems"] if edgeitems is None else edgeitems
    if np.prod(as_node(a).shape, dtype=object) <= most:
        return np.asarray(a), {"threshold": most, "edgeitems": ends}
    return corners(a, ends), {"threshold": 0, "edgeitems": ends}


@chunked(np.array2string)
def array2string(
    a: Any, *args: Any, threshold: int | None = None, edgeitems: int | None = None, **kwargs: Any
) -> str:
    """The values of an array as text; of an array longer than `threshold` those at its ends.

    Parameters
    ----------
    a : array_like
    args, kwargs
        As for `np.array2string`.
    threshold : int, optional
        From how many elements on only the ends are shown.
    edgeitems : int, optional
        How many elements at each end.

    Returns
    -------
    str

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> array2string(asarray(np.arange(5000), chunks=7))
    '[   0    1    2 ... 4997 4998 4999]'
    """
    shown, how = _shown(a, threshold, edgeitems)
    return np.array2string(shown, *args, **how, **kwargs)


@chunked(np.array_str)
def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The values of an array as text, as `str` gives it.

    Parameters
    ----------
    a : array_like
    max_line_width, precision : int, optional
        Characters of a line, digits after the point.
    suppress_small : bool, optional
        Whether numbers near zero are shown as zero.

    Returns
    -------
    str

    Examples
    --------
    >>> import linnet as ln
    >>> array_str(ln.asarray([1.0, 2.5], chunks=1))
    '[1.  2.5]'
    """
    shown, how = _shown(a, None, None)
    with np.printoptions(**how):
        return np.array_str(shown, max_line_width, precision, suppress_small)


@chunked(np.array_repr)
def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The values of an array as `repr` gives them for one of NumPy's.

    Parameters
    ----------
    arr : array_like
    max_line_width, precision : int, optional
        Characters of a line, digits after the point.
    suppress_small : bool, optional
        Whether numbers near zero are shown as zero.

    Returns
    -------
    str

    Examples
    --------
    >>> import linnet as ln
    >>> array_repr(ln.asarray([1.0, 2.5], chunks=1))
    'array([1. , 2.5])'
    """
    shown, how = _shown(arr, None, None)
    with np.printoptions(**how):
        text = np.array_repr(shown, max_line_width, precision, suppress_small)
    values, named, rest = text.rpartition(f"shape={shown.shape}")
    if not named:
        return text
    values, rest = values.rstrip(), f"shape={as_node(arr).shape}{rest}"
    width = np.get_printoptions()["linewidth"] if max_line_width is None else max_line_width
    full = len(values) - values.rfind("\n") + len(rest) > width
    return values + ("\n" + " " * len("array(") if full else " ") + rest


METHODS: dict[str, Any] = {}
__all__ = ["array2string", "array_repr", "array_str"]
