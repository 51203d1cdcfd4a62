"""Spec row T7: bytes made to harm, with a right checksum. They are refused, quickly, and never run."""

from __future__ import annotations

import builtins
import os
import resource
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_programs import examples, many_examples
from wire_bytes import BODY, load, sealed

from linnet.errors import BindError, ProgramError
from linnet.programs import TileProgram

pytestmark = pytest.mark.timeout(60)  # no bytes may make loading hang; the usual answer takes milliseconds


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any way to run or import something that a program could have named is a trap here."""

    def trap(*arguments: Any, **keywords: Any) -> Any:
        raise AssertionError(f"code ran: {arguments}")

    monkeypatch.setattr(os, "system", trap)
    monkeypatch.setattr(builtins, "input", trap)
    monkeypatch.setattr(builtins, "breakpoint", trap)
    yield


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Whoever takes a size in a program at its word runs out of memory here, not on the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@examples(300)
@given(st.binary(max_size=200))
def test_any_body(body: bytes) -> None:
    assert load(sealed(body)) is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


@examples(200)
@given(JSON)
def test_any_structure(body: Any) -> None:
    assert load(sealed(body)) is None


def nodes(tree: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield path
    if isinstance(tree, list):
        for place, part in enumerate(tree):
            yield from nodes(part, (*path, place))


def replaced(tree: Any, path: tuple[int, ...], value: Any) -> Any:
    if not path:
        return value
    return [replaced(part, path[1:], value) if k == path[0] else part for k, part in enumerate(tree)]


PATHS = list(nodes(BODY))
HOSTILE = [
    None, True, -1, 2**63 - 1, -(2**63), 1.5, float("nan"), float("inf"), "", "x" * 1000, b"bytes", [], {}, [[]],
    "__import__('os').system('true')", "os.system", "__builtins__", "a b", "lambda: 0", "x\n", "\x00", "N)", "None",
    ["run"], ["for"], ["tile"], ["range", 0, 1, 0], ["**", 9, ["**", 9, 9]], ["//", 1, 0], ["1-", "N"], ["?", 1, 2, 3],
    ["[]", "N", 0], ["int", "9" * 4000], ["int", "x"], ["ceil_log2", 0], ["min"], ["exec", "N"], ["const", [1]],
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS[:: max(1, len(PATHS) // 60)], ids=str)
def test_a_hostile_value_anywhere(path: tuple[int, ...]) -> None:
    """A replaced part is refused, or is a program like any other (another number, another name)."""
    for value in HOSTILE:
        program = load(sealed(replaced(BODY, path, value)))
        if program is not None:
            assert TileProgram.from_bytes(program.to_bytes()).to_bytes() == program.to_bytes()
            exercise(program, value)


@examples(150)
@given(st.sampled_from(PATHS), JSON)
def test_a_random_value_anywhere(path: tuple[int, ...], value: Any) -> None:
    program = load(sealed(replaced(BODY, path, value)))
    if program is not None:
        exercise(program, value)


@examples(150)
@given(st.sampled_from(PATHS), st.sampled_from(PATHS))
def test_one_part_in_place_of_another(path: tuple[int, ...], other: tuple[int, ...]) -> None:
    value: Any = BODY
    for place in other:
        value = value[place]
    program = load(sealed(replaced(BODY, path, value)))
    if program is not None:
        exercise(program, value)


def exercise(program: TileProgram, value: Any) -> None:
    """Whatever was loaded must answer or refuse in Linnet's own words."""
    repr(program)
    if any(isinstance(part, int) and abs(part) > 10**6 for part in leaves(value)):
        return  # a loop of that length is a program too: listing the children of a task takes as long
    try:
        bound = program.bind(**dict.fromkeys(program.sizes, 2))
        for _, task in zip(range(20), bound.tasks(), strict=False):
            bound.children(task)
            bound.parents(task)
            bound.call(task)
    except (ProgramError, BindError):
        pass


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))
    else:
        yield value


def program_with(statements: list[Any], parameters: list[Any] | None = None) -> bytes:
    roles = parameters or [["A", "in"], ["O", "out", None], ["N", "size"]]
    return sealed(["p", roles, [], [], statements, "p.py"])


def run(index: Any, kernel: str = "t_one") -> list[Any]:
    return ["run", kernel, [["tile", "O", index]], [["tile", "A", index]], [], 1]


def nested(depth: int, wrap: Any, core: Any) -> Any:
    for _ in range(depth):
        core = wrap(core)
    return core


def test_the_plain_hostile_program_is_a_program() -> None:
    assert load(program_with([["for", "i", 0, "N", 1, [run("i")]]])) is not None


@pytest.mark.parametrize(
    "role",
    [
        ["temp"],
        ["temp", None],  # as version 1 has it
        ["temp", None, None, None],
        ["temp", None, "0"],
        ["temp", None, [0]],
        ["temp", None, {"fill": 0}],
        ["temp", 0, 0],
        ["temp", "A", 0],
        ["temp", "B", None],
        ["temp", "A b", None],
    ],
)
def test_roles_of_intermediate_arrays(role: list[Any]) -> None:
    statements = [run(0), ["run", "t_one", [["tile", "S", 1, 0]], [["tile", "A", 0]], [], 1]]
    roles = [["A", "in"], ["O", "out", None], ["N", "size"]]
    assert load(program_with(statements, [*roles, ["S", "temp", None, 0.5]])) is not None
    assert load(program_with(statements, [*roles, ["S", *role]])) is None


def test_the_first_version_has_no_fills_of_intermediate_arrays() -> None:
    body = ["p", [["A", "in"], ["O", "out", None], ["S", "temp", None]], [], [], [run(0)], "p.py"]
    assert load(sealed(body, version=1)) is not None
    body[1][2] = ["S", "temp", None, 0]
    assert load(sealed(body, version=1)) is None


@pytest.mark.parametrize("depth", [90, 99, 101, 1000, 100_000])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda e: ["+", e, 1],
        lambda e: ["1-", e],
        lambda e: ["?", ["<", "N", 1], e, 0],
        lambda e: ["min", e, 1],
    ],
    ids=["sum", "minus", "choice", "min"],
)
def test_deep_expressions(depth: int, wrap: Any) -> None:
    program = load(program_bytes(packed_deep(depth, wrap)))
    assert program is None or depth <= 100


def packed_deep(depth: int, wrap: Any) -> bytes:
    """Nested without recursion: the wrapped form is cut around its hole and repeated."""
    hole = "\x01hole"
    before, after = msgpack.packb(wrap(hole)).split(msgpack.packb(hole))[:2]
    return before * depth + msgpack.packb("N") + after * depth


def program_bytes(expression: bytes) -> bytes:
    hole = "\x01hole"
    body = ["p", [["A", "in"], ["O", "out", None], ["N", "size"]], [], [], [run(hole)], "p.py"]
    return sealed(msgpack.packb(body).replace(msgpack.packb(hole), expression))


@pytest.mark.slow
@pytest.mark.usefixtures("little_memory")
def test_deep_loops_and_branches() -> None:
    for depth in (20, 50, 99, 150, 2000):
        loops: Any = [run("i0")]
        branches: Any = [run("N")]
        for level in range(min(depth, 400)):
            loops = [["for", f"i{level}", 0, "N", 1, loops]]
            branches = [["if", ["<", "N", level], branches, branches[:1]]] if level < 10 else branches
        load(program_with(loops))
        load(program_with(branches))


@pytest.mark.usefixtures("little_memory")
def test_many_statements() -> None:
    load(program_with([run(k) for k in range(300)]))
    load(program_with([["if", ["<", "N", k], [run(k)], []] for k in range(100)]))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "index", [["**", 2, "i"], ["*", "i", "i"], ["%", "i", "N"], ["ceil_log2", ["+", "i", 1]]]
)
@pytest.mark.parametrize("stop", [10**9, 2**62, ["**", 2, 60], ["*", "N", 10**12]])
def test_huge_loops_are_not_walked(index: Any, stop: Any) -> None:
    """A program that is not affine is checked at small sizes; sizes written into it can be anything."""
    load(program_with([["for", "i", 0, stop, 1, [run(index)]]]))


@pytest.mark.usefixtures("little_memory")
def test_huge_nests_are_not_walked() -> None:
    body: Any = [run(["**", 2, ["+", "i0", "i11"]])]
    for level in reversed(range(12)):
        body = [["for", f"i{level}", 0, ["+", "N", 5], 1, body]]
    load(program_with(body))


@pytest.mark.usefixtures("little_memory")
def test_huge_tables_ranges_and_powers() -> None:
    wide = [
        "run",
        "t_one",
        [["tile", "O", ["range", 0, 2**61, 1]]],
        [["tile", "A", ["range", 0, 2**61, 3]]],
        [],
        1,
    ]
    load(program_with([wide]))
    load(
        sealed(
            [
                "p",
                [["A", "in"], ["O", "out", None]],
                [["T", list(range(100_000))]],
                [],
                [run(["[]", "T", 5])],
                "p",
            ]
        )
    )
    for expression in (
        ["**", 2**62, 62],
        ["**", 10, ["**", 10, 10]],
        ["*", 2**62, 2**62],
        ["//", 1, ["-", "N", "N"]],
    ):
        load(program_with([run(expression)]))


def test_names_that_are_code_are_refused() -> None:
    for name in ("__import__('os')", "a.b", "x; y", "x y", "", "1x", "class", "x[0]", "x\n"):
        assert load(program_with([["for", name, 0, "N", 1, [run(name)]]])) is None
        assert (
            load(sealed([name, [["A", "in"], ["O", "out", None], ["N", "size"]], [], [], [run("N")], "p"]))
            is None
        )
        assert (
            load(sealed(["p", [[name, "in"], ["O", "out", None], ["N", "size"]], [], [], [run("N")], "p"]))
            is None
        )
    for kernel in ("os.system('x')", "t_one; 1", "", "t one", ".", "a..b"):
        assert load(program_with([run("N", kernel)])) is None


def test_names_of_builtins_are_only_names() -> None:
    """Generated text never holds a name from the program, so these cannot reach what they name."""
    body = [
        ["for", "__import__", 0, "N", 1, [["let", "eval", ["+", "__import__", 1]], run(["*", "eval", 2])]]
    ]
    program = load(program_with(body))
    assert program is not None
    bound = program.bind(N=3)
    assert [bound.call(task).outputs[0].index for task in bound.tasks()] == [(2,), (4,), (6,)]


def test_a_kernel_that_is_not_registered_travels_but_says_so() -> None:
    """A queue may hold programs for workers that have other kernels."""
    program = load(program_with([["for", "i", 0, "N", 1, [run("i", "t_elsewhere")]]]))
    if program is not None:
        assert program.bind(N=1).call(next(iter(program.bind(N=1).tasks()))).kernel == "t_elsewhere"


@pytest.mark.long
@pytest.mark.timeout(3600)
@many_examples(20_000)
@given(st.sampled_from(PATHS), JSON | st.sampled_from(HOSTILE))
def test_random_values_anywhere_for_long(path: tuple[int, ...], value: Any) -> None:
    program = load(sealed(replaced(BODY, path, value)))
    if program is not None:
        exercise(program, value)
