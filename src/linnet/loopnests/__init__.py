"""Tensor programs written as plain Python loops."""

from linnet.loopnests.einops import einop, tensor
from linnet.loopnests.function import LoopFunction, loops
from linnet.loopnests.grids import Grid, grid, wavefront
from linnet.loopnests.monoids import monoid

__all__ = ["Grid", "LoopFunction", "einop", "grid", "loops", "monoid", "tensor", "wavefront"]
