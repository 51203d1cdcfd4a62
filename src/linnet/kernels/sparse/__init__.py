"""Kernels on sparse tiles, which travel as bytes (`tiles.sparse_tile`)."""
