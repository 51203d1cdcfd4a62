"""Random programs of many kinds (`kinds_of_programs`): each does what its plain run does, or is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from kinds_of_programs import Programs
from test_random_nests import made

import linnet as ln


def fares(seed: int) -> str:
    """How a program fares: "same", "refused", or what is wrong."""
    case = Programs(seed)
    function = made(case.text)
    plain = {name: each.copy() for name, each in case.arrays.items()}
    given = {
        name: each.copy() if case.chunks is None else ln.asarray(each.copy(), chunks=case.chunks)
        for name, each in case.arrays.items()
    }
    raised: Exception | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = function(**plain)
        except Exception as error:  # whatever Python says of it, ours must not give a value
            raised = error
        try:
            got = np.asarray(ln.loops(function)(**given))
            given = {name: np.asarray(each) for name, each in given.items()}
        except ln.LoopError as error:
            assert error.line > 0
            for name, each in case.arrays.items() if case.chunks is None else ():
                np.testing.assert_array_equal(given[name], each)
            return "refused"
        except (TypeError, IndexError, ln.KernelError) as error:
            return (
                "refused"
                if raised is not None or isinstance(error, IndexError)
                else f"{error!r}\n{case.text}"
            )
    if raised is not None:
        return f"only the plain run says {raised!r}\n{case.text}"
    numbers = [each for each in plain.values() if each.dtype.kind in "fc"]
    if any(np.abs(np.nan_to_num(each.astype(complex))).max(initial=0) > 1e30 for each in numbers):
        return "same"  # beyond these, sums in another order are others
    loose = 2e-3 if "float32" in case.dtypes.values() else 1e-7
    pairs = {name: (given[name], each) for name, each in plain.items()}
    if np.isfinite(np.asarray(expected)).all():
        pairs["s"] = got, np.asarray(expected)
    for name, (mine, theirs) in pairs.items():
        if name != "s" and mine.dtype != theirs.dtype:
            return f"{name} has the dtype {mine.dtype} for {theirs.dtype}\n{case.text}"
        exact = theirs.dtype.kind not in "fc" and mine.dtype.kind not in "fc"
        if not (
            np.array_equal(mine, theirs) if exact
            else np.allclose(mine.astype(complex), theirs.astype(complex), loose, loose, equal_nan=True)
        ):  # fmt: skip
            return f"{name} is {mine!r} for {theirs!r}\n{case.text}"
    return "same"


def test_programs_of_many_kinds_are_the_same_or_refused():
    found = [fares(seed) for seed in range(60)]
    assert [each for each in found if each not in ("same", "refused")] == []
    assert found.count("same") > 15


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("begin", range(1000, 6000, 500))
def test_many_programs_of_many_kinds(begin):
    found = {seed: fares(seed) for seed in range(begin, begin + 500)}
    assert {seed: each for seed, each in found.items() if each not in ("same", "refused")} == {}
