"""Jobs that many tests submit, and what they give when nobody disturbs them."""

from __future__ import annotations

import numpy as np

from linnet.algorithms.cholesky import cholesky
from linnet.engines import Threads
from linnet.tiles import TiledArray


def matrix(n, seed=0):
    """A positive definite matrix."""
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def factorisation(n, tile):
    """A program that factorises a matrix, bound, and its inputs."""
    return cholesky.bind(N=n // tile), {"A": TiledArray.from_numpy(matrix(n), tile)}


def undisturbed(bound, inputs):
    """The outputs of a program run here, with the bits that every run must give."""
    return Threads(1, deterministic=True).run(bound, inputs)
