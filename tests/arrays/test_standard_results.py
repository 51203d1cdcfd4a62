"""What the functions of the array API standard compute, against NumPy: in one tile and in several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from standard_names import BINARY, UNARY
from strategies import tiled

import linnet as ln

pytestmark = pytest.mark.slow

DTYPES = ("?", "i1", "i8", "u1", "u8", "f4", "f8", "c8", "c16")
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0)


def sample(dtype: str) -> np.ndarray[Any, Any]:
    """Elements of a dtype, with those of which the standard says what has to come out."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False, True])
    if kind in "iu":
        limits = np.iinfo(dtype)
        return np.array([0, 1, 2, 7, limits.max, limits.min, limits.max - 1], dtype)
    if kind == "f":
        return np.array(SPECIAL, dtype)
    return np.array([complex(a, b) for a, b in itertools.product(SPECIAL[:6], repeat=2)], dtype)


def agrees(ours: Any, numpys: Any, tolerance: float = 0.0) -> None:
    """The same shapes, dtypes and elements, signs of zeros included; of tuples each part."""
    if isinstance(numpys, tuple | list):
        assert len(ours) == len(numpys)
        for one, other in zip(ours, numpys, strict=True):
            agrees(one, other, tolerance)
        return
    assert isinstance(ours, ln.Array)
    got, want = np.asarray(ours), np.asarray(numpys)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if tolerance and want.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        return
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind in "fc":
        for part in (np.real, np.imag):
            one, other = part(got), part(want)
            numbers = ~np.isnan(other)
            assert (np.signbit(one) == np.signbit(other))[numbers].all()


def cut(x: Any, chunks: int | None) -> Any:
    """Arguments as arrays of ours: each NumPy array among them, in one tile or in tiles of a length."""
    if isinstance(x, np.ndarray):
        return tiled(x, chunks)
    return type(x)(cut(each, chunks) for each in x) if type(x) in (tuple, list) else x


CUTS = pytest.mark.parametrize("chunks", [None, 1, 2])
LONGER_CUTS = pytest.mark.parametrize("chunks", [None, 5])
NUMPYS = {
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}


def accepts(function: Callable[..., Any], *items: Any) -> bool:
    """Whether NumPy has a loop for these dtypes."""
    try:
        function(*(item[:0] for item in items))
    except TypeError:
        return False
    return True


@LONGER_CUTS
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_one_array(name: str, chunks: int | None) -> None:
    function = getattr(np, NUMPYS.get(name, name))
    for dtype in DTYPES:
        x = sample(dtype)
        if name == "sign" and x.dtype.kind == "c":
            x = x[~np.isnan(x)]  # the standard and NumPy differ there; see below
        if accepts(function, x):
            agrees(getattr(ln, name)(tiled(x, chunks)), function(x))


@LONGER_CUTS
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_two_arrays(name: str, chunks: int | None) -> None:
    function = getattr(np, NUMPYS.get(name, name))
    for one, other in (*zip(DTYPES, DTYPES, strict=True), ("i1", "u1"), ("f4", "f8"), ("f8", "c8")):
        x, y = sample(one)[:8, None], sample(other)[:8]
        if y.dtype.kind in "iu" and ("shift" in name or name == "pow"):
            y = np.abs(y) % 5
        if name == "pow":  # powers of -inf: NumPy's answer depends on how many there are
            x = x[~np.isneginf(x.real)][:, None]
        if accepts(function, x, y):
            agrees(getattr(ln, name)(tiled(x, chunks), tiled(y, chunks)), function(x, y))


A = np.arange(24.0).reshape(2, 3, 4) % 7 - 3
M = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 2.0], [0.5, 2.0, 6.0]])
STACK = np.stack([M, M + np.eye(3)])
Z = np.fft.fft(A)
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("argsort", (A,), {"axis": 1, "descending": True}, np.argsort(-A, 1, stable=True)),
    ("sort", (A,), {"axis": 1, "descending": True}, -np.sort(-A, 1)),
    ("broadcast_arrays", (A, A[0]), {}, np.broadcast_arrays(A, A[0])),
    ("broadcast_to", (A[0], (2, 3, 4)), {}, np.broadcast_to(A[0], (2, 3, 4))),
    ("clip", (A, -1, 2.5), {}, A.clip(-1, 2.5)),
    ("concat", ([A, A[:1]],), {}, np.concatenate([A, A[:1]])),
    ("concat", ((A, A),), {"axis": None}, np.concatenate([A, A], axis=None)),
    (
        "cumulative_sum",
        (A,),
        {"axis": 2, "include_initial": True},
        np.pad(A.cumsum(2), [(0, 0), (0, 0), (1, 0)]),
    ),
    ("diff", (A,), {"n": 2}, np.diff(A, 2)),
    ("expand_dims", (A,), {"axis": (0, -1)}, A[None, ..., None]),
    ("flip", (A,), {}, np.flip(A)),
    ("isin", (A, np.array([1.0, 2.0])), {"invert": True}, np.isin(A, [1.0, 2.0], invert=True)),
    ("matrix_transpose", (A,), {}, A.swapaxes(1, 2)),
    (
        "meshgrid",
        (A[0, 0], A[0, 1, :2]),
        {"indexing": "ij"},
        np.meshgrid(A[0, 0], A[0, 1, :2], indexing="ij"),
    ),
    ("moveaxis", (A, 0, -1), {}, np.moveaxis(A, 0, -1)),
    ("nonzero", (A,), {}, np.nonzero(A)),
    ("permute_dims", (A, (2, 0, 1)), {}, A.transpose(2, 0, 1)),
    ("repeat", (A, np.array([1, 0, 2])), {"axis": 1}, A.repeat([1, 0, 2], 1)),
    ("reshape", (A, (4, -1)), {}, A.reshape(4, -1)),
    ("roll", (A, (1, 2)), {"axis": (0, 2)}, np.roll(A, (1, 2), (0, 2))),
    ("searchsorted", (np.arange(5.0), 2.0), {"side": "right"}, np.intp(3)),
    ("squeeze", (A[:1], 0), {}, A[0]),
    ("stack", ([A, A],), {"axis": -1}, np.stack([A, A], -1)),
    ("take", (A, np.array([2, 0])), {"axis": 1}, A[:, [2, 0]]),
    ("take_along_axis", (A, A.argsort(1)), {"axis": 1}, np.sort(A, 1)),
    ("tile", (A, (2, 1)), {}, np.tile(A, (2, 1))),
    ("tril", (A,), {"k": -1}, np.tril(A, -1)),
    ("triu", (A,), {"k": 1}, np.triu(A, 1)),
    ("unique_all", (A,), {}, np.unique_all(A)),
    ("unique_counts", (A,), {}, np.unique_counts(A)),
    ("unique_inverse", (A,), {}, np.unique_inverse(A)),
    ("unique_values", (A,), {}, np.unique(A)),
    ("unstack", (A,), {"axis": 1}, np.unstack(A, axis=1)),
    ("vecdot", (Z, Z), {"axis": 1}, (Z.conj() * Z).sum(1)),
    ("where", (A > 0, A, 7.0), {}, np.where(A > 0, A, 7.0)),
    ("tensordot", (A, A), {"axes": ((1, 2), (1, 2))}, np.tensordot(A, A, ((1, 2), (1, 2)))),
    ("matmul", (A, M[0, 0] * A.swapaxes(1, 2)), {}, np.matmul(A, 4 * A.swapaxes(1, 2))),
    *(
        (name, (A,), {"axis": (0, 2), "keepdims": True}, getattr(np, name)(A, axis=(0, 2), keepdims=True))
        for name in ("all", "any", "count_nonzero", "max", "mean", "min", "prod", "sum")
    ),
    *(
        (name, (A,), {"axis": 1, "correction": 1}, getattr(np, name)(A, axis=1, correction=1))
        for name in ("std", "var")
    ),
    *(
        (name, (A,), {"axis": 1, "keepdims": True}, getattr(np, name)(A, axis=1, keepdims=True))
        for name in ("argmax", "argmin")
    ),
    ("linalg.cholesky", (STACK,), {"upper": True}, np.linalg.cholesky(STACK, upper=True)),
    ("linalg.cross", (M, M[0]), {}, np.linalg.cross(M, M[:1] + 0 * M)),
    ("linalg.det", (STACK,), {}, np.linalg.det(STACK)),
    ("linalg.diagonal", (A,), {"offset": 1}, np.linalg.diagonal(A, offset=1)),
    ("linalg.eigvals", (M,), {}, np.linalg.eigvals(M).astype("c16")),
    ("linalg.eigvalsh", (STACK,), {}, np.linalg.eigvalsh(STACK)),
    ("linalg.inv", (STACK,), {}, np.linalg.inv(STACK)),
    (
        "linalg.matrix_norm",
        (A,),
        {"ord": "nuc", "keepdims": True},
        np.linalg.matrix_norm(A, ord="nuc", keepdims=True),
    ),
    (
        "linalg.matrix_norm",
        (M,),
        {"ord": 2, "keepdims": True},
        np.linalg.matrix_norm(M, ord=2, keepdims=True),
    ),
    ("linalg.matrix_power", (STACK, -2), {}, np.linalg.matrix_power(STACK, -2)),
    ("linalg.matrix_rank", (A,), {"rtol": 0.1}, np.linalg.matrix_rank(A, rtol=0.1)),
    ("linalg.outer", (A[0, 0], A[0, 1]), {}, np.outer(A[0, 0], A[0, 1])),
    ("linalg.pinv", (A,), {}, np.linalg.pinv(A)),
    ("linalg.slogdet", (STACK,), {}, tuple(np.linalg.slogdet(STACK))),
    ("linalg.solve", (STACK, M[0]), {}, np.linalg.solve(STACK, M[0])),
    ("linalg.svdvals", (A,), {}, np.linalg.svdvals(A)),
    ("linalg.trace", (A,), {"offset": 1}, np.linalg.trace(A, offset=1)),
    ("linalg.vector_norm", (A[0, 0],), {}, np.linalg.vector_norm(A[0, 0])),
    ("linalg.vector_norm", (A,), {"axis": (0, 1), "ord": 3}, np.linalg.vector_norm(A, axis=(0, 1), ord=3)),
    *(
        (
            f"fft.{name}",
            (Z if name in ("irfft", "hfft") else A,),
            {"n": 6, "axis": 1, "norm": "ortho"},
            getattr(np.fft, name)(Z if name in ("irfft", "hfft") else A, n=6, axis=1, norm="ortho"),
        )
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ),
    *(
        (f"fft.{name}", (Z,), {"s": (2, 5), "axes": (0, 2)}, getattr(np.fft, name)(Z, s=(2, 5), axes=(0, 2)))
        for name in ("fftn", "ifftn", "irfftn")
    ),
    *((f"fft.{name}", (A,), {}, getattr(np.fft, name)(A)) for name in ("rfftn", "fftshift", "ifftshift")),
]


@CUTS
@pytest.mark.parametrize(("name", "items", "keywords", "wanted"), CASES, ids=[case[0] for case in CASES])
def test_functions_give_what_numpy_gives(
    name: str, items: tuple[Any, ...], keywords: dict[str, Any], wanted: Any, chunks: int | None
) -> None:
    function: Any = ln
    for part in name.split("."):
        function = getattr(function, part)
    agrees(function(*cut(items, chunks), **keywords), wanted, tolerance=1e-10)


@CUTS
def test_factors_multiply_to_what_was_factored(chunks: int | None) -> None:
    x, square = tiled(A, chunks), tiled(M, chunks)
    for mode, width in (("reduced", 3), ("complete", 3)):
        q, r = ln.linalg.qr(x, mode=mode)
        assert q.shape == (2, 3, width)
        np.testing.assert_allclose(q @ r, A, atol=1e-12)
    u, s, vh = ln.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose((u * s[:, None, :]) @ vh, A, atol=1e-12)
    assert ln.linalg.svd(x).Vh.shape == (2, 4, 4)
    for values, vectors in (ln.linalg.eigh(square), ln.linalg.eig(square)):
        np.testing.assert_allclose(M @ np.asarray(vectors), np.asarray(vectors * values), atol=1e-12)
