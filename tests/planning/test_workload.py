"""What a plan knows of a program, against every call looked at one by one."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.algorithms import cholesky as cholesky_programs
from linnet.algorithms import eigh, svd
from linnet.engines import Threads
from linnet.errors import KernelDeclarationError
from linnet.events import Events, TileWritten
from linnet.planning.workload import Workload
from linnet.programs import TileProgram
from linnet.programs.shapes import operands
from linnet.testing import kernels as programs
from linnet.testing.engines import recorded
from linnet.tiles import TiledArray, TileKey


def tiled(*shape, tile=4):
    return TiledArray.from_numpy(np.random.default_rng(0).standard_normal(shape), tile)


def spd(n, tile):
    a = np.random.default_rng(1).standard_normal((n, n))
    return TiledArray.from_numpy(a @ a.T + n * np.eye(n), tile)


edges = TileProgram.from_source("""
def edges(A: In, C: Out, B: Temp(fill=1), N: int):
    for i in range(N):
        B[i, N - 1 - i] = testing_step(A[i, N - 1 - i])
    for i in range(N):
        for j in range(N):
            C[i, j] = testing_step(B[i, j])
""")
"""Filled tiles alone are read, of several shapes."""

CASES = {
    "affine": lambda: (programs.affine.bind(N=2, K=3), {"A": tiled(7, 9), "B": tiled(9, 7)}),
    "tree": lambda: (programs.tree.bind(N=5), {"A": tiled(20)}),
    "ranges": lambda: (programs.ranges.bind(N=3, M=4), {"A": tiled(12)}),
    "several": lambda: (programs.several.bind(N=3), {"A": tiled(12)}),
    "filled": lambda: (programs.filled.bind(N=3), {"A": tiled(6, 6, tile=2)}),
    "patched": lambda: (programs.patched.bind(N=3), {"A": tiled(5, 5, tile=2)}),
    "edges": lambda: (edges.bind(N=3), {"A": tiled(5, 5, tile=2)}),
    "tabled": lambda: (programs.tabled.bind(N=5, T=[3, 0, 4, 4, 1]), {"A": tiled(10, tile=2)}),
    "eigvalsh": lambda: (eigh.values_only().bind(N=4, B=2), {"A": spd(14, 4)}),
    "svdvals": lambda: (svd.values_only().bind(P=5, Q=4, B=2), {"A": tiled(18, 14)}),
    "cholesky": lambda: (cholesky_programs.cholesky.bind(N=4), {"A": spd(14, 4)}),
}


@pytest.mark.parametrize("name", CASES)
def test_tasks_read_and_write_what_their_calls_name(name):
    bound, inputs = CASES[name]()
    work = Workload.of(bound, inputs)
    assert work.count == bound.count()
    known = {work.key(tile) for tile in range(work.tiles)}
    for number in range(work.count):
        call = bound.call(work.tasks.task(number))
        reads = {key for key in operands(call.args) if key in known}
        assert {work.key(tile) for tile in work.reads(number)} == reads
        assert len(work.reads(number)) == len(reads)
        assert [work.key(tile) for tile in work.writes(number)] == list(operands(call.outputs))
        assert all(work.producer[tile] == number for tile in work.writes(number))
    for tile in range(work.tiles):
        readers = work.reader[work.reader_start[tile] : work.reader_start[tile + 1]]
        assert all(tile in work.reads(task) for task in readers)
        assert work.kept[tile] == (work.key(tile).array in {*inputs, *_outputs(bound)})


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"ranges"}))
def test_sizes_are_those_of_the_tiles_that_are_written(name):
    bound, inputs = CASES[name]()
    work = Workload.of(bound, inputs)
    events = Events()
    told = recorded(events)
    Threads(workers=1).run(bound, inputs, events=events)
    seen = {TileKey(e.array, e.index): e.bytes for e in told if isinstance(e, TileWritten)}
    seen |= {TileKey(n, i): tile.nbytes for n, array in inputs.items() for i, tile in array.tiles.items()}
    for tile in range(work.tiles):
        key = work.key(tile)
        assert work.tile_bytes[tile] == seen[key] == 8 * work.tile_items[tile], key
    # A panel may have nothing below or beside it, and then there is nothing to do.
    assert (work.flops > 0).all() or (name in ("eigvalsh", "svdvals") and (work.flops >= 0).all())


@pytest.mark.parametrize("name", CASES)
def test_the_order_respects_who_waits_for_whom(name):
    bound, inputs = CASES[name]()
    work = Workload.of(bound, inputs)
    place = np.argsort(work.order)
    assert sorted(work.order.tolist()) == list(range(work.count))
    for number in range(work.count):
        assert all(place[child] > place[number] for child in work.tasks.children(number))


def test_an_array_without_axes():
    single = TileProgram.from_source("def single(A: In, B: Out):\n    B[()] = add(A[()], A[()])")
    work = Workload.of(single.bind(), {"A": TiledArray.from_numpy(np.float64(3), ())})
    assert [work.key(tile) for tile in range(work.tiles)] == [TileKey("A", ()), TileKey("B", ())]
    assert work.tile_bytes.tolist() == [8, 8]


def test_a_program_without_tasks():
    work = Workload.of(programs.several.bind(N=0), {"A": tiled(0)})
    assert (work.count, work.tiles) == (0, 0)


def test_results_that_no_kernel_declares_are_taken_to_be_like_its_operands():
    bound, inputs = CASES["ranges"]()
    work = Workload.of(bound, inputs)
    cut = [tile for tile in range(work.tiles) if work.key(tile).array == "S"]
    assert set(work.tile_bytes[cut].tolist()) == {32}


def test_what_follows_from_assumed_shapes_may_be_wrong():
    source = """
def sums(A: In, B: In, C: Out, S: Temp, N: int):
    for i in range(N):
        S[i, 0:2] = testing_cut(A[i])
    for i in range(N):
        for j in range(2):
            C[i, j] = fused(S[i, j], B[i], loads=(None, None), steps=(("add", 0, 1),), results=(("map", 2),))
"""
    bound = TileProgram.from_source(source).bind(N=2)
    inputs = {"A": TiledArray.from_numpy(np.arange(4.0), 2), "B": TiledArray.from_numpy(np.arange(6.0), 3)}
    wrong = TileProgram.from_source(source.replace("S[i, j], B", "A[i], B")).bind(N=2)
    with pytest.raises(KernelDeclarationError):  # shapes that are known do not fit
        Workload.of(wrong, inputs)
    work = Workload.of(bound, inputs)  # those of testing_cut, which declares none, are taken to be A's
    assert work.tile_bytes[[work.key(tile).array == "C" for tile in range(work.tiles)]].tolist() == [24] * 4


def test_given_homes_are_told():
    bound, inputs = CASES["affine"]()
    work = Workload.of(bound, inputs, homes={TileKey("A", (1, 2)): 3, TileKey("Z", (0,)): 1})
    given = [(work.key(tile), int(node)) for tile, node in enumerate(work.given_homes) if node >= 0]
    assert given == [(TileKey("A", (1, 2)), 3)]


def _outputs(bound):
    return [name for name, role in bound.program.arrays.items() if type(role).__name__ == "Out"]


def test_small_inputs_of_one_tile_go_along():
    work = Workload.of(programs.slow.bind(N=3), {"A": tiled(4)})
    assert work.along.tolist() == [True, False, False, False]
    lean = work.lean()
    assert len(lean.read) == len(lean.reader) == 0
    assert (lean.count, lean.tiles) == (work.count, work.tiles)
    large = Workload.of(programs.slow.bind(N=3), {"A": tiled(10_000, tile=10_000)})
    assert not large.along.any()
    kept = Workload.of(programs.slow.bind(N=3), {"A": tiled(4)}, homes={TileKey("A", (0,)): 1})
    assert not kept.along.any()
