"""The threads engine: which tiles kernels get, what becomes of their results, when tiles go."""

from __future__ import annotations

import numpy as np
import pytest
from engine_samples import chains, matrix, run, sum2

from linnet.errors import InputError, KernelError
from linnet.events import Events, Metrics, TileDropped
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, TileProgram, tile_program
from linnet.tiles import TiledArray


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_chains_in_place_leave_the_input_alone(workers):
    a = np.array([[1.0, 2.0, 3.0]])
    given = TiledArray.from_numpy(a, 1)
    views = TiledArray.from_numpy(a, 1, copy=False)
    for inputs in (given, views):
        out = run(chains, {"A": inputs}, workers, N=3, M=10)["B"]
        assert out.to_numpy().tolist() == [[11.0, 12.0, 13.0]]
        assert inputs.to_numpy().tolist() == [[1.0, 2.0, 3.0]]
    assert a.tolist() == [[1.0, 2.0, 3.0]]


def test_intermediate_tiles_are_dropped_and_reused():
    events, metrics, addresses = Events(), Metrics(), set()
    metrics.listen(events)

    @kernel("e_where", inplace=0)
    def where(x, *, overwrite=()):
        result = np.add(x, 1, out=x if 0 in overwrite else None)
        addresses.add(result.ctypes.data)
        return result

    @tile_program
    def chain(A: In, B: Out, S: Temp("A"), M: int):
        for i in range(M):
            S[i + 1, 0, 0] = e_where(S[i, 0, 0])
        B[0, 0] = copy(S[M, 0, 0])

    run(chain, {"A": matrix(1, 1)}, events=events, M=50)
    assert len(addresses) == 1
    assert metrics.bytes_live == 8
    assert metrics.bytes_peak <= 16
    assert metrics.tasks == 51


@tile_program
def shared(A: In, B: Out, C: Out, S: Temp):
    S[0, 0] = e_bump(A[0, 0])
    B[0, 0] = e_bump(S[0, 0])
    C[0, 0] = e_bump(S[0, 0])


@pytest.mark.parametrize("attempt", range(5))
def test_a_tile_with_other_readers_is_not_overwritten(attempt):
    out = run(shared, {"A": matrix(1, 1)})
    assert (out["B"].to_numpy().item(), out["C"].to_numpy().item()) == (3.0, 3.0)


def test_a_tile_that_is_twice_an_operand_is_not_overwritten():
    @tile_program
    def twice(A: In, B: Out, S: Temp):
        S[0, 0] = e_bump(A[0, 0])
        B[0, 0] = e_sum2(S[0, 0], S[0, 0])

    assert run(twice, {"A": matrix(1, 1)})["B"].to_numpy().item() == 5.0


def test_results_that_are_operands_are_copied():
    @tile_program
    def aliases(A: In, B: Out, C: Out, S: Temp, T: Temp):
        B[0, 0] = e_identity(A[0, 0])
        S[0, 0] = e_transpose(A[0, 0])
        C[0, 0] = e_bump(S[0, 0])
        T[0, 0] = copy(A[0, 0])
        B[0, 1] = e_transpose(T[0, 0])

    a = matrix(2, 2, 2)
    out = run(aliases, {"A": a})
    assert out["C"].to_numpy().tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert a.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert not np.shares_memory(out["B"].tile((0, 0)), a.tile((0, 0)))
    out["B"].tile((0, 0))[0, 0] = 9.0  # results are the caller's


def test_two_results_in_one_memory_are_separated():
    @tile_program
    def twins(A: In, B: Out, C: Out, S: Temp, T: Temp):
        S[0, 0], T[0, 0] = e_twins(A[0, 0])
        B[0, 0] = e_bump(S[0, 0])
        C[0, 0] = e_bump(T[0, 0])

    out = run(twins, {"A": matrix(1, 1)})
    assert (out["B"].to_numpy().item(), out["C"].to_numpy().item()) == (3.0, 3.0)


def test_a_kernel_that_writes_to_its_operand_is_refused():
    @tile_program
    def bad(A: In, B: Out, S: Temp):
        S[0, 0] = e_bump(A[0, 0])
        B[0, 0] = e_scribble(S[0, 0])

    with pytest.raises(
        KernelError, match="kernel 'e_scribble' raised ValueError: assignment destination is read-only"
    ):
        run(bad, {"A": matrix(1, 1)})


def test_a_kernel_that_writes_to_an_input_is_refused():
    @tile_program
    def bad(A: In, B: Out):
        B[0, 0] = e_scribble(A[0, 0])

    a = matrix(1, 1)
    with pytest.raises(KernelError, match="read-only"):
        run(bad, {"A": a})
    assert a.to_numpy().item() == 1.0
    assert a.tile((0, 0)).flags.writeable


def test_a_tile_that_a_kernel_has_kept_is_not_overwritten():
    kept = np.zeros((1, 1))
    kernel("e_kept")(lambda x: kept)

    @tile_program
    def constants(A: In, B: Out, S: Temp, N: int):
        for i in range(N):
            S[i, 0] = e_kept(A[0, 0])
        for i in range(N):
            B[i, 0] = e_identity(S[i, 0])

    out = run(constants, {"A": matrix(1, 1)}, N=5)["B"]
    assert not out.to_numpy().any()
    assert len({tile.ctypes.data for tile in out.tiles.values()}) == 5


def test_tiles_of_several_outputs_are_dropped_one_by_one():
    @tile_program
    def fork(A: In, B: Out, S: Temp, T: Temp):
        S[0, 0], T[0, 0] = e_twins(A[0, 0])
        B[0, 0] = add(S[0, 0], S[0, 0])

    events, heard = Events(), []
    events.subscribe(heard.append, TileDropped)
    out = run(fork, {"A": matrix(1, 1)}, events=events)
    assert out["B"].to_numpy().item() == 4.0
    assert sorted(event.array for event in heard) == ["S", "T"]


def test_ranges_scalars_and_attributes():
    @tile_program
    def several(A: In, B: Out, C: Out, D: Out, S: Temp, N: int):
        B[0, 0] = sum_tiles(A[0, 0:N])
        for i in range(N):
            C[0, i] = e_scaled(A[0, i], i + 1, offset=N)
        S[0, 0:2] = e_halves(A[0, 0])
        D[0, 0] = e_bump(S[0, 1])

    a = TiledArray.from_numpy(np.arange(12.0).reshape(2, 6), 2)
    out = run(several, {"A": a}, N=3)
    whole = a.to_numpy()
    assert np.array_equal(out["B"].to_numpy(), whole[:, 0:2] + whole[:, 2:4] + whole[:, 4:6])
    assert np.array_equal(out["C"].to_numpy(), whole * [1, 1, 2, 2, 3, 3] + 3)
    assert np.array_equal(out["D"].to_numpy(), whole[1:, :2] + 1)


def test_a_number_is_a_tile_without_axes():
    @tile_program
    def total(A: In, B: Out):
        B[0, 0] = e_scalar(A[0, 0])

    out = run(total, {"A": matrix(2, 2, 2)})
    assert out.tiles("B")[0, 0] == 10.0
    with pytest.raises(InputError, match=r"B\[0, 0\] has 0 axes but 2 indices"):
        out["B"]
    with pytest.raises(KeyError, match="has no Out array 'X'; it has B"):
        out["X"]
    assert (list(out), len(out), repr(out)) == (["B"], 1, "Outputs(B)")


def test_unwritten_tiles_are_the_fill():
    @tile_program
    def lower(A: In, O: Out(fill=7), D: Out, N: int):
        for i in range(N):
            O[i, i] = e_bump(A[i, i])
        D[0, 0] = sum2(O[0, 1], A[0, 1])
        D[0, 1] = sum2(O[0, 1], A[0, 1])

    a = TiledArray.from_numpy(np.zeros((5, 5)), 3)
    out = run(lower, {"A": a}, N=2)
    expected = np.full((5, 5), 7.0)
    expected[:3, :3] = expected[3:, 3:] = 1.0
    assert np.array_equal(out["O"].to_numpy(), expected)
    assert np.array_equal(out["D"].to_numpy(), np.full((3, 4), 8.0))
    assert sorted(out.tiles("O")) == [(0, 0), (1, 1)]


@kernel("e_picky")
def picky(x):
    """Declares no shape, and takes no tiles but those of the user: no others tell what it makes of them."""
    if x.flat[0] != 1:
        raise ValueError("that is not one of mine")
    return x + 0


def test_a_shape_nobody_declares_is_seen_on_small_tiles():
    @tile_program
    def lower(A: In, O: Out(fill=7), D: Out):
        O[0, 0] = e_identity(A[0, 0])
        O[1, 1] = e_identity(A[0, 0])
        D[0, 0] = e_bump(O[0, 1])

    assert (run(lower, {"A": matrix(1, 1)})["D"].to_numpy() == 8).all()


def test_a_fill_whose_shape_nobody_declares():
    @tile_program
    def lower(A: In, O: Out(fill=7), D: Out):
        O[0, 0] = e_picky(A[0, 0])
        O[1, 1] = e_picky(A[0, 0])
        D[0, 0] = e_bump(O[0, 1])

    with pytest.raises(
        InputError, match="kernel 'e_picky' declares none, and they could not be found out .* give it shape="
    ):
        run(lower, {"A": matrix(1, 1)})


SEEN: list[np.ndarray] = []


@kernel("e_seen", shape=lambda x: x)
def seen(x):
    SEEN.append(x)
    return x + 0


def test_fills_of_one_shape_are_one_tile_that_nobody_overwrites():
    @tile_program
    def diagonal(A: In, D: Out, E: Out, O: Temp(fill=7), N: int):
        for i in range(N):
            O[i, i] = e_bump(A[i, i])
        for i in range(N):
            for j in range(N):
                D[i, j] = e_seen(O[i, j])
                E[i, j] = e_sum2(O[i, j], O[i, j])

    SEEN.clear()
    a = TiledArray.from_numpy(np.zeros((11, 11)), 2)
    out = run(diagonal, {"A": a}, N=6)
    expected = np.full((11, 11), 7.0)
    for i in range(0, 11, 2):
        expected[i : i + 2, i : i + 2] = 1.0
    assert set(out) == {"D", "E"}
    assert np.array_equal(out["D"].to_numpy(), expected)
    assert np.array_equal(out["E"].to_numpy(), 2 * expected + 1)
    fills = [x for x in SEEN if x[0, 0] == 7]
    assert len(fills) == 30
    assert len({id(x) for x in fills}) == 3  # in the middle, at the right, at the bottom


def test_an_intermediate_fill_whose_shape_nobody_declares():
    @tile_program
    def lower(A: In, O: Temp(fill=7), D: Out):
        O[0, 0] = e_picky(A[0, 0])
        O[1, 1] = e_picky(A[0, 0])
        D[0, 0] = e_bump(O[0, 1])

    with pytest.raises(
        InputError, match="kernel 'e_picky' declares none, and they could not be found out .* give it shape="
    ):
        run(lower, {"A": matrix(1, 1)})


@pytest.mark.parametrize("role", ["Out(fill=0)", "Temp(fill=0)"])
def test_a_fill_whose_shape_follows_from_itself(role):
    program = TileProgram.from_source(f"""
def sums(A: In, D: Out, S: {role}, N: int):
    for i in range(N):
        S[0, i + 1] = e_sum2(S[0, i], A[0, i])
        S[i + 1, 0] = e_sum2(S[i, 0], A[i, 0])
    D[0, 0] = e_sum2(S[0, N], S[N, 0])
""")
    words = (
        r"the shapes of S\[., .\] and S\[., .\] are unknown: each follows from the other; .* not made from it"
    )
    with pytest.raises(InputError, match=words):
        run(program, {"A": matrix(2, 2)}, N=2)


def test_a_fill_that_is_the_only_tile():
    @tile_program
    def single(A: In, D: Out, S: Temp(fill=0), N: int):
        if N > 1:
            S[()] = e_bump(A[()])
        D[()] = e_bump(S[()])

    number = TiledArray.from_numpy(np.float64(3), ())
    assert run(single, {"A": number}, N=2)["D"].to_numpy() == 5
    with pytest.raises(InputError, match="nobody writes it, and it is the only tile"):
        run(single, {"A": number}, N=1)


LENDERS: list[np.ndarray] = []


@kernel("e_lend")
def lend(x):
    LENDERS.append(x)
    return [x[:, :2], x[:, 2:]]


@tile_program
def lending(A: In, B: Out, C: Out, S: Temp):
    S[0, 0:2] = e_lend(A[0, 0])
    for i in range(2):
        B[0, i] = e_bump(S[0, i])
    C[0, 0:2] = e_lend(A[0, 0])


@pytest.mark.parametrize("copy", [True, False])
def test_parts_of_an_input_are_lent_and_never_overwritten(copy):
    LENDERS.clear()
    a = np.arange(4.0).reshape(1, 4)
    given = TiledArray.from_numpy(a, 4, copy=copy)
    out = run(lending, {"A": given})
    assert [out["B"].tile((0, i)).tolist() for i in range(2)] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert a.tolist() == given.to_numpy().tolist() == [[0.0, 1.0, 2.0, 3.0]]
    # As results they are copied: whoever writes to one must not write to the input.
    assert not np.may_share_memory(out["C"].tile((0, 0)), LENDERS[0])
