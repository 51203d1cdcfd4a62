"""What users hand to `fit` and `predict`, as tables in tiles of rows.

    NumPy, lists, pandas, polars    checked by scikit-learn, then shared, not copied
    sparse (SciPy)                  made dense a block of rows at a time: memory holds what is stored and the
    blocks
                                    in use, never the dense table
    ln.Array                        stays lazy: files, results of other expressions, arrays on a cluster
    pathlib.Path                    `.npy`, `.zarr`, `.csv`, `.parquet`: read by tiles, as `ln.from_npy` and
    others do

Of lazy tables nothing is looked at before the first pass: NaN and infinity are found there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, validate_data  # pyright: ignore

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.expression import chunking
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.lowering.evaluate import computed
from linnet.bridges.sparse_arrays import converted
from linnet.errors import InputError
from linnet.models.design import by_rows
from linnet.tiles import Layout

_READERS = {".npy": "from_npy", ".zarr": "from_zarr", ".csv": "read_csv", ".parquet": "read_parquet"}


def lazy(x: Any) -> bool:
    """Whether it is an array of ours."""
    return isinstance(x, ArrayBase)


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix of SciPy's."""
    return bool(sparse.issparse(x))


def _left_lazy(x: Any) -> bool:
    """Whether a table is an array of ours, or a file."""
    return isinstance(x, ArrayBase | Path)


def _lazy(x: Any) -> Any:
    if not isinstance(x, Path):
        return x
    reader = _READERS.get(x.suffix)
    if reader is None:
        raise InputError(
            f"a table in the file {x.name} cannot be read by its name; give a path that ends in "
            f"{', '.join(_READERS)}, or an array made by ln.from_npy, ln.read_csv and the like"
        )
    from linnet.arrays.namespace import names

    return names()[reader](x)


def check_table(estimator: Any, x: Any, *, reset: bool) -> Any:
    """A lazy table of numbers with the columns that the model knows."""
    x = _lazy(x)
    if x.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {x.ndim}D array instead. Reshape your data using array.reshape(-1, "
            f"1) if "
            "your data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if x.dtype.kind not in "biuf":
        raise ValueError(f"a table of {x.dtype} was given; models take booleans, integers and floats")
    if not x.shape[0] or not x.shape[1]:
        raise ValueError(
            f"Found array with {x.shape[0]} sample(s) and {x.shape[1]} feature(s); 1 is required"
        )
    if reset:
        estimator.n_features_in_ = x.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif x.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {x.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return x


def checked(estimator: Any, x: Any, *, reset: bool, sparse_too: bool = True, **checks: Any) -> Any:
    """A table: an array of ours as it is, all else as scikit-learn checks it (NumPy's array, or CSR)."""
    if _left_lazy(x):
        return check_table(estimator, x, reset=reset)
    accept = "csr" if sparse_too else False
    checks = {"dtype": [np.float64, np.float32], **checks}
    return validate_data(estimator, x, reset=reset, accept_sparse=accept, **checks)  # pyright: ignore


def checked_pair(
    estimator: Any,
    x: Any,
    y: Any,
    *,
    sparse_too: bool = True,
    numeric: bool = True,
    reset: bool = True,
    **checks: Any,
) -> tuple[Any, Any]:
    """A table and what belongs to its rows."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    if not _left_lazy(x):
        accept = "csr" if sparse_too else False
        checks = {"dtype": [np.float64, np.float32], "y_numeric": numeric, **checks}
        if lazy(y):
            y = y.compute()  # the table is in this process: so much may be too
        return validate_data(estimator, x, y, reset=reset, accept_sparse=accept, **checks)  # pyright: ignore
    x = check_table(estimator, x, reset=reset)
    if not lazy(y):
        y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 and not (checks.get("multi_output") and y.ndim == 2):
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if y.shape[0] != x.shape[0]:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[x.shape[0], y.shape[0]]}"
        )
    return x, y


def rows(x: Any) -> Node:
    """A checked table as a node in tiles of whole rows."""
    if lazy(x):
        return by_rows(x.__node__)
    if is_sparse(x):
        size = max(1, chunking.target() // (8 * x.shape[1]))
        return converted(x, (size, -1)).__node__
    return by_rows(Source(np.asarray(x)))


def stored(x: Any, layout: Layout) -> tuple[Node, Node, Node] | None:
    """A sparse table as what is stored: elements, the column of each, and how many each row has.

    Cut as the rows of the layout are. None for a dense table.
    """
    if not is_sparse(x):
        return None
    table = x.tocsr(copy=True)
    table.sum_duplicates()
    edges = np.asarray(layout.boundaries[0])
    values, columns, counts = table.data, table.indices.astype(np.int64), np.diff(table.indptr)
    ends = table.indptr[edges].astype(np.int64)
    empty = np.flatnonzero(np.diff(ends) == 0)  # a tile is not empty: a zero is stored in it
    if len(empty):
        values, columns = (np.insert(each, ends[empty], 0) for each in (values, columns))
        counts[edges[empty]] += 1
        ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[edges]
    cut = Layout((tuple(ends.tolist()),))
    rows_ = Layout((layout.boundaries[0],))
    return Source(values, cut), Source(columns, cut), Source(counts.astype(np.int64), rows_)


def weights(sample_weight: Any, x: Any, count: int) -> Any:
    """Weights of rows as doubles; None if there are none, or all are 1."""
    if sample_weight is None:
        return None
    if lazy(sample_weight):
        if sample_weight.shape != (count,):
            raise ValueError(f"sample_weight has shape {sample_weight.shape}; expected ({count},)")
        _check_weights(sample_weight)
        return sample_weight
    if isinstance(sample_weight, int | float):
        if not 0 < sample_weight < np.inf:
            raise ValueError(f"sample_weight must be positive and finite; got {sample_weight}")
        return np.full(count, float(sample_weight))
    like = np.empty((count, 1)) if lazy(x) else x
    found = _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(found)


def _check_weights(sample_weight: Any) -> None:
    """Refuse lazy weights that no row can have: one reading of that column."""
    low, total = computed([sample_weight.min().__node__, sample_weight.sum().__node__])
    if not np.isfinite(total):
        raise ValueError("sample_weight contains NaN or infinity; give finite weights of at least 0")
    if low < 0:
        raise ValueError(f"Negative values in data passed to `sample_weight`: the least is {float(low):g}")
    if total == 0:
        raise ValueError("Sample weights must contain at least one non-zero number.")


def offsets(offset: Any, count: int) -> Any:
    """What is added to the predictor of each row; lazy ones are looked at when rows are read."""
    if offset is None:
        return None
    found = offset if lazy(offset) else np.asarray(offset, np.float64)
    if found.shape != (count,):
        raise ValueError(f"offset must be {count} finite numbers, one for each row; got shape {found.shape}")
    if not lazy(found) and not np.isfinite(found).all():
        raise ValueError("offset contains NaN or infinity; fill these rows, or give them no weight and 0")
    return found


def mapped_rows(node: Node, coef: NDArray[Any], intercept: NDArray[Any] | float) -> Any:
    """`x @ coef + intercept`, lazily."""
    product = wrap(node) @ wrap(Source(np.ascontiguousarray(coef)))
    return product + wrap(Source(np.asarray(intercept)))


def predictor(estimator: Any, x: Any, coef: NDArray[Any], intercept: Any) -> tuple[Any, bool]:
    """`x @ coef + intercept`, and whether it is lazy: it is for a lazy table, otherwise NumPy's."""
    x = checked(estimator, x, reset=False)
    if lazy(x):
        return mapped_rows(x.__node__, coef, intercept), True
    return np.asarray(x @ coef) + intercept, False


def summed(values: Any, weight: Any = None) -> float:
    """The (weighted) sum of a column, of ours or of NumPy's."""
    if not lazy(values) and not lazy(weight):
        return float(np.sum(values) if weight is None else np.dot(weight, values))
    total = values.sum() if weight is None else (values * weight).sum()
    return float(total.compute() if lazy(total) else total)
