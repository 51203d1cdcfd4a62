"""Spec row T6: on random programs the analysis agrees with brute force, in what it accepts and refuses.

For a program and a handful of sizes (0 and 1 among them), the oracle says whether the
program is valid and what its graph is. Then

- a valid program is never refused, and every query agrees with the oracle;
- a refusal is justified: at the sizes it names (or at small ones) the oracle sees a violation;
- a program called proven has no violation at any size looked at;
- an unproven program with a violation is refused when defined, bound, or its tasks are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import oracle
import pytest
from agreement import compare
from hypothesis import event, given, note
from oracle import Trace
from random_programs import Sample, examples, many_examples, programs

from linnet.errors import BindError, ProgramError
from linnet.programs import TileProgram

ONE_SIZE = (0, 1, 2, 3, 5)
TWO_SIZES = ((0, 0), (1, 0), (0, 2), (1, 1), (2, 3), (3, 2), (4, 4))


def traces(sample: Sample) -> Iterator[tuple[dict[str, int], Trace | None]]:
    """The oracle's word at several sizes; None where the program's own `assert` excludes them."""
    several = TWO_SIZES if len(sample.sizes) == 2 else [(n,) for n in ONE_SIZE]
    for values in several:
        sizes = dict(zip(sample.sizes, values, strict=True))
        try:
            yield sizes, oracle.run(sample.source, sizes | sample.tables, sample.constants)
        except AssertionError:
            yield sizes, None
        except oracle.TooLongError:
            continue


def check(sample: Sample) -> None:
    note(sample.source)
    seen = list(traces(sample))
    bad = [(sizes, trace) for sizes, trace in seen if trace is not None and not trace.valid]
    try:
        program = TileProgram.from_source(sample.source, constants=sample.constants)
    except ProgramError as error:
        event("refused when defined")
        assert bad or justified(sample, str(error)), f"refused without reason:\n{error}"
        return
    event("proven" if program.proven else "unproven")
    if program.proven:
        assert not bad, f"proven, but at {bad[0][0]}: {bad[0][1].problems()}"
    for sizes, trace in seen:
        if trace is None:
            with pytest.raises(BindError):
                program.bind(**sizes, **sample.tables)
            continue
        note(f"at {sizes}")
        if trace.valid:
            compare(program.bind(**sizes, **sample.tables), trace)
        else:
            event("refused when bound or listed")
            with pytest.raises(ProgramError):
                program.bind(**sizes, **sample.tables).task_arrays()


def justified(sample: Sample, message: str) -> bool:
    """Whether there is a violation at the sizes the message names, or at others not tried yet."""
    named = re.findall(r"when ((?:\w+ = \d+(?:, )?)+)", message)
    wanted = [{k: int(v) for k, v in re.findall(r"(\w+) = (\d+)", text)} for text in named]
    wanted += [dict(zip(sample.sizes, v, strict=True)) for v in product(range(9), repeat=len(sample.sizes))]
    for sizes in wanted:
        try:
            trace = oracle.run(sample.source, sizes | sample.tables, sample.constants, limit=200_000)
        except (AssertionError, oracle.TooLongError):
            continue
        if not trace.valid:
            return True
    return False


@pytest.mark.slow
@examples(45)
@given(programs(wild=False))
def test_valid_programs(sample: Sample) -> None:
    check(sample)


@pytest.mark.slow
@examples(45)
@given(programs(wild=True))
def test_wild_programs(sample: Sample) -> None:
    check(sample)


@pytest.mark.slow
@examples(45)
@given(programs(affine=True))
def test_affine_programs_are_decided_when_defined(sample: Sample) -> None:
    """Affine programs are proved or refused, for all sizes: never left open."""
    check(sample)
    try:
        program = TileProgram.from_source(sample.source)
    except ProgramError:
        return
    assert program.proven


@pytest.mark.long
@pytest.mark.timeout(3600)
@many_examples(3000)
@given(programs(wild=False))
def test_valid_programs_for_long(sample: Sample) -> None:
    check(sample)


@pytest.mark.long
@pytest.mark.timeout(3600)
@many_examples(3000)
@given(programs(wild=True))
def test_wild_programs_for_long(sample: Sample) -> None:
    check(sample)


@pytest.mark.long
@pytest.mark.timeout(3600)
@many_examples(3000)
@given(programs(affine=True))
def test_affine_programs_for_long(sample: Sample) -> None:
    check(sample)
