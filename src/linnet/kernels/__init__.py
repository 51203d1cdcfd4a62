"""Kernels: pure functions from tiles (and scalars) to tiles, registered under a name.

The modules of the kernels that Linnet ships are imported when the first one is looked up, not with this
package: who only builds arrays does not wait for them. No kernel imports SciPy before it runs.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from linnet.kernels.registry import Kernel, get, kernel, names, shipped_by

if TYPE_CHECKING:
    from linnet.kernels.arrays.arg_extremes import arg_join, arg_tile
    from linnet.kernels.arrays.contract import contract
    from linnet.kernels.arrays.elementwise import add, copy, sum_tiles
    from linnet.kernels.arrays.folds import fold_join
    from linnet.kernels.arrays.fused import fused
    from linnet.kernels.linalg.dense_factors import chol, downdate, downdate_lower, syrk, trsm
    from linnet.kernels.linalg.lq import gelqt, gemlqt, tplqt, tpmlqt
    from linnet.kernels.linalg.qr import gemqrt, geqrt, tpmqrt, tpqrt
    from linnet.kernels.linalg.tile_products import gemm, gemm_add, gemm_block

PACKAGES = ("arrays", "linalg", "models", "sparse")
"""Packages whose modules register kernels."""

_PLACES = {
    "arrays.arg_extremes": "arg_join arg_tile",
    "arrays.contract": "contract",
    "arrays.elementwise": "add copy sum_tiles",
    "arrays.folds": "fold_join",
    "arrays.fused": "fused",
    "linalg.dense_factors": "chol downdate downdate_lower syrk trsm",
    "linalg.lq": "gelqt gemlqt tplqt tpmlqt",
    "linalg.qr": "gemqrt geqrt tpmqrt tpqrt",
    "linalg.tile_products": "gemm gemm_add gemm_block",
}
"""Kernels that tile programs are written with, by the module they are in."""

__all__ = [
    "Kernel",
    "add",
    "arg_join",
    "arg_tile",
    "chol",
    "contract",
    "copy",
    "downdate",
    "downdate_lower",
    "fold_join",
    "fused",
    "gelqt",
    "gemlqt",
    "gemm",
    "gemm_add",
    "gemm_block",
    "gemqrt",
    "geqrt",
    "get",
    "kernel",
    "names",
    "sum_tiles",
    "syrk",
    "tplqt",
    "tpmlqt",
    "tpmqrt",
    "tpqrt",
    "trsm",
]


def __getattr__(name: str) -> Any:
    """A kernel, from the module that has it."""
    for place, kernels in _PLACES.items():
        if name in kernels.split():
            return getattr(import_module(f"linnet.kernels.{place}"), name)
    raise AttributeError(f"module 'linnet.kernels' has no attribute {name!r}")


@shipped_by
def _import_all() -> None:
    """Import every module that registers kernels."""
    for package in PACKAGES:
        for module in iter_modules(import_module(f"linnet.kernels.{package}").__path__):
            import_module(f"linnet.kernels.{package}.{module.name}")
