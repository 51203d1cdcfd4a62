"""The programs Linnet ships put their proofs off until asked for: here they are asked for."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import linnet.algorithms
from linnet.algorithms import lu
from linnet.algorithms.gemm import block_gemm
from linnet.programs import BoundProgram, TileProgram

NOT_AFFINE = {"tsqr", "tsqr_with_q", "tsqr_project"}
"""Trees with steps of 2**level: looked through at these sizes instead."""


def shipped() -> list[TileProgram]:
    found: dict[str, TileProgram] = {}
    for module in pkgutil.iter_modules(linnet.algorithms.__path__):
        for value in vars(importlib.import_module(f"linnet.algorithms.{module.name}")).values():
            if isinstance(value, TileProgram):
                found[value.name] = value
    blocks = [block_gemm(*each) for each in ((1, 1), (2, 4), (4, 4))]
    joined = [
        lu._joined(trusting, each) for trusting in (True, False) for each in (lu.packed, lu.determinants)
    ]
    systems = [lu._with_system(trusting) for trusting in (True, False)]
    return [*found.values(), *blocks, *joined, *systems]


PROGRAMS = shipped()


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_shipped_program_is_right_at_every_size(program: TileProgram) -> None:
    if program.name not in NOT_AFFINE:
        assert program.proven, program.unproven
        return
    assert not program.proven
    for size in (1, 2, 3, 5, 8, 17):
        BoundProgram(program, dict.fromkeys(program.sizes, size)).verify()


def test_all_modules_were_looked_at() -> None:
    assert {"cholesky", "gemm", "qr", "tsqr", "tournament", "hermitian_band", "svd_band"} <= {
        program.name for program in PROGRAMS
    }
