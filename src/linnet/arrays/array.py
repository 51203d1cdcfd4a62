"""The array users see: NumPy's behaviour over a lazy expression."""

from __future__ import annotations

import operator
from importlib import import_module
from types import GenericAlias
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.arrays import CHAPTERS, FURTHER
from linnet.arrays.elements import elementwise
from linnet.arrays.elements.core import NUMPY, ArrayBase, recut_as, wrap, wrapped
from linnet.arrays.elements.operator_methods import OPERATORS
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import permuted
from linnet.arrays.expression.nodes import Source, Stored
from linnet.arrays.files.pickling import reduced, token
from linnet.arrays.lowering.assigned_versions import latest
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.arrays.methods import Methods
from linnet.events.showing import for_call
from linnet.futures.plain import register
from linnet.tiles import human


class Array(ArrayBase, Methods):
    """An array in tiles, computed when its values are asked for.

    >>> x = Array(Source(np.arange(6.0).reshape(2, 3)))
    >>> (x + 1).sum().compute()
    np.float64(21.0)
    """

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment] # arrays are compared element by element
    __array_priority__: ClassVar[int] = 100

    # ---- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; setting it changes the array itself, as `reshape` does."""
        return self._node.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._node = self.reshape(shape).__node__

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """`ln.ndarray[shape, dtype]` in annotations, as NumPy's."""
        return GenericAlias(cls, item)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """How many axes."""
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of the tiles along each axis."""
        return chunking.sizes(self._node.layout)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many tiles along each axis."""
        return self._node.layout.grid

    @property
    def storage(self) -> str:
        """How its elements are stored: "dense", or what a sparse array (`ln.sparse`) says of itself."""
        return "dense"

    @property
    def device(self) -> str:
        """Where the array is, as the array API standard asks: always "cpu"."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The array itself; "cpu" is the only device."""
        if device != "cpu" or stream is not None:
            raise ValueError(
                f'device {device!r} with stream {stream!r} is not known; the only device is "cpu"'
            )
        return self

    @property
    def T(self) -> Array:
        """The array with its axes reversed."""
        node = self._node
        if type(node) is Source and node.in_one_tile:
            return wrapped(node.data.T)
        return wrap(permuted(self.__node__, tuple(reversed(range(self.ndim)))))

    @property
    def mT(self) -> Array:
        """The array with its last two axes swapped."""
        if self.ndim < 2:
            raise ValueError(f"mT needs at least two axes; this array has shape {self.shape}")
        last = self.ndim - 1
        return wrap(permuted(self.__node__, (*range(last - 1), last, last - 1)))

    # ---- its values

    def compute(self, *, progress: bool | None = None) -> Any:
        """The values, as a NumPy array, or a NumPy scalar if it has no axes.

        `progress=True` shows how far it is, `progress=False` does not; None: as `ln.progress` has it.
        """
        node = self.__node__
        if progress is None:
            (value,) = computed([node])
        else:
            with for_call(progress):
                (value,) = computed([node])
        if self._node is node:
            self._node = latest(node)
        if not value.shape:
            return value[()]
        return value.copy() if isinstance(node, Source) else value

    def persist(self, *, progress: bool | None = None) -> Array:
        """Compute it now and keep the result, in tiles; the array itself from now on reads that.

        `progress=True` shows how far it is, `progress=False` does not; None: as `ln.progress` has it.
        """
        with for_call(progress):
            (self._node,) = persisted([self.__node__])
        return self

    def rechunk(self, chunks: Any = "auto") -> Array:
        """The same array in other tiles."""
        return wrap(recut_as(self.__node__, chunks))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        node = self.__node__
        if copy is False and not isinstance(node, Source):
            raise ValueError("this array is not computed yet: it cannot become a NumPy array without a copy")
        (value,) = computed([node])
        if self._node is node:
            self._node = latest(node)
        if isinstance(node, Source) and not copy:
            value = value.view()
            value.flags.writeable = False  # others may hold the same memory
        elif isinstance(node, Source):
            value = value.copy()
        return value if dtype is None else value.astype(dtype, copy=False)

    def item(self, *args: Any) -> Any:
        """An element as a Python scalar; without arguments the only one."""
        if not args and self.size != 1:
            raise ValueError(
                f"item() without arguments needs an array of one element, not of shape {self.shape}"
            )
        if not args:
            return np.asarray(self).reshape(()).item()
        flat = len(args) == 1 and not isinstance(args[0], tuple)
        index = np.unravel_index(args[0], self.shape) if flat else args[0] if len(args) == 1 else args
        return self[tuple(map(int, index))].compute().item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        return np.asarray(self).tolist()

    def _scalar(self, kind: str) -> Any:
        if self.shape != ():
            raise TypeError(
                f"only arrays without axes become a Python {kind}; this one has shape {self.shape}"
            )
        return self.compute()

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(np.asarray(self).reshape(())[()])
        raise ValueError(
            f"the truth value of an array of shape {self.shape} is ambiguous; use any() or all()"
        )

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        return operator.index(self._scalar("int"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    # ---- protocols

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ValueError(
                f"version {api_version!r} of the array API is not known; 2025.12 is the newest here"
            )
        return import_module("linnet")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__":
            from linnet.arrays.elements.ufuncs import method_of

            return method_of(ufunc, method, inputs, keywords)
        if ufunc.signature is not None:
            known = NUMPY.get(ufunc)
            return NotImplemented if known is None else known(*inputs, **keywords)
        return elementwise.call(ufunc, inputs, keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = NUMPY.get(func)
        if known is None:
            # Chapters with namespaces of their own are loaded when they are asked for.
            for chapter in FURTHER:
                import_module(f"linnet.arrays.{chapter}")
            known = NUMPY.get(func)
        return NotImplemented if known is None else known(*args, **kwargs)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        node = self.__node__
        if copy is not False:
            data = np.asarray(self.compute())
        elif isinstance(node, Source):
            data = node.data
        elif isinstance(node, Stored):
            raise BufferError("this array lies in memory tile by tile: as one it is a copy")
        else:  # computed now, and the array's own from now on
            data = np.asarray(self.compute())
            self._node = Source(data, node.layout)
        return data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> Any:
        return (1, 0)

    def __reduce__(self) -> Any:
        """The expression, as data; nothing is computed."""
        return reduced(self.__node__)

    def __dask_tokenize__(self) -> Any:
        """What Dask knows the array by; nothing is computed."""
        return token(self.__node__)

    def __copy__(self) -> Array:
        return wrap(self.__node__)

    def __deepcopy__(self, memo: Any) -> Array:
        node = self.__node__
        return wrap(Source(node.data.copy(), node._layout) if isinstance(node, Source) else node)

    # ---- how it looks

    def __repr__(self) -> str:
        if isinstance(self._node, Source) and self.size <= 1000:
            values = np.array2string(self._node.data, separator=", ", prefix="Array(")
            return f"Array({values}, dtype={self.dtype})"
        grid = "×".join(map(str, self.grid)) or "1"
        return f"Array(shape={self.shape}, dtype={self.dtype}, grid={grid})"

    def __str__(self) -> str:
        """The values; of a long array those at its ends, and no others are computed."""
        from linnet.arrays.functions.array_text import array_str

        return array_str(self)

    def __format__(self, spec: str) -> str:
        if spec and self.shape:
            raise TypeError(f"format {spec!r} of an array of shape {self.shape}; only numbers have formats")
        return format(self.compute(), spec) if spec else str(self)

    def _repr_html_(self) -> str:
        from linnet.arrays.functions.notebook_picture import html

        return html(self.shape, self.chunks, self.dtype, human(self.nbytes))


def _attach() -> None:
    """Give the class its operators, and the methods that chapters define."""
    for methods in (OPERATORS, *(import_module(f"linnet.arrays.{chapter}").METHODS for chapter in CHAPTERS)):
        for name, method in methods.items():
            setattr(Array, name, method)


def _told(array: Array) -> Any:
    """An array as data: its values, and how it is cut."""
    return array.compute(), array.chunks


def _made(data: Any) -> Array:
    from linnet.arrays.elements.creation import asarray

    values, chunks = data
    return asarray(values, chunks=chunks)


_attach()
register(Array, {"compute"}, _told, _made)  # in parallel functions it is a value like NumPy's arrays
