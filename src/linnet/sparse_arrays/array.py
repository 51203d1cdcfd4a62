"""The class of sparse arrays. They have no dense node: a function that asks for one takes its rule instead.

A function without a rule is refused by name, so nothing becomes dense unless somebody asks for it.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.arrays.elements import elementwise, operators
from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.expression import chunking
from linnet.arrays.expression.nodes import Stored
from linnet.arrays.expression.traced import Traced
from linnet.arrays.functions.contractions import matmul
from linnet.arrays.lowering.evaluate import Arrays, computed
from linnet.errors import InputError
from linnet.session import current_engine
from linnet.session.work import run
from linnet.sparse_arrays.form import Form, in_memory
from linnet.sparse_arrays.operations import dense, recut_form
from linnet.tiles import human
from linnet.tiles.sparse_tile import SparseTile

_SLOT: Any = ArrayBase.__dict__["_node"]
RULES: dict[Any, Any] = {}
"""By the function inside all wrappers: what it is on sparse arrays."""


class NotForSparse(Traced, InputError):
    """A function looks inside a sparse array. Functions with a rule catch it; of others it is the error."""

    def __init__(self) -> None:
        Traced.__init__(self, dispatch)

    def __str__(self) -> str:
        name = self.names[-1] if self.names else "this function"
        return (
            f"{name} does not take sparse arrays, and nothing is made dense unasked; give x.todense(), or "
            "write it with +, *, @, sums, slices and transposes"
        )


def dispatch(raised: Traced, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function by its rule; the same error again if it has none."""
    inside = function
    while hasattr(inside, "__wrapped__"):
        inside = inside.__wrapped__
    rule = RULES.get(inside)
    if rule is None and isinstance(function, np.ufunc):
        rule = RULES[np.ufunc](function)
    if rule is None:
        raised.names.append(getattr(function, "__name__", str(function)).lstrip("_"))
        raise raised
    raised.__traceback__ = None
    return rule(*args, **{name: value for name, value in kwargs.items() if value is not None})


def form_of(array: Any) -> Form:
    """What is inside a sparse array."""
    return _SLOT.__get__(array, type(array))


def sparse_array(form: Form) -> Any:
    """The array users see."""
    made = object.__new__(SparseArray)
    _SLOT.__set__(made, form)
    return made


def _binary(ufunc: np.ufunc, reverse: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        other = operators.taken(other)
        if other is NotImplemented:
            return other
        return elementwise.call(ufunc, (other, self) if reverse else (self, other), {})

    return method


class SparseArray(ArrayBase._public, register=False):  # type: ignore[misc, call-arg]
    """An array whose absent elements have one value, its `fill`."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @property
    def _node(self) -> NoReturn:  # type: ignore[override]
        raise NotForSparse

    @_node.setter
    def _node(self, node: Any) -> None:  # type: ignore[override]
        raise NotForSparse

    # ---- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return form_of(self).shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return form_of(self).dtype

    @property
    def ndim(self) -> int:
        """How many axes."""
        return form_of(self).ndim

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of the blocks along each axis."""
        return chunking.sizes(form_of(self).layout)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many blocks along each axis, stored or not."""
        return form_of(self).layout.grid

    @property
    def fill(self) -> Any:
        """What absent elements are."""
        return form_of(self).fill

    @property
    def storage(self) -> str:
        """How it is stored."""
        form = form_of(self)
        count = int(np.prod(form.layout.grid, dtype=object))
        return f"sparse: {len(form.places):,} of {count:,} blocks stored, compressed rows, fill {form.fill}"

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        if self.ndim < 2:
            raise ValueError(f"mT needs at least two axes; this array has shape {self.shape}")
        last = self.ndim - 1
        return self.transpose(*range(last - 1), last, last - 1)

    # ---- its values

    def todense(self) -> Any:
        """The array with all of its elements, dense and lazy."""
        return wrap(dense(form_of(self)))

    def compute(self) -> Any:
        """The values, as a NumPy array: all of them."""
        return computed([dense(form_of(self))])[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a sparse array cannot become a NumPy array without a copy")
        value = self.compute()
        return value if dtype is None else value.astype(dtype, copy=False)

    def persist(self) -> Any:
        """Compute the stored blocks now and keep them; the array itself from now on reads these."""
        form = form_of(self)
        if not isinstance(form.packed, Stored):
            tiles = _stored_tiles(form)
            if current_engine().memory is not None:  # they may lie in files
                tiles = [np.array(tile) for tile in tiles]
            node = in_memory([tile.view() for tile in tiles])
            _SLOT.__set__(self, Form(form.layout, form.dtype, form.fill, form.places, node))
        return self

    @property
    def nnz(self) -> int:
        """How many elements are stored; this computes the array."""
        self.persist()
        return sum(SparseTile.unpacked(tile).stored for tile in _stored_tiles(form_of(self)))

    def coo(self) -> tuple[NDArray[Any], tuple[NDArray[Any], ...]]:
        """The stored elements: values, and positions along each axis."""
        self.persist()
        form = form_of(self)
        tiles = [SparseTile.unpacked(tile) for tile in _stored_tiles(form)]
        lines = [
            tuple(
                line.astype(np.int64) + start
                for line, start in zip(tile.coordinates(), tile.origin, strict=True)
            )
            for tile in tiles
        ]
        values = np.concatenate([tile.values for tile in tiles])
        places = tuple(np.concatenate([each[axis] for each in lines]) for axis in range(form.ndim))
        order = np.lexsort(places[::-1])
        return values[order], tuple(line[order] for line in places)

    def to_scipy(self) -> Any:
        """The array as one of scipy.sparse: `csr_array` of a matrix, else `coo_array`; its fill must be 0."""
        form = form_of(self)
        if form.fill != 0:
            raise InputError(
                f"absent elements of this array are {form.fill}, those of scipy.sparse 0; use x.coo()"
            )
        if form.dtype.char in "eg":
            raise InputError(f"scipy.sparse has no {form.dtype}; cast it first, x.astype(float)")
        from scipy.sparse import coo_array

        values, places = self.coo()
        shape: Any = form.shape
        made = coo_array((values, places), shape=shape)
        return made.tocsr() if form.ndim == 2 else made

    def rechunk(self, chunks: Any = "auto") -> Any:
        """The same array in other blocks."""
        form = form_of(self)
        return sparse_array(recut_form(form, chunking.normalized(chunks, form.shape, form.dtype)))

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self.compute().reshape(())[()])
        raise ValueError(
            f"the truth value of an array of shape {self.shape} is ambiguous; use any() or all()"
        )

    # ---- what is done with it

    def transpose(self, *axes: Any) -> Any:
        """The axes in another order; reversed, if none is given."""
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return RULES["transpose"](self, given)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Every element, and the fill, as another type."""
        return RULES["astype"](self, dtype)

    def copy(self, order: Any = "K") -> Any:
        """Another array of the same elements."""
        return sparse_array(form_of(self))

    def __getitem__(self, key: Any) -> Any:
        return RULES["getitem"](self, key)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise InputError(
            "elements of sparse arrays cannot be assigned; make another one (ln.sparse), or assign "
            "to x.todense()"
        )

    def __iter__(self) -> Any:
        return iter([self[place] for place in range(len(self))])

    def __len__(self) -> int:
        return self.shape[0]

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        form = form_of(self.persist())
        return _rebuilt, (form.layout, form.dtype, form.fill, form.places, _stored_tiles(form))

    def __matmul__(self, other: Any) -> Any:
        other = operators.taken(other)
        return other if other is NotImplemented else matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        other = operators.taken(other)
        return other if other is NotImplemented else matmul(other, self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "__call__" and ufunc.signature is None:
            return elementwise.call(ufunc, inputs, keywords)
        return super().__array_ufunc__(ufunc, method, *inputs, **keywords)

    def __repr__(self) -> str:
        form = form_of(self)
        size = human(int(form.sizes.sum()))
        return f"Array(shape={form.shape}, dtype={form.dtype}, {self.storage}, about {size})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"


_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
for _name, _ufunc in _OPERATORS.items():
    setattr(SparseArray, f"__{_name}__", _binary(_ufunc))
    setattr(SparseArray, f"__r{_name}__", _binary(_ufunc, reverse=True))
    setattr(SparseArray, f"__i{_name}__", _binary(_ufunc))
for _name, _ufunc in _COMPARISONS.items():
    setattr(SparseArray, f"__{_name}__", _binary(_ufunc))
for _name, _ufunc in _UNARY.items():
    setattr(SparseArray, f"__{_name}__", lambda self, ufunc=_ufunc: elementwise.call(ufunc, (self,), {}))


def _stored_tiles(form: Form) -> list[NDArray[np.uint8]]:
    """The stored blocks, computed if they are not there."""
    if isinstance(form.packed, Stored):
        tiles = form.packed.tiles.tiles
    else:
        expression = Arrays([form.packed])
        _, made = run(expression, current_engine())
        tiles = made.tiles(expression.names[0])
    return [tiles[(number,)] for number in range(len(form.places))]


def _rebuilt(layout: Any, dtype: Any, fill: Any, places: Any, tiles: Any) -> Any:
    return sparse_array(Form(layout, dtype, fill, places, in_memory(tiles)))
