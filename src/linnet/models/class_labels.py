"""Classes of rows: their numbers, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.models import inputs


def encoded(y: Any) -> tuple[NDArray[Any], Any]:
    """The classes in order, and the number of each row's class; lazily, if y is."""
    if not inputs.lazy(y):
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        return classes, codes.astype(np.float64)
    from linnet.arrays.namespace import names

    known = names()
    if y.dtype.kind == "f" and not bool(known["isfinite"](y).all()):
        raise ValueError("Input y contains NaN or infinity; classes are finite")
    classes = np.asarray(known["unique_values"](y))
    return classes, known["searchsorted"](known["asarray"](classes), y)


def batch_codes(known: NDArray[Any] | None, given: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The classes in order, and the number of each row's class in a batch of rows.

    `known` are those of batches before, `given` those that the user names.
    """
    if known is None and given is None:
        raise ValueError("classes must be passed on the first call to partial_fit.")
    classes = np.unique(np.asarray(given)) if known is None else known
    if given is not None and not np.array_equal(classes, np.unique(np.asarray(given))):
        raise ValueError(f"classes={given!r} is not the same as on the last call to partial_fit: {known!r}")
    if len(classes) < 2:
        raise ValueError(f"at least 2 classes are needed; got {classes!r}")
    rows = np.asarray(y)
    codes = np.minimum(np.searchsorted(classes, rows), len(classes) - 1)
    if not (classes[codes] == rows).all():
        strange = np.unique(rows[classes[codes] != rows])[:5].tolist()
        raise ValueError(f"y has classes {strange} that are not among {classes!r}")
    return classes, codes.astype(np.float64)


def class_weights(given: Any, classes: NDArray[Any], codes: Any, weight: Any) -> Any:
    """The weight of each row's class."""
    if isinstance(given, str):
        if given != "balanced":
            raise ValueError(f"class_weight must be a dict, 'balanced' or None; got {given!r}")
        counts = np.array([inputs.summed(codes == k, weight) for k in range(len(classes))])
        of_classes = counts.sum() / (len(classes) * np.where(counts > 0, counts, np.inf))
    else:
        unknown = [each for each in given if each not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"The classes, {unknown}, are not in class_weight's data: y has {classes.tolist()}"
            )
        of_classes = np.array([float(given.get(each, 1.0)) for each in classes.tolist()])
    if inputs.lazy(codes):
        from linnet.arrays.namespace import names

        return names()["take"](names()["asarray"](of_classes), codes)
    return of_classes[codes.astype(np.intp)]
