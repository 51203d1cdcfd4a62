"""count() and profile(): what a run will look like, before it runs."""

from __future__ import annotations

import math

import oracle
import pytest

from linnet.programs import TileProgram

CHOLESKY = """
def cholesky(A: In, O: Out(fill=0), S: Temp("A"), N: int):
    for i in range(N):
        O[i, i] = t_one(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = t_uno(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = t_counted(S[i, j, k], O[j, i], O[k, i])
"""


@pytest.fixture(scope="module")
def cholesky() -> TileProgram:
    return TileProgram.from_source(CHOLESKY)


@pytest.mark.parametrize("n", [0, 1, 2, 10, 100, 4096])
def test_tasks_per_kernel_in_closed_form(cholesky: TileProgram, n: int) -> None:
    bound = cholesky.bind(N=n)
    assert bound.count() == n * (n + 1) * (n + 2) // 6
    if n <= 100:
        by_kernel = bound.profile().by_kernel
        assert by_kernel.get("t_one", 0) == n
        assert by_kernel.get("t_uno", 0) == math.comb(n, 2)
        assert by_kernel.get("t_counted", 0) == math.comb(n + 1, 3)


@pytest.mark.parametrize("n", [1, 2, 10, 30])
def test_cholesky_takes_three_steps_a_column(cholesky: TileProgram, n: int) -> None:
    profile = cholesky.bind(N=n).profile()
    assert profile.critical_path == 3 * n - 2
    assert int(profile.parallelism.sum()) == profile.tasks
    assert len(profile.working_set) == len(profile.parallelism)
    assert int(profile.working_set.min()) >= 0


def test_parallelism_rises_and_falls_as_in_figure_1(cholesky: TileProgram) -> None:
    steps = cholesky.bind(N=20).profile().parallelism.tolist()
    assert steps[:3] == [1, 19, 190]
    assert steps[-1] == 1
    assert max(steps) == 190


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("for i in range(N):\n        for j in range(i, N):\n            O[i, j] = t_one(A[i])", lambda n: n * (n + 1) // 2),
        ("for i in range(0, N, 3):\n        O[i] = t_one(A[i])", lambda n: -(-n // 3)),
        ("for i in range(N):\n        if i % 2 == 0 or i % 3 == 0:\n            O[i] = t_one(A[i])",
         lambda n: sum(i % 2 == 0 or i % 3 == 0 for i in range(n))),
        ("for i in range(N - 1, -1, -2):\n        for j in range(min(i, 5)):\n            O[i, j] = t_one(A[i])",
         lambda n: sum(min(i, 5) for i in range(n - 1, -1, -2))),
    ],
)  # fmt: skip
def test_counts_of_affine_loops_at_any_size(body: str, count) -> None:
    program = TileProgram.from_source(f"def p(A: In, O: Out, N: int):\n    {body}\n")
    for n in (0, 1, 2, 3, 17, 1000):
        assert program.bind(N=n).count() == count(n)
    exact = {10**6: "counted", 10**9: "counted"}
    for n in exact:
        small, step = program.bind(N=n).count(), program.bind(N=n + 6).count()
        assert isinstance(small, int)
        assert step > small > n // 4


def test_counting_does_not_list_the_tasks(cholesky: TileProgram) -> None:
    n = 10**9
    assert cholesky.bind(N=n).count() == n * (n + 1) * (n + 2) // 6


WORK = """
def work(A: In, O: Out, P: Out, N: int):
    for i in range(N):
        O[i] = t_listed(A[i, 0:i], i + 1)
    for j in range(N):
        P[j] = t_counted(O[j], A[j, 0:N:2])
"""


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_flops_and_bytes_are_the_sum_over_all_tasks(n: int) -> None:
    trace = oracle.run(WORK, {"N": n})
    expected_flops = expected_tiles = 0
    for call in trace.calls.values():
        expected_tiles += len(call.tiles_read()) + len(call.tiles_written())
        first = call.args[0]
        expected_flops += 10 * len(first) + call.args[1] if call.kernel == "t_listed" else 2 * 16 * 16
    profile = TileProgram.from_source(WORK).bind(N=n).profile(tile=16, dtype="float32")
    assert profile.flops == expected_flops
    assert profile.bytes == expected_tiles * 16 * 16 * 4


def test_flops_are_unknown_where_a_kernel_or_the_tile_is_silent(cholesky: TileProgram) -> None:
    assert TileProgram.from_source(WORK).bind(N=3).profile().flops is None
    assert TileProgram.from_source(WORK).bind(N=3).profile().bytes is None
    assert cholesky.bind(N=3).profile(tile=8).flops is None


@pytest.mark.slow  # importing matplotlib
@pytest.mark.needs("matplotlib")
def test_the_profile_is_drawn(cholesky: TileProgram, tmp_path) -> None:
    path = tmp_path / "profile.svg"
    cholesky.bind(N=12).profile().plot(path)
    assert b"<svg" in path.read_bytes()
