"""Random arrays: `ln.random.default_rng(seed)`, then the methods of NumPy's generators."""

from linnet.arrays.functions.random_numbers import Generator, default_rng

__all__ = ["Generator", "default_rng"]
