"""What functions of users are on sparse arrays: one rule each, by the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from linnet.arrays.elements import creation, means_and_variances, reductions, shapes
from linnet.arrays.elements.core import NUMPY, ArrayBase, as_node, axes_of, axis_of, wrap
from linnet.arrays.expression.builders import permuted as permuted_node
from linnet.arrays.functions import contractions, einsum
from linnet.errors import InputError
from linnet.machine.float_errors import quietly
from linnet.sparse_arrays.array import RULES, SparseArray, form_of, sparse_array
from linnet.sparse_arrays.form import Form
from linnet.sparse_arrays.operations import (
    beside_dense,
    cut,
    dense,
    folded,
    mapped,
    paired,
    permuted,
    recut_form,
    times_dense,
    times_sparse,
)
from linnet.tiles.sparse_tile import KINDS


def rule(*functions: Any) -> Callable[[Any], Any]:
    """Mark what functions of users are on sparse arrays."""

    def mark(made: Any) -> Any:
        for each in functions:
            while hasattr(each, "__wrapped__"):
                each = each.__wrapped__
            RULES[each] = made
        return made

    return mark


# ---- element by element

_ANNIHILATING = {
    "multiply": (0,),
    "logical_and": (0,),
    "bitwise_and": (0,),
    "add": (np.inf, -np.inf),
}
"""What an absent element must be, for the result to be that whatever stands beside it."""


def _annihilates(ufunc: np.ufunc, fill: Any) -> bool:
    return any(fill == each for each in _ANNIHILATING.get(ufunc.__name__, ()))


@rule(np.ufunc)
def _ufunc(ufunc: np.ufunc) -> Any:
    """The rule of a ufunc."""
    if ufunc.nout != 1 or ufunc.signature is not None or ufunc.nin > 2 or not hasattr(np, ufunc.__name__):
        return None

    def applied(*items: Any, **keywords: Any) -> Any:
        if keywords:
            raise InputError(f"{ufunc.__name__} of sparse arrays takes no {', '.join(keywords)}=")
        return _elementwise(ufunc, items)

    return applied


def _elementwise(ufunc: np.ufunc, items: Sequence[Any]) -> Any:
    sparse = [isinstance(each, SparseArray) for each in items]
    items = [each if is_sparse else _number(each) for each, is_sparse in zip(items, sparse, strict=True)]
    kinds = tuple(each.dtype if hasattr(each, "dtype") else type(each) for each in items)
    kinds = tuple(np.dtype(np.bool) if each is bool else each for each in kinds)
    loop = ufunc.resolve_dtypes((*kinds, None))
    if any(each.kind not in KINDS for each in loop):
        raise InputError(f"{ufunc.__name__} gives {loop[-1]}; sparse arrays hold Booleans and numbers")
    if all(sparse):
        return _of_sparse(ufunc, [form_of(each) for each in items], loop)
    place = sparse.index(True)
    form, beside = form_of(items[place]), items[1 - place]
    if isinstance(beside, ArrayBase) or np.ndim(beside):
        return _with_dense(ufunc, form, beside, bool(place), loop[-1])
    number = (
        np.asarray(beside).astype(loop[1 - place])[()]
        if not isinstance(beside, int)
        else np.array(beside, loop[1 - place])[()]
    )
    operands = [number, None] if place else [None, number]
    fill = _value(ufunc, [form.fill if each is None else each for each in operands], loop[-1])
    return sparse_array(mapped(form, ufunc.__name__, operands, loop[-1], fill))


def _number(item: Any) -> Any:
    """A number as it is; an array without axes as a number of NumPy's, if it is there."""
    if isinstance(item, ArrayBase):
        array: Any = item
        return array if array.shape else array.compute()
    if isinstance(item, bool | int | float | complex | np.generic):
        return item
    array = np.asarray(item)
    return array if array.ndim else array[()]


def _value(ufunc: np.ufunc, operands: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    return np.asarray(quietly(ufunc, *operands)).astype(dtype)[()]


def _of_sparse(ufunc: np.ufunc, forms: Sequence[Form], loop: Sequence[np.dtype[Any]]) -> Any:
    fill = _value(ufunc, [form.fill for form in forms], loop[-1])
    if len(forms) == 1:
        return sparse_array(mapped(forms[0], ufunc.__name__, [None], loop[-1], fill))
    one, other = forms
    if one.shape != other.shape:
        raise InputError(
            f"{ufunc.__name__} of sparse arrays of shapes {one.shape} and {other.shape}: sparse arrays are "
            "not broadcast; give one of them dense (x.todense())"
        )
    both = all(_annihilates(ufunc, form.fill) for form in forms) and bool(fill == one.fill == other.fill)
    return sparse_array(paired(one, recut_form(other, one.layout), ufunc.__name__, fill, both))


def _with_dense(ufunc: np.ufunc, form: Form, beside: Any, swapped: bool, dtype: np.dtype[Any]) -> Any:
    node = as_node(beside)
    if np.broadcast_shapes(form.shape, node.shape) != form.shape:
        raise InputError(
            f"{ufunc.__name__}: a sparse array of shape {form.shape} is not broadcast to that of a dense "
            f"one, {node.shape}; give x.todense()"
        )
    if not _annihilates(ufunc, form.fill):
        raise InputError(
            f"{ufunc.__name__} of a sparse array with fill {form.fill} and a dense one is dense: absent "
            "elements would be different from one another; write x.todense() if that is meant"
        )
    return sparse_array(beside_dense(form, node, ufunc.__name__, dtype.type(form.fill), swapped))


def _astype(x: Any, dtype: Any, **_: Any) -> Any:
    form, kind = form_of(x), np.dtype(dtype)
    if kind.kind not in KINDS:
        raise InputError(f"sparse arrays hold Booleans and numbers, not {kind}")
    fill = quietly(np.asarray(form.fill).astype, kind)[()]
    return sparse_array(mapped(form, "astype", [None], kind, fill))


RULES["astype"] = _astype
rule(import_module("linnet.arrays.functions.dtypes").astype)(_astype)


@rule(creation.copy)
def _copy(x: Any, *_: Any, **__: Any) -> Any:
    return x.copy()


@rule(creation.asarray)
def _asarray(x: Any, dtype: Any = None, *_: Any, **__: Any) -> Any:
    return x if dtype is None or np.dtype(dtype) == x.dtype else _astype(x, dtype)


# ---- reductions

_FOLDS = {
    "sum": "add",
    "prod": "multiply",
    "min": "minimum",
    "max": "maximum",
    "any": "logical_or",
    "all": "logical_and",
}


def _reduction(name: str) -> Any:
    def reduced(
        x: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True, **others: Any
    ) -> Any:
        if where is not True or any(
            value is not None and value is not np._NoValue for value in others.values()
        ):
            raise InputError(f"{name} of a sparse array takes axis=, dtype= and keepdims= only")
        return _folded(name, x, axis, dtype, keepdims is True)

    return reduced


def _folded(name: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    if name in ("any", "all"):
        x = x if x.dtype.kind == "b" else _elementwise(np.not_equal, (x, 0))
    form = form_of(x)
    axes = axes_of(axis, form.ndim)
    function = getattr(np, name)
    if name in ("min", "max"):
        if 0 in [form.shape[each] for each in axes]:
            function(np.zeros((0,)))  # NumPy's own error
        inner = form.dtype
        if inner.kind == "c":
            raise InputError(f"{name} of complex sparse arrays is not known; reduce abs(x)")
    else:
        inner = function(np.ones(1, form.dtype), **({} if dtype is None else {"dtype": dtype})).dtype
    fill = np.asarray(form.fill).astype(inner)[()]
    if not axes:
        return x if inner == form.dtype else _astype(x, inner)
    if len(axes) < form.ndim:
        made = wrap(folded(form, _FOLDS[name], axes, fill))
    elif form.ndim == 1:
        made = wrap(folded(permuted(form, (-1, 0)), _FOLDS[name], (1,), fill))[0]
    else:
        rows = wrap(folded(form, _FOLDS[name], axes[1:], fill))
        made = NUMPY[function](rows, **({} if name not in ("sum", "prod") else {"dtype": inner}))
    if keepdims:
        kept = iter(range(form.ndim))
        order = [-1 if each in axes else next(kept) for each in range(form.ndim)]
        made = wrap(permuted_node(made.__node__, tuple(order)))
    return made


for _name in _FOLDS:
    rule(getattr(reductions, _name))(_reduction(_name))


@rule(means_and_variances.mean)
def _mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, **others: Any) -> Any:
    form = form_of(x)
    count = int(np.prod([form.shape[each] for each in axes_of(axis, form.ndim)], dtype=object))
    if form.dtype.kind in "biu" and dtype is None:
        dtype = np.float64
    total = _reduction("sum")(x, axis, dtype, keepdims, **others)
    return total / count


@rule(reductions.count_nonzero)
def _count(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _folded("sum", _elementwise(np.not_equal, (x, 0)), axis, np.intp, keepdims is True)


# ---- other axes, and parts


@rule(shapes.transpose, shapes.permute_dims)
def _transposed(x: Any, axes: Any = None) -> Any:
    form = form_of(x)
    order = range(form.ndim)[::-1] if axes is None else [axis_of(each, form.ndim) for each in axes]
    if sorted(order) != list(range(form.ndim)):
        raise ValueError(f"axes {axes} are not those of an array of shape {form.shape}, each once")
    return sparse_array(permuted(form, tuple(order)))


RULES["transpose"] = _transposed


@rule(shapes.matrix_transpose)
def _matrix_transposed(x: Any) -> Any:
    return x.mT


@rule(shapes.swapaxes)
def _swapped(x: Any, axis1: int, axis2: int) -> Any:
    order = list(range(x.ndim))
    one, other = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[other] = order[other], order[one]
    return _transposed(x, order)


@rule(shapes.moveaxis)
def _moved(x: Any, source: Any, destination: Any) -> Any:
    lengths = np.broadcast_to(False, range(x.ndim))  # axes that their lengths tell apart
    return _transposed(x, np.moveaxis(lengths, source, destination).shape)


@rule(shapes.expand_dims)
def _expanded(x: Any, axis: Any = 0) -> Any:
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    new = axes_of(given, x.ndim + len(given))
    kept = iter(range(x.ndim))
    order = [-1 if each in new else next(kept) for each in range(x.ndim + len(given))]
    return sparse_array(permuted(form_of(x), order))


def _getitem(x: Any, key: Any) -> Any:
    form = form_of(x)
    given = key if isinstance(key, tuple) else (key,)
    dots = [place for place, each in enumerate(given) if each is Ellipsis]
    count = sum(each is not None and each is not Ellipsis for each in given)
    if len(dots) > 1 or count > form.ndim:
        raise IndexError(f"index {key!r} for a sparse array of shape {form.shape}: too many indices")
    place = dots[0] if dots else len(given)
    rest = (slice(None),) * (form.ndim - count)
    items = [*given[:place], *rest, *given[place + 1 :]]
    picked: list[int | range] = []
    for item in [each for each in items if each is not None]:
        length = form.shape[len(picked)]
        if isinstance(item, slice):
            picked.append(range(*item.indices(length)))
        elif hasattr(item, "__index__") and not isinstance(item, bool | np.bool):
            index = item.__index__()
            if not -length <= index < length:
                raise IndexError(f"index {index} is out of bounds for axis {len(picked)} with size {length}")
            picked.append(index % length)
        else:
            raise InputError(
                f"sparse arrays are indexed by numbers and slices, not by {type(item).__name__}; "
                "write x.todense()[...] if a dense array is meant"
            )
    if picked and all(isinstance(each, int) for each in picked):
        narrow = [range(each, each + 1) for each in picked if isinstance(each, int)]
        made = wrap(dense(cut(form, narrow)))[(0,) * form.ndim]
        return made[tuple(None for each in items if each is None)] if None in items else made
    if any(isinstance(each, int) or each != range(n) for each, n in zip(picked, form.shape, strict=True)):
        form = cut(form, picked)
    if any(each is None for each in items):
        kept = iter(range(form.ndim))
        order = [
            -1 if each is None else next(kept) for each in items if each is None or isinstance(each, slice)
        ]
        form = permuted(form, order)
    return sparse_array(form)


RULES["getitem"] = _getitem


# ---- products


@rule(contractions.matmul, contractions.dot)
def _matmul(x1: Any, x2: Any, **keywords: Any) -> Any:
    if keywords:
        raise InputError(f"products of sparse arrays take no {', '.join(keywords)}=")
    for each in (x1, x2):
        if isinstance(each, SparseArray) and each.fill != 0:
            raise InputError(
                f"a sum of products needs absent elements that are 0; those of this array are {each.fill}: "
                "write x.todense() @ y, or loops with min, max or the monoid that is meant (ln.einop)"
            )
    boolean = all(getattr(each, "dtype", None) == np.bool for each in (x1, x2))
    return semiring(x1, x2, *(("logical_or", "logical_and") if boolean else ("add", "multiply")))


def semiring(x1: Any, x2: Any, plus: str, times: str) -> Any:
    """A product of vectors and matrices of which one is sparse; fills are right, others have seen to it."""
    items: list[Any] = [each if isinstance(each, ArrayBase) else wrap(as_node(each)) for each in (x1, x2)]
    one, other = items
    if not (1 <= one.ndim <= 2 and 1 <= other.ndim <= 2):
        raise InputError(
            f"products with sparse arrays are of vectors and matrices, not of shapes {one.shape} and "
            f"{other.shape}"
        )
    if one.shape[-1] != other.shape[0]:
        raise ValueError(
            f"matmul: shapes {one.shape} and {other.shape} do not fit: {one.shape[-1]} and {other.shape[0]}"
        )
    dtype = getattr(np, times).resolve_dtypes((one.dtype, other.dtype, None))[-1]
    plain = next(each for each in items if isinstance(each, SparseArray)).fill
    fill = np.asarray(plain).astype(dtype)[()]
    left = _as_matrix(one, 0)
    right = _as_matrix(other, 1)
    if isinstance(left, SparseArray) and isinstance(right, SparseArray):
        made = sparse_array(times_sparse(form_of(left), form_of(right), plus, times, fill))
    elif isinstance(left, SparseArray):
        made = wrap(times_dense(form_of(left), right.__node__, plus, times, fill))
    else:
        turned = times_dense(permuted(form_of(right), (1, 0)), left.T.__node__, plus, times, fill)
        made = wrap(turned).T
    if one.ndim == 2 and other.ndim == 2:
        return made
    key: list[Any] = []
    key += [slice(None)] if one.ndim == 2 else [0]
    key += [slice(None)] if other.ndim == 2 else [0]
    return made[tuple(key)]


def _as_matrix(array: Any, new: int) -> Any:
    """A vector as a row (new axis 0) or a column (1)."""
    if array.ndim == 2:
        return array
    return array[None, :] if new == 0 else array[:, None]


@rule(einsum.einsum)
def _einsum(text: Any, *operands: Any, **keywords: Any) -> Any:
    if not isinstance(text, str) or len(operands) != 2 or "." in text:
        raise InputError("einsum with sparse arrays takes letters for two operands, as in 'ij,jk->ik'")
    ins, arrow, out = text.replace(" ", "").partition("->")
    letters = ins.split(",")
    if not arrow or len(letters) != 2 or any(len(set(each)) != len(each) for each in [*letters, out]):
        raise InputError(
            f"einsum {text!r} with sparse arrays: each letter once in an operand, and a result after ->"
        )
    order = (0, 1) if isinstance(operands[0], SparseArray) else (1, 0)
    one, other = (operands[place] for place in order)
    mine, theirs = (letters[place] for place in order)
    if one.fill != 0 or (isinstance(other, SparseArray) and other.fill != 0):
        raise InputError("a sum of products needs absent elements that are 0")
    shared = [each for each in mine if each in theirs and each not in out]
    if set(theirs) <= set(mine) and not (len(mine) == 2 and len(theirs) == 1 and shared):
        if isinstance(other, SparseArray) and set(theirs) != set(mine):
            other = other.todense()
        other = other if isinstance(other, ArrayBase) else wrap(as_node(other))
        turned = NUMPY[np.transpose](other, [theirs.index(each) for each in mine if each in theirs])
        if set(theirs) != set(mine):
            turned = wrap(
                permuted_node(
                    turned.__node__,
                    tuple(
                        [each for each in mine if each in theirs].index(each) if each in theirs else -1
                        for each in mine
                    ),
                )
            )
        made, have = _elementwise(np.multiply, (one, turned)), mine
        gone = tuple(place for place, each in enumerate(have) if each not in out)
        if gone:
            made = _folded("sum", made, gone, made.dtype, False)
        have = [each for each in have if each in out]
        return made if have == list(out) else made.transpose(*[have.index(each) for each in out])
    if len(shared) != 1 or len(mine) != 2 or len(theirs) > 2:
        raise InputError(f"einsum {text!r} with sparse arrays: matrices and vectors with one letter summed")
    (k,) = shared
    left = one if mine[1] == k else one.T
    right = other if theirs[0] == k else NUMPY[np.transpose](other)
    have = [each for each in mine + theirs if each != k]
    made = _matmul(left, right)
    return made if have == list(out) else made.T
