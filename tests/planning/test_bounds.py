"""Lower bounds: the closed forms, which of them is found for a program, and that no plan goes below."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.algorithms import cholesky as cholesky_programs
from linnet.algorithms.gemm import accumulated_gemm, block_gemm, gemm
from linnet.algorithms.householder import qr
from linnet.algorithms.products import lower_times
from linnet.algorithms.tsqr import tsqr
from linnet.planning import bounds
from linnet.planning.accounting import transfers
from linnet.planning.bounds import bound_of
from linnet.planning.cluster import Cluster
from linnet.planning.policies.grid import Summa
from linnet.planning.policies.owner import Owner
from linnet.planning.workload import Workload
from linnet.programs import TileProgram
from linnet.testing import kernels as programs
from linnet.tiles import Layout, TiledArray


def tiled(*shape, tile):
    return TiledArray.over(np.broadcast_to(np.zeros(1), shape), Layout.regular(shape, tile))


def product(rows, columns, summed, tile=4, program=accumulated_gemm):
    a, b = tiled(rows * tile, summed * tile, tile=tile), tiled(summed * tile, columns * tile, tile=tile)
    return Workload.of(program.bind(M=rows, N=columns, K=summed), {"A": a, "B": b})


# ---- closed forms


@given(st.floats(1, 1e4), st.integers(2, 1000))
def test_square_products(size, nodes):
    """Al Daas et al. 2022: 3(n³/P)^⅔ − 3n²/P for every node."""
    expected = 3 * (size**3 / nodes) ** (2 / 3) - 3 * size**2 / nodes
    assert bounds.product(size, size, size, nodes) == pytest.approx(expected)


@pytest.mark.parametrize("nodes", [2, 4, 16, 64])
def test_the_three_cases_meet(nodes):
    """At their borders the closed forms agree: P = m/n, and P = mn/k²."""
    one, two = 100.0, 10.0
    long = nodes * one
    inside = bounds.product(long * (1 + 1e-9), one, two, nodes)
    assert inside == pytest.approx(bounds.product(long * (1 - 1e-9), one, two, nodes), rel=1e-6)
    short = sqrt(one * one / nodes)
    inside = bounds.product(one, one, short * (1 - 1e-9), nodes)
    assert inside == pytest.approx(bounds.product(one, one, short * (1 + 1e-9), nodes), rel=1e-6)


@given(*(st.floats(1, 1e4) for _ in range(3)), st.integers(1, 500))
def test_products_are_bounded_by_what_a_grid_of_one_axis_moves(rows, columns, summed, nodes):
    """Cutting one axis alone is a plan: what the other two share goes to everybody."""
    sizes = sorted((rows, columns, summed))
    found = bounds.product(rows, columns, summed, nodes)
    assert -1e-6 <= found <= sizes[0] * sizes[1] * (1 - 1 / nodes) * (1 + 1e-9)


def test_memory_makes_bounds_larger():
    free = bounds.product(4096, 4096, 4096, 16)
    assert bounds.product_with_memory(4096, 4096, 4096, 16, 1e4) > free
    assert bounds.product_with_memory(4096, 4096, 4096, 16, 1e9) == 0
    assert bounds.cholesky_with_memory(8192, 16, 1e4) > bounds.cholesky(8192, 16)
    assert bounds.qr_with_memory(8192, 8192, 16, 1e4) > bounds.qr(8192, 8192, 16)


# ---- found for a program


@pytest.mark.parametrize("program", [gemm, accumulated_gemm, block_gemm(2, 4)])
def test_a_product_is_recognised(program):
    found = bound_of(product(4, 6, 8, program=program), Cluster(4))
    assert found.kind == "product of 16×32 and 32×24"
    assert found.bytes == int(np.ceil(4 * 8 * bounds.product(16, 24, 32, 4)))
    assert found.per_node * 4 == pytest.approx(found.bytes, rel=1e-3)


def test_a_product_without_elements_needs_nothing():
    inputs = {"A": tiled(8, 0, tile=4), "B": tiled(0, 8, tile=4)}
    work = Workload.of(gemm.bind(M=2, N=2, K=1), inputs)
    assert bound_of(work, Cluster(4)).bytes == 0


def test_element_wise_needs_nothing():
    work = Workload.of(programs.divided.bind(N=9), {"A": tiled(36, tile=4), "B": tiled(36, tile=4)})
    assert bound_of(work, Cluster(4)).bytes == 0
    assert bound_of(work, Cluster(4)).kind == "element-wise"


@pytest.mark.parametrize("nodes", [2, 5, 16])
def test_a_sum_needs_a_tile_from_every_node_but_one(nodes):
    work = Workload.of(programs.tree.bind(N=64), {"A": tiled(256, tile=4)})
    assert bound_of(work, Cluster(nodes)).bytes == (nodes - 1) * 32


def test_a_tall_qr_needs_a_triangle_from_every_node_but_one():
    work = Workload.of(tsqr.bind(N=16), {"A": tiled(160, 4, tile=(10, 4))})
    assert bound_of(work, Cluster(8)).bytes == 7 * 16 * 8


def test_cholesky_and_qr_are_recognised():
    for program in (cholesky_programs.cholesky, cholesky_programs.left_looking):
        found = bound_of(Workload.of(program.bind(N=8), {"A": tiled(60, 60, tile=8)}), Cluster(16))
        assert found.kind == "Cholesky of 60×60"
        assert found.bytes == int(np.ceil(16 * 8 * bounds.cholesky(60, 16)))
    found = bound_of(Workload.of(qr.bind(P=6, Q=3), {"A": tiled(44, 20, tile=8)}), Cluster(4))
    assert found.kind == "QR of 44×20"
    wide = bound_of(Workload.of(qr.bind(P=3, Q=6), {"A": tiled(20, 44, tile=8)}), Cluster(4))
    assert (wide.bytes, wide.why) == (None, "closed forms are known for tall matrices")


def test_short_memory_counts():
    found = bound_of(product(16, 16, 16), Cluster(4, memory=8 * 48))
    assert found.memory_dependent == pytest.approx(4 * 8 * (64**3 / (4 * sqrt(48)) - 48))
    assert found.bytes == int(np.ceil(found.memory_dependent))
    assert bound_of(product(16, 16, 16), Cluster(4, memory=1e6)).memory_dependent == 0


def test_what_has_no_closed_form_says_why():
    source = """
def square(A: In, C: Out, N: int):
    for i in range(N):
        for j in range(N):
            C[i, j] = gemm(A[i, 0:N], A[0:N, j])
"""
    work = Workload.of(TileProgram.from_source(source).bind(N=3), {"A": tiled(12, 12, tile=4)})
    found = bound_of(work, Cluster(4))
    assert found.bytes is None
    assert "a factor times itself" in found.why


def test_what_is_not_the_whole_product_is_not_taken_for_one():
    stack = """
def stack(A: In, B: In, C: Out, N: int):
    for b in range(N):
        for i in range(N):
            for j in range(N):
                C[b, i, j] = testing_quotient(A[b, i], B[b, j])
"""
    arrays = {name: tiled(12, 12, tile=4) for name in "AB"}
    work = Workload.of(TileProgram.from_source(stack).bind(N=3), arrays)
    assert "a stack of them" in bound_of(work, Cluster(4)).why
    work = Workload.of(lower_times.bind(P=3, Q=3, unit=0), {name: tiled(12, 12, tile=4) for name in "TB"})
    assert "a part of a product" in bound_of(work, Cluster(4)).why


# ---- no plan goes below


@pytest.mark.parametrize("nodes", [2, 4, 6])
@pytest.mark.parametrize(
    "bound",
    [
        *(program.bind(M=5, N=4, K=3) for program in (gemm, accumulated_gemm, block_gemm(2, 4))),
        cholesky_programs.cholesky.bind(N=5),
        cholesky_programs.left_looking.bind(N=5),
        qr.bind(P=5, Q=3),
        tsqr.bind(N=7),
    ],
    ids=lambda bound: bound.program.name,
)
def test_no_chosen_plan_moves_less_than_its_bound(bound, nodes):
    plan = ln.plan(bound, Cluster(nodes, flops=1e5), tile=8)
    assert plan.lower_bound <= plan.bytes_moved


@pytest.mark.parametrize("grid", [(4, 4, 1), (2, 2, 4), (4, 2, 2), (16, 1, 1), (1, 1, 16), (2, 8, 1)])
def test_no_grid_moves_less_than_a_product_must(grid):
    work, cluster = product(16, 16, 16), Cluster(16)
    moved = transfers(work, cluster, Summa(grid).place(work, cluster)).bytes.sum()
    assert moved >= bound_of(work, cluster).bytes


@pytest.mark.parametrize("nodes", [4, 16])
def test_owner_computes_moves_more_than_cholesky_must(nodes):
    work = Workload.of(cholesky_programs.cholesky.bind(N=16), {"A": tiled(64, 64, tile=4)})
    cluster = Cluster(nodes)
    moved = transfers(work, cluster, Owner().place(work, cluster)).bytes.sum()
    assert 0 < bound_of(work, cluster).bytes <= moved
