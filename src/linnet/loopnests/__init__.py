"""Tensor programs written as plain Python loops."""

from linnet.loopnests.einops import einop, tensor
from linnet.loopnests.function import LoopFunction, loops
from linnet.loopnests.grids import Grid, grid, wavefront
from linnet.loopnests.monoids import monoid
from linnet.loopnests.storages import StoredArray, storage

__all__ = [
    "Grid",
    "LoopFunction",
    "StoredArray",
    "einop",
    "grid",
    "loops",
    "monoid",
    "storage",
    "tensor",
    "wavefront",
]
