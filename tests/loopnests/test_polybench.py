"""The thirty kernels of PolyBench, each equal to its plain run."""

from __future__ import annotations

import numpy as np
import polybench_a as a
import polybench_b as b
import pytest
from comparing import same

RNG = np.random.default_rng(3)
N = 6


def mat(n=N, m=N):
    return RNG.standard_normal((n, m))


def vec(n=N):
    return RNG.standard_normal(n)


M = mat()
DEFINITE = M @ M.T + N * np.eye(N)
LOWER = np.tril(mat()) + 4 * np.eye(N)
CASES = {
    "gemm": (a.gemm, 1.5, 1.2, mat(5, 4), mat(5, 3), mat(3, 4)),
    "2mm": (a.two_mm, 1.5, 1.2, mat(4, 5), mat(4, 3), mat(3, 5), mat(5, 6), mat(4, 6)),
    "3mm": (a.three_mm, *(mat() for _ in range(7))),
    "atax": (a.atax, mat(4, 5), vec(5), vec(5), vec(4)),
    "bicg": (a.bicg, mat(4, 5), vec(5), vec(4), vec(5), vec(4)),
    "doitgen": (a.doitgen, RNG.standard_normal((3, 4, 5)), mat(5, 5), vec(5)),
    "mvt": (a.mvt, vec(), vec(), vec(), vec(), mat()),
    "gemver": (a.gemver, 1.5, 1.2, mat(), *(vec() for _ in range(8))),
    "gesummv": (a.gesummv, 1.5, 1.2, mat(), mat(), vec(), vec(), vec()),
    "symm": (a.symm, 1.5, 1.2, mat(5, 4), mat(5, 5), mat(5, 4)),
    "syrk": (a.syrk, 1.5, 1.2, mat(5, 5), mat(5, 4)),
    "syr2k": (a.syr2k, 1.5, 1.2, mat(5, 5), mat(5, 4), mat(5, 4)),
    "trmm": (a.trmm, 1.5, mat(5, 5), mat(5, 4)),
    "cholesky": (a.cholesky, DEFINITE),
    "durbin": (a.durbin, np.arange(1.0, N + 1) / 20, vec(), vec()),
    "gramschmidt": (a.gramschmidt, mat(7, 4), mat(4, 4), mat(7, 4)),
    "lu": (a.lu, DEFINITE),
    "ludcmp": (a.ludcmp, DEFINITE, vec(), vec(), vec()),
    "trisolv": (a.trisolv, LOWER, vec(), vec()),
    "correlation": (b.correlation, mat(7, 4), mat(4, 4), vec(4), vec(4)),
    "covariance": (b.covariance, mat(7, 4), mat(4, 4), vec(4)),
    "floyd-warshall": (b.floyd_warshall, np.abs(mat())),
    "deriche": (b.deriche, 0.25, mat(5, 4), mat(5, 4), mat(5, 4), mat(5, 4)),
    "nussinov": (b.nussinov, RNG.integers(0, 4, 7), np.zeros((7, 7), dtype=np.int64)),
    "adi": (b.adi, 2, mat(), mat(), mat(), mat()),
    "fdtd-2d": (b.fdtd_2d, 3, mat(5, 6), mat(5, 6), mat(5, 6), vec(3)),
    "heat-3d": (b.heat_3d, 2, *(RNG.standard_normal((5, 5, 5)) for _ in range(2))),
    "jacobi-1d": (b.jacobi_1d, 3, vec(9), vec(9)),
    "jacobi-2d": (b.jacobi_2d, 3, mat(), mat()),
    "seidel-2d": (b.seidel_2d, 2, mat()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_equals_its_plain_run(name):
    same(*CASES[name], rtol=1e-8)
