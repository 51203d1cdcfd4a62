"""Kernels: pure functions from tiles (and scalars) to tiles, registered under a name."""

from linnet.kernels.registry import Kernel, get, kernel, names

__all__ = ["Kernel", "get", "kernel", "names"]
