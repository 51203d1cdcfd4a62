"""Singular values, eigenvalues and what is made of them, on nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.algorithms import eigh as hermitian_programs
from linnet.algorithms import svd as svd_programs
from linnet.algorithms.eigh import EighResult
from linnet.algorithms.norms import condition_of
from linnet.algorithms.panels import slab_edges
from linnet.algorithms.qr import is_skinny
from linnet.algorithms.spectral import counted, triangle_of
from linnet.algorithms.svd import SVDResult
from linnet.algorithms.tuning import SPECTRAL_SHORTCUT
from linnet.arrays.clustered.factors import qr
from linnet.arrays.clustered.placing import adjoint, is_large, kept, left, placed, value
from linnet.arrays.core import as_node, wrap
from linnet.arrays.elementwise import apply
from linnet.arrays.grids import eye
from linnet.engines import Engine
from linnet.errors import LinAlgError
from linnet.events import Sink
from linnet.kernels.fortran import promote
from linnet.tiles import Layout, TiledArray


def svd(
    engine: Engine, a: Any, full_matrices: bool = True, *, tile: int | None = None,
    events: Sink | None = None, **others: Any,
) -> Any:  # fmt: skip
    """`U`, `S`, `Vh`."""
    if others or not is_large(a, tile, SPECTRAL_SHORTCUT):
        return NotImplemented
    m, n = a.shape
    if m < n:
        u, values, vh = svd(engine, adjoint(a), full_matrices, tile=tile, events=events)
        return SVDResult(adjoint(vh), values, adjoint(u))
    if is_skinny(a) and not full_matrices:
        q, r = qr(engine, a, tile=tile, events=events)
        u, values, vh = decomposed(engine, r, tile, events)
        return SVDResult(kept(engine, q @ u), values, vh)
    matrix = _banded(engine, a, tile, svd_programs.TILE)
    columns = m if full_matrices else n
    made = svd_programs.decompose(matrix, columns, engine, events)
    u = left(made, "U", Layout((slab_edges(columns, n), (0, m))), matrix.dtype)
    v = left(made, "N", Layout((slab_edges(n, n), (0, n))), matrix.dtype)
    values = wrap(as_node(made["O"].to_numpy()))
    return SVDResult(u.mT, values, apply(np.conjugate, v) if matrix.dtype.kind == "c" else v)


def svdvals(
    engine: Engine, a: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any
) -> Any:
    """The singular values."""
    if others or not is_large(a, tile, SPECTRAL_SHORTCUT):
        return NotImplemented
    if a.shape[0] < a.shape[1]:
        a = adjoint(a)
    if is_skinny(a):
        return wrap(as_node(values_of(engine, qr(engine, a, "r", tile=tile, events=events), tile, events)))
    matrix = _banded(engine, a, tile, svd_programs.TILE)
    return wrap(as_node(svd_programs.singular_values(matrix, engine, events)))


def decomposed(engine: Engine, a: Any, tile: int | None, events: Sink | None) -> Any:
    """The thin SVD of a matrix of any size."""
    made = svd(engine, a, full_matrices=False, tile=tile, events=events)
    if made is not NotImplemented:
        return made
    return SVDResult(*(wrap(as_node(x)) for x in np.linalg.svd(value(engine, a), full_matrices=False)))


def values_of(engine: Engine, a: Any, tile: int | None, events: Sink | None) -> Any:
    """The singular values of a matrix of any size, here."""
    made = svdvals(engine, a, tile=tile, events=events)
    return (
        np.linalg.svd(value(engine, a), compute_uv=False) if made is NotImplemented else value(engine, made)
    )


def eigh(
    engine: Engine, a: Any, UPLO: str = "L", *, tile: int | None = None,
    events: Sink | None = None, **others: Any,
) -> Any:  # fmt: skip
    """Eigenvalues and eigenvectors."""
    if others or not is_large(a, tile, SPECTRAL_SHORTCUT):
        return NotImplemented
    matrix = _banded(engine, _hermitian(a, UPLO), tile, hermitian_programs.TILE)
    made = hermitian_programs.decompose(matrix, engine, events)
    n = a.shape[0]
    z = left(made, "Z", Layout((slab_edges(n, n), (0, n))), matrix.dtype)
    return EighResult(wrap(as_node(made["L"].to_numpy())), z.mT)


def eigvalsh(
    engine: Engine, a: Any, UPLO: str = "L", *, tile: int | None = None,
    events: Sink | None = None, **others: Any,
) -> Any:  # fmt: skip
    """Eigenvalues alone."""
    if others or not is_large(a, tile, SPECTRAL_SHORTCUT):
        return NotImplemented
    matrix = _banded(engine, _hermitian(a, UPLO), tile, hermitian_programs.TILE)
    return wrap(as_node(hermitian_programs.eigenvalues(matrix, engine, events)))


def matrix_rank(
    engine: Engine, a: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None, **options: Any
) -> Any:
    """How many singular values count."""
    made = (eigvalsh if hermitian else svdvals)(engine, a, **options)
    if made is NotImplemented:
        return made
    values = value(engine, made)
    values = np.sort(np.abs(values))[::-1] if hermitian else values
    return wrap(as_node(counted(values, a.shape, tol, rtol)))


def cond(engine: Engine, x: Any, p: Any = None, **options: Any) -> Any:
    """The condition number in the norm of singular values."""
    made = svdvals(engine, x, **options) if p in (None, 2, -2) else NotImplemented
    return made if made is NotImplemented else wrap(as_node(condition_of(value(engine, made), p)))


def pinv(
    engine: Engine, a: Any, rtol: Any = None, hermitian: bool = False, *, tile: int | None = None,
    events: Sink | None = None, **others: Any,
) -> Any:  # fmt: skip
    """The Moore-Penrose inverse."""
    if others or not is_large(a, tile):
        return NotImplemented
    made = eigh(engine, a, tile=tile, events=events) if hermitian else decomposed(engine, a, tile, events)
    if made is NotImplemented:
        return made
    found, u, vh = (made[0], made[1], adjoint(made[1])) if hermitian else (made[1], made[0], made[2])
    values = value(engine, found)
    sizes = np.abs(values)
    cut = np.finfo(sizes.dtype).eps * max(a.shape) if rtol is None else float(rtol)
    large = np.flatnonzero(sizes > cut * sizes.max(initial=0))
    return kept(engine, (adjoint(vh[large]) / values[large]) @ adjoint(u[:, large]))


def _hermitian(a: Any, uplo: str) -> Any:
    """The whole of a Hermitian matrix of which one triangle counts."""
    if a.shape[0] != a.shape[1]:
        raise LinAlgError(
            f"eigenvalues of a Hermitian matrix need a square matrix; got {a.shape[0]}×{a.shape[1]}"
        )
    half = np.tril(a, -1) if triangle_of(uplo) == "L" else np.triu(a, 1)
    diagonal = np.where(eye(a.shape[0], dtype=bool), np.real(a), 0)
    return half + adjoint(half) + diagonal


def _banded(engine: Engine, a: Any, tile: int | None, side: int) -> TiledArray:
    """A matrix in tiles as the reduction to a band takes them."""
    return placed(engine, a, Layout.regular(a.shape, tile or side), promote(a.dtype))
