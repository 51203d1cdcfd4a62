"""Plans of contractions, carried out step by step, against `np.einsum`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.arrays.functions.contraction_order import from_lists, fused, plan, resolve
from linnet.kernels import contract

ORDERS = [True, False, "greedy", "optimal", "dp", ("greedy", 10)]


@st.composite
def problems(draw):
    """A spec as users write them, and arrays for it: ellipses, broadcasting, diagonals, empty axes."""
    lengths = {c: draw(st.sampled_from([2, 3, 1, 0, 4])) for c in "abcXY"}
    wide = draw(st.lists(st.sampled_from([2, 3, 1]), max_size=2))
    inputs, shapes = [], []
    for _ in range(draw(st.integers(1, 5))):
        letters = draw(st.lists(st.sampled_from("abcXY"), max_size=3))
        shape = [lengths[c] for c in letters]
        if len(set(letters)) == len(letters):  # axes of length 1 broadcast
            shape = [1 if draw(st.integers(0, 9)) == 0 else n for n in shape]
        part = "".join(letters)
        if draw(st.booleans()):
            at = draw(st.integers(0, len(part)))
            own = wide[draw(st.integers(0, len(wide))) :]
            part = f"{part[:at]}...{part[at:]}"
            shape = [*shape[:at], *(1 if draw(st.integers(0, 5)) == 0 else n for n in own), *shape[at:]]
        inputs.append(part)
        shapes.append(tuple(shape))
    spec = ",".join(inputs)
    if draw(st.booleans()):
        present = sorted(set(spec) - set(".,"))
        out = draw(st.permutations(present))[: draw(st.integers(0, len(present)))]
        at = draw(st.integers(0, len(out)))
        spec += "->" + "".join(out[:at]) + ("..." if "..." in spec else "") + "".join(out[at:])
    return spec, shapes


def arrays_of(shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


def carried_out(steps, arrays):
    known = list(arrays)
    for step in steps:
        operands = [known[number] for number in step.operands]
        known.append(np.einsum(step.spec, *operands))
        assert known[-1].shape == step.shape
    return known[-1] if steps else known[0]


@settings(max_examples=300)
@given(problems(), st.sampled_from(ORDERS))
def test_plans_give_what_einsum_gives(problem, optimize):
    spec, shapes = problem
    arrays = arrays_of(shapes)
    expected = np.einsum(spec, *arrays)
    steps = plan(spec, shapes, optimize)
    np.testing.assert_allclose(carried_out(steps, arrays), expected, atol=1e-10)
    for step in steps:
        check_step(step)
    joined = fused(steps, len(shapes))
    assert sum(step.flops for step in joined) == sum(step.flops for step in steps)
    np.testing.assert_allclose(carried_out(joined, arrays), expected, atol=1e-10)


def check_step(step):
    before, _, out = step.spec.partition("->")
    inputs = before.split(",")
    if step.kind == "diagonal":
        assert out == "".join(dict.fromkeys(before)) != before
    elif step.kind == "sum":
        assert set(out) < set(before)
        assert len(set(before)) == len(before)
    elif step.kind == "transpose":
        assert sorted(out) == sorted(before)
        assert out != before
    else:
        first, second = inputs
        assert len(set(first)) == len(first)
        assert len(set(second)) == len(second)
        # Letters of one operand only are in the result: others were summed over before.
        assert set(first) ^ set(second) <= set(out)


@settings(max_examples=50)
@given(problems())
def test_the_kernel_runs_the_steps(problem):
    spec, shapes = problem
    known = arrays_of(shapes)
    expected = np.einsum(spec, *known)
    steps = fused(plan(spec, shapes), len(shapes))
    for step in steps:
        known.append(contract(*(known[number] for number in step.operands), spec=step.spec))
    np.testing.assert_allclose(known[-1] if steps else known[0], expected, atol=1e-10)


def test_the_cheaper_order_is_taken():
    shapes = [(1000, 1000), (1000, 1000), (1000, 1)]
    assert sum(step.flops for step in plan("ij,jk,kl->il", shapes)) == 2 * 2 * 1000 * 1000
    assert sum(step.flops for step in plan("ij,jk,kl->il", shapes, False)) > 1e9


def test_products_are_joined_only_where_nothing_is_computed_twice():
    chain = plan("ij,jk,kl->il", [(50, 50)] * 3)
    assert fused(chain, 3) == chain
    mttkrp = plan("ijk,jr,kr->ir", [(40, 40, 40), (40, 9), (40, 9)], False)
    assert [step.spec for step in mttkrp] == ["ijk,jr->ikr", "kr,ikr->ir"]
    (one,) = fused(mttkrp, 3)
    assert (one.operands, one.spec) == ((2, 0, 1), "kr,ijk,jr->ir")


def test_operands_as_they_are_need_no_step():
    assert plan("ij->ij", [(2, 3)]) == []
    assert plan("...", [(2, 3)]) == []
    assert plan("", [()]) == []


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("subscripts", [([0, 1], [1, 2]), ([27, 3], [3, 51]), ([..., 1, 0], [0, ...])])
def test_subscripts_as_lists(subscripts, explicit):
    rng = np.random.default_rng(0)
    first, second = subscripts
    x = rng.standard_normal((2, 3, 3) if ... in first else (2, 3))
    y = rng.standard_normal((3, 2) if ... in second else (3, 4))
    flat = [i for i in (*first, *second) if i is not ...]
    out = [[..., *sorted({i for i in flat if flat.count(i) == 1}, reverse=True)]] if explicit else []
    arguments = [x, first, y, second, *out]
    spec, operands = from_lists(arguments)
    assert operands[0] is x
    assert operands[1] is y
    steps = plan(spec, [x.shape, y.shape])
    np.testing.assert_allclose(carried_out(steps, operands), np.einsum(*arguments))


@pytest.mark.parametrize(
    ("spec", "shapes", "words"),
    [
        ("ij,jk", [(2, 3), (4, 5)], "einsum 'ij,jk': 'j' has length 3 in one operand and 4 in another"),
        ("ii", [(2, 3)], "'i' stands for axes of lengths 2 and 3 in an operand of shape (2, 3)"),
        ("ij", [(2,)], "'ij' names 2 axes, but the operand has 1, shape (2,)"),
        ("i", [(2, 2)], "'i' names 1 axes, but the operand has 2"),
        ("ij...", [(2,)], "names at least 2 axes"),
        ("i,i", [(2,)], "names 2 operands, got 1"),
        ("i->j", [(2,)], "'j' of the result is in no operand"),
        ("i->ii", [(2,)], "'i' stands more than once in the result"),
        ("i1", [(2, 2)], "'1' in 'i1' is not a letter"),
        ("i..", [(2, 2)], "'.' in 'i..' is not a letter"),
        ("...i...", [(2, 2)], "is not a letter; a spec has letters, '...' once"),
        ("i->i->i", [(2,)], "is not a letter"),
        ("...i->i", [(2, 2)], "write '...' after '->'"),
    ],
)
def test_wrong_specs_are_refused_as_einsum_does(spec, shapes, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        plan(spec, shapes)
    with pytest.raises(ValueError):  # noqa: PT011 — that it refuses, too, is the point
        np.einsum(spec, *(np.ones(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("optimize", "words"),
    [
        ("fast", "optimize='fast' is not known; use True, False, a list of positions"),
        ([(0, 5)], "the step (0, 5) of the path does not fit 3 arrays"),
        ([(0, 1)], "leaves 2 arrays of 3; it must leave one"),
        ([(0, 0), (0, 1)], "the step (0, 0)"),
    ],
)
def test_wrong_orders_are_refused(optimize, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        plan("i,i,i", [(2,)] * 3, optimize)


@pytest.mark.parametrize("path", [["einsum_path", (0, 1), (0, 1)], [(0, 1, 2)], [(1, 2), (0, 1)]])
def test_a_given_order_is_followed(path):
    arrays = arrays_of([(3, 4), (4, 5), (5, 2)])
    steps = plan("ij,jk,kl", [a.shape for a in arrays], path)
    assert len(steps) == 2
    np.testing.assert_allclose(carried_out(steps, arrays), np.einsum("ij,jk,kl", *arrays))


def test_subscripts_that_are_no_integers_are_refused():
    with pytest.raises(TypeError, match=r"integers or \.\.\., got 'i'"):
        from_lists([1.0, ["i"]])
    with pytest.raises(ValueError, match="from 0 to 51, got 52"):
        from_lists([1.0, [52]])


def test_ellipses_need_letters_that_are_free():
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    with pytest.raises(ValueError, match="more than the 52 letters"):
        resolve(letters + "...", [(1,) * 53])
