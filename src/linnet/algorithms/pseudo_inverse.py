"""The pseudo-inverse: `R⁺·Qᴴ` of a tall matrix `Q·R`, with the singular vectors of the small `R`.

That of a Hermitian matrix comes from its eigenvectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.gemm import product
from linnet.algorithms.least_squares import adjoint, inverted, orthogonal_factor
from linnet.algorithms.qr import at_once
from linnet.algorithms.spectral import eigh
from linnet.algorithms.stacks import as_stack, need_square, over_stack
from linnet.engines import Engine
from linnet.events import Sink
from linnet.kernels.fortran import promote
from linnet.session import current_engine
from linnet.tiles import TiledArray

Matrix = NDArray[Any]


def pseudo_inverse(
    a: Matrix | TiledArray,
    rtol: float | Matrix | None = None,
    hermitian: bool = False,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> Matrix:
    """The Moore-Penrose inverse `A⁺`, n×m.

    Singular values below `rtol` times the largest count as zero; by default that is the rounding of
    the dtype times max(m, n). For a stack of matrices `rtol` may be one number for each. With
    `hermitian`, the matrix is taken for Hermitian, its lower triangle is read, and eigenvalues
    stand for singular values.

    >>> pseudo_inverse(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])).round(12)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0. ]])
    """
    stack = as_stack(a)
    if hermitian:
        need_square(stack, "pinv with hermitian=True")
    dtype = promote(stack.dtype)
    cut = np.finfo(dtype).eps * max(stack.shape[-2:]) if rtol is None else rtol
    if at_once(stack, tile):
        return np.linalg.pinv(np.asarray(stack), rcond=cut, hermitian=hermitian)
    chosen = current_engine() if engine is None else engine

    def one(matrix: Matrix | TiledArray, relative: float) -> Matrix:
        if hermitian:
            return _hermitian_inverse(matrix, relative, tile, chosen, events)
        return _inverse(matrix, relative, dtype, tile, chosen, events)

    if isinstance(stack, TiledArray) or stack.ndim == 2:
        return one(stack, float(cut))
    cuts = np.broadcast_to(np.asarray(cut)[..., None, None], (*stack.shape[:-2], 1, 1))
    return over_stack(lambda x, y: one(x, float(y[0, 0])), stack, cuts)


def _inverse(
    a: Matrix | TiledArray, cut: float, dtype: Any, tile: int | None, engine: Engine, events: Sink | None
) -> Matrix:
    wide = a.shape[0] < a.shape[1]
    factors = orthogonal_factor(adjoint(a) if wide else a, dtype, tile, engine, events)
    r, _ = factors.project(None)
    # A⁺ is the adjoint of Q·(R⁺)ᴴ, and for the adjoint of A it is Q·(R⁺)ᴴ itself.
    expanded = factors.expand(inverted(r, cut, engine, events).conj().T)
    return expanded if wide else np.ascontiguousarray(expanded.conj().T)


def _hermitian_inverse(
    a: Matrix | TiledArray, cut: float, tile: int | None, engine: Engine, events: Sink | None
) -> Matrix:
    values, vectors = eigh(a, tile=tile, engine=engine, events=events)
    sizes = np.abs(values)
    kept = sizes > cut * sizes.max(initial=0)
    inverse = np.divide(1, values, where=kept, out=np.zeros_like(values))
    return product(vectors * inverse, vectors, op_b="C", tile=tile, engine=engine, events=events)
