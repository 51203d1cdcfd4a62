"""Singular values and vectors, eigenvalues and eigenvectors of lazy arrays."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from linnet.algorithms import eigh as eigh_programs
from linnet.algorithms import qr as qr_programs
from linnet.algorithms import svd as svd_programs
from linnet.algorithms.whole import giving
from linnet.arrays.elements.core import NUMPY, wrapped_all
from linnet.arrays.elements.join_and_split import concatenate
from linnet.arrays.elements.whole_axes import gathered, one_tile
from linnet.arrays.linalg.factorisations import QRResult, in_leaves, qr
from linnet.arrays.linalg.generalised_eigenvalues import reduced, restored
from linnet.arrays.linalg.matrices import (
    adjoint,
    by_lapack,
    cut,
    factored,
    is_whole,
    linear,
    made,
    matrices,
    need_room_for_square,
    need_square,
    over_stack,
)
from linnet.errors import InputError
from linnet.kernels.linalg.pivots import real
from linnet.workers.result_types import arranged_in

T = TypeVar("T")
"""Arrays of either kind."""


@arranged_in
class SVDResult(NamedTuple, Generic[T]):
    """As `numpy.linalg.svd` returns it."""

    U: T
    S: T
    Vh: Any


@arranged_in
class EighResult(NamedTuple, Generic[T]):
    """As `numpy.linalg.eigh` returns it."""

    eigenvalues: T
    eigenvectors: Any


@arranged_in
class EigResult(NamedTuple, Generic[T]):
    """Eigenvalues and eigenvectors of a general matrix."""

    eigenvalues: T
    eigenvectors: Any


# ---- singular values


@linear(np.linalg.svd)
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    *,
    tile: int | None = None,
) -> Any:
    """`A = U·diag(S)·Vh`, singular values descending; without `compute_uv` these alone.

    With `full_matrices`, `U` and `Vh` are square; else they have min(M, N) columns and rows. With
    `hermitian`, the matrix is taken for Hermitian, its lower triangle is read, and eigenvalues give the
    singular ones.

    Parameters
    ----------
    a : matrix of any shape, or a stack of them
    full_matrices : whether U and Vh are square
    compute_uv : whether to compute them at all
    hermitian : whether `a` is Hermitian, which takes a shorter way
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    SVDResult with `U`, `S`, `Vh`; without `compute_uv` the singular values

    Examples
    --------
    >>> u, s, vh = svd(np.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> s
    array([4., 3.])
    """
    stack = matrices(a)
    if hermitian:
        need_square(stack, "svd with hermitian=True")
        return _hermitian_svd(stack, tile) if compute_uv else _descending(abs(eigvalsh_of(stack, tile)))
    if not compute_uv:
        return svdvals_of(stack, tile)
    m, n = stack.shape[-2:]
    if full_matrices and qr_programs.is_skinny((max(m, n), min(m, n))) and not is_whole(stack, tile):
        what = (
            "the square U of a matrix of {:,} rows" if m > n else "the square Vh of a matrix of {:,} columns"
        )
        need_room_for_square(max(m, n), stack.itemsize, what, "use full_matrices=False, or svdvals")
    return svd_of(stack, full_matrices, tile)


def _hermitian_svd(stack: Any, tile: int | None) -> SVDResult[Any]:
    """The singular values of a Hermitian matrix are the sizes of its eigenvalues."""
    values, vectors = eigh_of(stack, tile)
    order = np.flip(np.argsort(abs(values), axis=-1), -1)
    ordered = np.take_along_axis(values, order, axis=-1)
    u = np.take_along_axis(vectors, order[..., None, :], axis=-1)
    signs = np.where(ordered < 0, -1, 1).astype(values.dtype)
    return SVDResult(u, abs(ordered), adjoint(u * signs[..., None, :]))


def _descending(values: Any) -> Any:
    return np.flip(np.sort(values, axis=-1), -1)


def svd_of(stack: Any, full: bool, tile: int | None) -> SVDResult[Any]:
    """The decomposition of a matrix, or of each in a stack, in a dtype that BLAS knows."""
    (m, n), dtype = stack.shape[-2:], stack.dtype
    k = min(m, n)
    if is_whole(stack, tile, spectral=True):
        left, right = (m, n) if full else (k, k)
        like = giving(("U", (left, m), dtype), ("O", (k,), real(dtype)), ("N", (right, n), dtype))
        found = by_lapack("svd" if full else "svd_thin", like, stack)
    elif stack.ndim > 2:
        return SVDResult(**over_stack(lambda each: svd_of(each, full, tile)._asdict(), stack))
    elif m < n:
        u, values, vh = svd_of(adjoint(stack), full, tile)
        return SVDResult(adjoint(vh), values, adjoint(u))
    elif qr_programs.is_skinny(stack.shape):
        q, r = qr(stack, "complete", tile=tile) if full else _tall_qr(stack, tile)
        u, values, vh = svd_of(r[:n], False, None)
        return SVDResult(concatenate([q[:, :n] @ u, q[:, n:]], axis=1) if full else q @ u, values, vh)
    else:
        matrix = cut(stack, "svd", tile)
        found = made(svd_programs.recipe(matrix.layout, dtype, full=full), matrix)
    return SVDResult(found["U"].mT, found["O"], found["N"])


def _tall_qr(a: Any, tile: int | None) -> QRResult[Any]:
    """`Q` and `R` of a skinny matrix, by a tree."""
    matrix = in_leaves(a, tile)
    found = made(qr_programs.factors(matrix.layout, matrix.dtype, skinny=True), matrix)
    return QRResult(found["O"], found["R"])


@linear(np.linalg.svdvals)
def svdvals(a: Any, *, tile: int | None = None) -> Any:
    """The singular values of a matrix, descending.

    Parameters
    ----------
    a : matrix of any shape, or a stack of them
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of real numbers, descending

    Examples
    --------
    >>> svdvals([[3, 0], [0, 4]])
    array([4., 3.])
    """
    return svdvals_of(matrices(a), tile)


def svdvals_of(stack: Any, tile: int | None) -> Any:
    """The singular values of the same."""
    m, n = stack.shape[-2:]
    if is_whole(stack, tile, spectral=True):
        return by_lapack("svdvals", giving(("O", (min(m, n),), real(stack.dtype))), stack)["O"]
    if stack.ndim > 2:
        return over_stack(lambda each: svdvals_of(each, tile), stack)
    if m < n:
        return svdvals_of(adjoint(stack), tile)
    return (
        svdvals_of(_tall_qr(stack, tile).R, None)
        if qr_programs.is_skinny(stack.shape)
        else svd_of(stack, False, tile).S
    )


# ---- eigenvalues


@linear(np.linalg.eigh)
def eigh(
    a: Any, b: Any = None, UPLO: str = "L", *, type: int = 1, tile: int | None = None
) -> EighResult[Any]:
    """The eigenvalues of a Hermitian matrix, ascending, and its eigenvectors as columns.

    `UPLO` says which triangle is read, "L" or "U"; the other may hold anything. It may be given in second
    place, as NumPy has it. With a positive definite `b`, as in SciPy, they are those of A·z = λ·B·z, or with
    `type=2` of A·B·z = λ·z, with 3 of B·A·z = λ·z; zᴴ·B·z is 1 (with 3, zᴴ·B⁻¹·z).

    Parameters
    ----------
    a : Hermitian matrix, or a stack of them
    b : positive definite matrix, optional; for the generalised problem
    UPLO : "L" or "U"; which triangle is read
    type : 1, 2 or 3; which generalised problem
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    EighResult with `eigenvalues` and `eigenvectors`

    Examples
    --------
    >>> w, z = eigh(np.array([[2.0, 0.0], [1.0, 2.0]]))
    >>> w.round(12)
    array([1., 3.])
    >>> eigh(np.array([[2.0, 1.0], [1.0, 2.0]]), np.diag([1.0, 2.0])).eigenvalues.round(3)
    array([0.634, 2.366])
    """
    if isinstance(b, str):
        b, UPLO = None, b
    stack = _lower(a, UPLO, "eigh")
    if b is None:
        return eigh_of(stack, tile)
    matrix, factor = reduced(stack, _lower(b, UPLO, "eigh"), type, tile)
    values, vectors = eigh_of(matrix, tile)
    return EighResult(values, restored(vectors, factor, type, tile))


def eigh_of(stack: Any, tile: int | None) -> EighResult[Any]:
    """Eigenvalues and eigenvectors from the lower triangles of Hermitian matrices in such a dtype."""
    found = factored(stack, tile, "eigh", eigh_programs.recipe, "eigh", spectral=True)
    return EighResult(found["L"], found["Z"].mT)


@linear(np.linalg.eigvalsh)
def eigvalsh(a: Any, b: Any = None, UPLO: str = "L", *, type: int = 1, tile: int | None = None) -> Any:
    """The eigenvalues of a Hermitian matrix, ascending, from one of its triangles; `b` as in `eigh`.

    Parameters
    ----------
    a : Hermitian matrix, or a stack of them
    b : positive definite matrix, optional; for the generalised problem
    UPLO : "L" or "U"; which triangle is read
    type : 1, 2 or 3; which generalised problem
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array of real numbers, ascending

    Examples
    --------
    >>> eigvalsh([[2, 1], [1, 2]]).round(12)
    array([1., 3.])
    """
    if isinstance(b, str):
        b, UPLO = None, b
    stack = _lower(a, UPLO, "eigvalsh")
    if b is not None:
        stack, _ = reduced(stack, _lower(b, UPLO, "eigvalsh"), type, tile)
    return eigvalsh_of(stack, tile)


def eigvalsh_of(stack: Any, tile: int | None) -> Any:
    """The eigenvalues of the same."""
    return factored(stack, tile, "eigh", eigh_programs.values_of, "eigvalsh", spectral=True)["L"]


def _lower(a: Any, uplo: str, what: str) -> Any:
    """A Hermitian matrix whose lower triangle counts."""
    if uplo.upper() not in ("L", "U"):
        raise InputError(f'UPLO={uplo!r}: say which triangle to read, "L" (lower) or "U" (upper)')
    stack = matrices(a)
    need_square(stack, what)
    return stack if uplo.upper() == "L" else adjoint(stack)


@linear()
def eig(a: Any, *, gather: bool = False) -> EigResult[Any]:
    """Eigenvalues and right eigenvectors of a general square matrix, in one place: LAPACK's `geev`.

    They are complex, as the array API standard asks; `np.linalg.eig` gives real ones where it can.

    Parameters
    ----------
    a : square matrix
    gather : whether an array in tiles may be put together in one place

    Returns
    -------
    EigResult with `eigenvalues` and `eigenvectors`

    Examples
    --------
    >>> eig(np.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    array([2.+0.j, 3.+0.j])
    """
    stack, dtype = _gathered(a, "eig", gather)
    n = stack.shape[-1]
    found = by_lapack("eig", giving(("L", (n,), dtype), ("Z", (n, n), dtype)), stack)
    return EigResult(found["L"], found["Z"])


@linear()
def eigvals(a: Any, *, gather: bool = False) -> Any:
    """Eigenvalues of a general square matrix, in one place; they are complex.

    Parameters
    ----------
    a : square matrix
    gather : whether an array in tiles may be put together in one place

    Returns
    -------
    array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> import numpy as np
    >>> ln.linalg.eigvals(np.array([[0.0, 1.0], [-1.0, 0.0]])).imag
    array([ 1., -1.])
    """
    stack, dtype = _gathered(a, "eigvals", gather)
    return by_lapack("eigvals", giving(("L", stack.shape[-1:], dtype)), stack)["L"]


def _gathered(a: Any, name: str, gather: bool) -> tuple[Any, Any]:
    stack = matrices(a)
    need_square(stack, name)
    if stack.ndim == 2:
        one_tile(stack.__node__, name, gather)  # refused above the budget
    return stack, np.result_type(stack.dtype, np.complex64)


def _numpy_eig(a: Any, *, gather: bool = False) -> Any:
    """`np.linalg.eig`: real where all eigenvalues are, so that it has to run at once."""
    need_square(matrices(a), "eig")
    return EigResult(*wrapped_all(tuple(gathered(np.linalg.eig, [a.__node__], "eig", gather))))


def _numpy_eigvals(a: Any, *, gather: bool = False) -> Any:
    """`np.linalg.eigvals`: real where all eigenvalues are, so that it has to run at once."""
    need_square(matrices(a), "eigvals")
    return wrapped_all(gathered(np.linalg.eigvals, [a.__node__], "eigvals", gather))


NUMPY[np.linalg.eig] = _numpy_eig
NUMPY[np.linalg.eigvals] = _numpy_eigvals
