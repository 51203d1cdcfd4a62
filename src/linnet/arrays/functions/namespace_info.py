"""What the namespace says of itself, as the array API standard asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.creation import check_device

if TYPE_CHECKING:
    pass
from linnet.arrays.functions.dtypes import KINDS, complex128, float64, int64


class Info:
    """What the standard's inspection functions tell of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        """What is supported beyond the common part."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where arrays are made."""
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        """Where arrays can be."""
        return ("cpu",)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """What Python numbers become."""
        check_device(device)
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes, all or those of a kind."""
        check_device(device)
        kinds = tuple(KINDS) if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
        for each in kinds:
            if each not in KINDS:
                raise ValueError(f"kind {each!r} is not known; expected one of {', '.join(KINDS)}")
        # Of the type of `x.dtype`, as NumPy's own: others look that up among them.
        return {name: np.dtype(name) for each in kinds for name in KINDS[each]}


__array_api_version__ = "2025.12"


def __array_namespace_info__() -> Info:
    """The namespace's description of itself, as the standard asks.

    Returns
    -------
    Info
        With `capabilities()`, `default_device()`, `default_dtypes()`, `devices()` and `dtypes()`.

    Examples
    --------
    >>> __array_namespace_info__().default_device()
    'cpu'
    """
    return Info()


METHODS: dict[str, Any] = {}
__all__ = ["__array_api_version__", "__array_namespace_info__"]
