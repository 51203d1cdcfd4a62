"""Kernels of arrays: element by element, folds, moves, sorting, random numbers, files."""
