"""Kernels of linear algebra: tiles of factorisations, products and spectra."""
