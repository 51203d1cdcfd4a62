"""Sparse arrays: arrays whose absent elements have one value, and whose absent blocks make no tasks."""

from linnet.sparse_arrays import rules
from linnet.sparse_arrays.making import sparse

__all__ = ["rules", "sparse"]
