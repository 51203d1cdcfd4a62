"""Kernels of models: passes over rows of a table, families of distributions, coordinate descent."""
