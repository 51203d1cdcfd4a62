"""Storages of one's own: where the elements of an array are, said by a function of their indices.

`store` makes of an array what is kept of it (a triangle as a line, a band as its diagonals). `view` says what
the element at some indices is, in terms of what is kept. Loops that read such an array read what is kept:
`view` is put in the place of each element, so the array is never made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.arrays.elements.core import ArrayBase
from linnet.errors import InputError
from linnet.futures.source import SourceError, source_of
from linnet.tiles import human

_SLOT: Any = ArrayBase.__dict__["_node"]


@dataclass(frozen=True, slots=True)
class Storage:
    """A way to keep arrays; called with an array it keeps that one."""

    name: str
    view: Callable[..., Any]
    store: Callable[[Any], Any]

    def __call__(self, array: Any) -> Any:
        """An array in this storage."""
        from linnet.loopnests.vectors import functions

        array = functions().asarray(array)
        axes = len(inspect.signature(self.view).parameters) - 1
        if axes != array.ndim:
            raise InputError(
                f"the view of {self.name!r} takes {axes} indices, and the array has {array.ndim} axes"
            )
        kept = self.store(array)
        if not isinstance(kept, ArrayBase | np.ndarray):
            raise InputError(
                f"store= of the storage {self.name!r} gives a {type(kept).__name__}; it must give an array"
            )
        made = object.__new__(StoredArray)
        _SLOT.__set__(made, Held(self, functions().asarray(kept), tuple(array.shape)))
        return made


@dataclass(frozen=True, slots=True)
class Held:
    """What an array in a storage consists of."""

    storage: Storage
    kept: Any
    shape: tuple[int, ...]


STORAGES: dict[str, Storage] = {}


class StoredArray(ArrayBase._public, register=False):  # type: ignore[misc, call-arg]
    """An array in a storage of the user's own: loops read it, and `todense()` makes a plain array of it."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @property
    def _node(self) -> NoReturn:  # type: ignore[override]
        raise InputError(
            f"this array is in the storage {self.held.storage.name!r}, which loops can read; nothing is made "
            "dense unasked: give x.todense() to other functions"
        )

    @_node.setter
    def _node(self, node: Any) -> None:  # type: ignore[override]
        raise InputError(
            f"elements in the storage {self.held.storage.name!r} cannot be assigned; change x.todense(), and "
            "store that"
        )

    @property
    def held(self) -> Held:
        """The storage, and what is kept in it."""
        return _SLOT.__get__(self, type(self))

    @property
    def kept(self) -> Any:
        """What `store` made of the array."""
        return self.held.kept

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.held.shape

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self.held.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.todense().dtype

    @property
    def storage(self) -> str:
        """How it is kept."""
        return f"{self.held.storage.name}: {human(self.kept.nbytes)} kept"

    def todense(self) -> Any:
        """The same elements as a plain lazy array."""
        from linnet.loopnests.einops import einop

        indices = ", ".join(f"i{axis}" for axis in range(self.ndim))
        return einop(f"dense[{indices}] = stored[{indices}]", stored=self)

    def compute(self) -> Any:
        """All elements, as a NumPy array."""
        return self.todense().compute()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All elements, as a NumPy array."""
        if copy is False:
            raise ValueError("an array in a storage of one's own cannot become a NumPy array without a copy")
        return np.asarray(self.compute(), dtype)

    def __getitem__(self, key: Any) -> Any:
        """One element: what plain loops read."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.ndim or not all(isinstance(each, int | np.integer) for each in keys):
            raise InputError("of an array in a storage of one's own single elements are read; or x.todense()")
        places: list[int] = []
        for axis, (each, length) in enumerate(zip(keys, self.shape, strict=True)):
            if not -length <= each < length:
                raise IndexError(f"index {each} is out of bounds for axis {axis} with size {length}")
            places.append(int(each) % length)
        return self.held.storage.view(self.kept.compute(), *places)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self._node = value
        raise AssertionError

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise ValueError("the truth of an array with several elements is ambiguous; use x.todense()")

    def __repr__(self) -> str:
        return f"Array(shape={self.shape}, {self.storage})"


def storage(name: str, *, view: Callable[..., Any], store: Callable[[Any], Any]) -> Storage:
    """Register a storage of one's own: a way to keep arrays.

    Parameters
    ----------
    name : str
        What it is called in messages and by ``x.storage``.
    view : callable
        A function written with `def`: ``view(kept, i, j)`` returns the element at ``i, j``, one expression of
        elements of `kept` and of the indices. It may choose: ``kept[i - j, j] if i >= j else 0.0``.
    store : callable
        Of an array what is kept of it, as one array. It may be a function of loops.

    Returns
    -------
    Storage
        Called with an array it gives the array in this storage.

    See Also
    --------
    sparse : arrays most of whose elements are absent.

    Examples
    --------
    >>> import linnet as ln, numpy as np
    >>> def on_diagonal(d, i, j):
    ...     return d[i] if i == j else 0.0
    >>> diagonal = ln.storage("diagonal", view=on_diagonal, store=ln.diagonal)
    >>> x = diagonal(np.diag([1.0, 2, 3]))
    >>> x.storage
    'diagonal: 24 bytes kept'
    >>> ln.einop("y[i] += x[i, j] * v[j]", x=x, v=np.ones(3)).compute()
    array([1., 2., 3.])
    """
    if not callable(view) or not callable(store):
        raise InputError("view= and store= are functions: view(kept, i, j), store(array)")
    try:
        source_of(cast("FunctionType", view))
    except (SourceError, AttributeError) as error:
        raise InputError(f"view= must be a function whose text can be read: {error}") from None
    if len(inspect.signature(view).parameters) < 2:
        raise InputError("view= takes what is kept and one index for each axis: view(kept, i, j)")
    known = STORAGES.get(name)
    if known is not None and (known.view, known.store) != (view, store):
        raise InputError(f"there is a storage {name!r} already; choose another name")
    return STORAGES.setdefault(name, Storage(name, view, store))
