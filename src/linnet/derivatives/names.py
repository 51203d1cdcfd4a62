"""The functions that rules are written in: those that users call, so that rules have rules themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from linnet.arrays.functions import fourier, fourier_frequencies
from linnet.arrays.linalg import (
    eigen_and_singular,
    factorisations,
    least_squares,
    linear_systems,
    norms,
    norms_and_products,
    tensor_equations,
)
from linnet.arrays.namespace import names

ln: Any = SimpleNamespace(**names())
"""The public names of arrays."""


_LINALG = """
    cho_factor cho_solve cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq lu lu_factor
    lu_solve matmul matrix_norm matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr
    slogdet solve solve_triangular svd svdvals symm syrk tensordot tensorinv tensorsolve trace trmm vecdot
    vector_norm
"""


def _linalg() -> dict[str, Any]:
    modules = (
        norms,
        norms_and_products,
        factorisations,
        eigen_and_singular,
        linear_systems,
        least_squares,
        tensor_equations,
    )
    return {name: next(getattr(m, name) for m in modules if hasattr(m, name)) for name in _LINALG.split()}


la: Any = SimpleNamespace(**_linalg())
"""Those of `linalg`."""

fft: Any = SimpleNamespace(
    **{
        name: getattr(module, name)
        for module in (fourier, fourier_frequencies)
        for name in dir(module)
        if name.endswith(("fft", "fft2", "fftn", "shift"))
    }
)
"""Those of `fft`."""
