"""What users call: shapes of results, composition, laziness, what is passed through, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln

RNG = np.random.default_rng(5)
X, W = RNG.normal(size=(6, 4)), RNG.normal(size=4)


def quartic(x: Any) -> Any:
    return ln.sum((x @ x) * ln.sin(x) + x**3)


def differences(f: Any, x: Any, step: float = 1e-5) -> Any:
    """The gradient by differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        change = np.zeros_like(x)
        change[place] = step
        found[place] = (np.asarray(f(ln.asarray(x + change))) - np.asarray(f(ln.asarray(x - change)))) / (
            2 * step
        )
    return found


def test_the_gradient_has_the_shape_and_dtype_of_the_argument_and_is_lazy():
    x = ln.asarray(W.astype(np.float32), chunks=3)
    gradient = ln.grad(quartic)(x)
    assert isinstance(gradient, ln.Array)
    assert (gradient.shape, gradient.dtype) == (x.shape, np.float32)
    np.testing.assert_allclose(gradient, differences(quartic, W), rtol=1e-4)


def test_argnums_in_a_tuple_give_a_tuple_also_of_one():
    def f(x: Any, scale: Any, w: Any) -> Any:
        return ln.sum(scale * (x @ w) ** 2)

    one = ln.grad(f, argnums=2)(X, 3, W)
    alone = ln.grad(f, argnums=(2,))(X, 3, W)
    several = ln.grad(f, argnums=(0, -1))(X, 3, W)
    np.testing.assert_allclose(one, 6 * X.T @ (X @ W))
    assert isinstance(alone, tuple)
    assert len(alone) == 1
    np.testing.assert_array_equal(alone[0], one)
    assert [each.shape for each in several] == [(6, 4), (4,)]
    np.testing.assert_allclose(several[0], 6 * np.outer(X @ W, W))


def test_value_and_gradient_share_what_they_share():
    value, gradient = ln.value_and_grad(lambda x: ln.sum(ln.exp(x)))(ln.asarray(W, chunks=2))
    value, gradient = ln.compute(value, gradient)
    np.testing.assert_allclose(value, np.exp(W).sum())
    np.testing.assert_allclose(gradient, np.exp(W))


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [None, 2])
def test_derivatives_of_derivatives(chunks: Any):
    x = ln.asarray(W, chunks=chunks)
    hessian = np.asarray(ln.hessian(quartic)(x))
    by_differences = np.stack([differences(lambda y, k=k: ln.grad(quartic)(y)[k], W) for k in range(4)])
    np.testing.assert_allclose(hessian, by_differences, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    v = RNG.normal(size=4)
    np.testing.assert_allclose(ln.hvp(quartic, (x,), (v,)), hessian @ v, rtol=1e-10)
    np.testing.assert_allclose(ln.jvp(ln.grad(quartic), (x,), (v,))[1], hessian @ v, rtol=1e-10)
    backwards = ln.grad(lambda y: ln.grad(quartic)(y) @ v)(x)
    np.testing.assert_allclose(backwards, hessian @ v, rtol=1e-10)
    np.testing.assert_allclose(ln.jacobian(ln.jacobian(quartic))(x), hessian, rtol=1e-10)


def test_third_and_fourth_derivatives():
    f = ln.grad(ln.grad(ln.grad(lambda x: x**5 * ln.sin(x))))
    third = ln.compute(f(0.7))
    x, s, c = 0.7, np.sin(0.7), np.cos(0.7)
    np.testing.assert_allclose(third, 60 * x**2 * s + 60 * x**3 * c - 15 * x**4 * s - x**5 * c)


def test_a_derivative_inside_does_not_see_the_one_outside():
    # Siskind and Pearlmutter's example: d/dx (x · d/dy (x + y)) = 1
    found = ln.grad(lambda x: x * ln.grad(lambda y: x + y)(2.0))(3.0)
    assert ln.compute(found) == 1.0


def test_products_with_the_jacobian_have_the_shapes_of_jax():
    def f(x: Any, w: Any) -> Any:
        return ln.tanh(x @ w), ln.sum(w)

    value, pull = ln.vjp(f, X, W)
    assert isinstance(value, tuple)
    of_x, of_w = pull((np.ones(6), np.asarray(2.0)))
    assert (of_x.shape, of_w.shape) == ((6, 4), (4,))
    value, tangent = ln.jvp(f, (X, W), (np.ones((6, 4)), np.zeros(4)))
    assert tangent[0].shape == (6,)
    assert np.asarray(tangent[1]) == 0
    rows = ln.jacobian(lambda x, w: f(x, w)[0], argnums=(0, 1))(X, W)
    assert [each.shape for each in rows] == [(6, 6, 4), (6, 4)]
    np.testing.assert_allclose(rows[1], (1 - np.tanh(X @ W) ** 2)[:, None] * X)
    tall = ln.jacobian(lambda w: ln.asarray(X) @ w)(W[:4])
    np.testing.assert_allclose(tall, X)
    both = ln.hessian(lambda x, w: ln.sum(x * w) ** 2, argnums=(0, 1))(W, W)
    np.testing.assert_allclose(both[0][0], 2 * np.outer(W, W))
    assert len(both) == len(both[1]) == 2
    several = ln.hvp(lambda x, w: ln.sum(x * w) ** 2, (W, W), (W, W))
    assert isinstance(several, tuple)
    np.testing.assert_allclose(several[0], both[0][0].compute() @ W + both[0][1].compute() @ W)


def test_zeros_where_the_function_does_not_depend_on_the_argument():
    x = ln.asarray(X, chunks=4)
    gradient = ln.grad(lambda x, y: ln.sum(y**2))(x, W)
    np.testing.assert_array_equal(gradient, np.zeros_like(X))
    assert gradient.dtype == X.dtype
    np.testing.assert_array_equal(ln.grad(lambda x: ln.sum(ln.floor(x)))(x), np.zeros_like(X))
    np.testing.assert_array_equal(ln.grad(lambda x: 3.0)(x), np.zeros_like(X))
    _, tangent = ln.jvp(lambda x: ln.asarray([1.0, 2.0]), (x,), (x,))
    np.testing.assert_array_equal(tangent, [0, 0])


def test_equal_extremes_share_their_derivative():
    x = ln.asarray([1.0, 3.0, 3.0, 0.0, 3.0], chunks=2)
    np.testing.assert_allclose(ln.grad(ln.max)(x), np.array([0, 1, 1, 0, 1]) / 3)
    np.testing.assert_allclose(ln.grad(lambda x: ln.min(-x))(x), -np.array([0, 1, 1, 0, 1]) / 3)
    np.testing.assert_allclose(ln.grad(lambda x: ln.sum(ln.maximum(x, 3.0)))(x), [0, 0.5, 0.5, 0, 0.5])
    np.testing.assert_allclose(ln.jvp(ln.max, (x,), (np.arange(5.0),))[1], 7 / 3)


def test_what_is_no_number_of_the_reals_passes_through():
    def f(x: Any, which: Any, mask: Any, power: int, name: str) -> Any:
        return ln.sum(ln.where(mask, x[which] ** power, 0)) if name == "sum" else x[0]

    which, mask = ln.asarray([0, 3, 3]), np.array([True, False, True])
    gradient = ln.grad(f)(W, which, mask, 3, name="sum")
    np.testing.assert_allclose(gradient, [3 * W[0] ** 2, 0, 0, 3 * W[3] ** 2])


def test_control_flow_may_look_at_comparisons():
    def f(x: Any) -> Any:
        while x.sum() < 10:
            x = x * 2
        return ln.sum(x) if x[0] > 0 else -ln.sum(x)

    np.testing.assert_array_equal(ln.grad(f)([1.0, 2.0]), [4, 4])


def test_arrays_outside_that_were_assigned_to_keep_their_values():
    kept = ln.zeros(4)

    def f(x: Any) -> Any:
        kept[1:3] = x[1:3] * 2
        return ln.sum(kept**2)

    np.testing.assert_allclose(ln.grad(f)(W), [0, 8 * W[1], 8 * W[2], 0])
    np.testing.assert_allclose(kept, [0, 2 * W[1], 2 * W[2], 0])
    assert type(kept) is ln.Array


def test_assigning_the_same_place_twice_counts_the_last():
    def f(x: Any) -> Any:
        y = ln.zeros(3)
        y[[0, 0, 2]] = x
        return ln.sum(y * ln.asarray([1.0, 10.0, 100.0]))

    np.testing.assert_array_equal(ln.grad(f)([1.0, 2.0, 3.0]), [0, 1, 100])


def test_numpys_functions_and_operands_work_on_either_side():
    def f(x: Any) -> Any:
        y = np.array([1.0, 2, 3, 4]) * x + ln.asarray(W) / x - np.float64(2) ** x
        return np.sum(np.stack([np.sin(y), y @ np.diag(W)])) + np.linalg.norm(x)

    np.testing.assert_allclose(ln.grad(f)(W), differences(f, W), rtol=1e-6)


def test_products_and_cumulative_products_at_zeros():
    x = np.array([2.0, 0.0, 3.0])
    np.testing.assert_allclose(ln.grad(ln.prod)(x), [0, 6, 0])
    np.testing.assert_allclose(ln.hessian(ln.prod)(x), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])
    np.testing.assert_allclose(ln.jacobian(ln.cumprod)(x), [[1, 0, 0], [0, 2, 0], [0, 6, 0]])


def test_complex_arguments_as_in_jax():
    z = np.array([1 + 2j, -0.5 + 1j])
    gradient = ln.grad(lambda z: ln.sum(ln.abs(z) ** 2))(z)
    np.testing.assert_allclose(gradient, 2 * z.conj())  # JAX's convention: what goes uphill is its conjugate
    _, pull = ln.vjp(lambda z: z**2 * 1j, z)
    np.testing.assert_allclose(pull(np.ones(2, complex))[0], 2j * z)


# ---- checkpoint, rules of the user's own


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [None, 2])
def test_checkpoint_gives_equal_bits(chunks: Any):
    x, w = ln.asarray(X, chunks=chunks), ln.asarray(RNG.normal(size=(4, 4)), chunks=chunks)

    def layer(x: Any, w: Any) -> Any:
        return ln.tanh(x @ w) * ln.max(x)

    def deep(x: Any, w: Any, layer: Any) -> Any:
        for _ in range(3):
            x = layer(x, w)
        return ln.sum(x * x)

    plain = ln.value_and_grad(lambda x, w: deep(x, w, layer), (0, 1))(x, w)
    again = ln.value_and_grad(lambda x, w: deep(x, w, ln.checkpoint(layer)), (0, 1))(x, w)
    for one, other in zip((plain[0], *plain[1]), (again[0], *again[1]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(layer(x, w), ln.checkpoint(layer)(x, w))
    v = np.ones((6, 4))
    np.testing.assert_allclose(
        ln.hvp(lambda x: deep(x, w, ln.checkpoint(layer)), (x,), (v,)),
        ln.hvp(lambda x: deep(x, w, layer), (x,), (v,)),
    )


@pytest.mark.slow
def test_checkpoint_computes_the_inside_again():
    from linnet.arrays.expression.graph import graph

    def many(x: Any) -> Any:
        for _ in range(5):
            x = ln.cumsum(ln.sin(x))
        return x

    x = ln.asarray(np.linspace(0, 1, 40), chunks=10)
    plain, again = (ln.grad(lambda x, f=f: ln.sum(f(x) ** 2))(x) for f in (many, ln.checkpoint(many)))
    sines = [
        sum(getattr(entry.node, "op", "") == "sin" for entry in graph([g.__node__]).entries)
        for g in (plain, again)
    ]
    assert sines == [5, 9]  # nobody asks for the last one again
    np.testing.assert_array_equal(plain, again)


def test_rules_of_the_users_own():
    @ln.custom_vjp
    def clipped(x: Any, limit: Any) -> Any:
        return ln.minimum(x, limit)

    plain = ln.grad(lambda x: ln.sum(clipped(x, 0.5)))(W)
    np.testing.assert_array_equal(plain, (W < 0.5) * 1.0)
    clipped.defvjp(lambda x, limit: (ln.minimum(x, limit), x), lambda x, g: (g * 7 * x, None))
    np.testing.assert_allclose(ln.grad(lambda x: ln.sum(clipped(x, 0.5)))(W), 7 * W)
    np.testing.assert_array_equal(clipped(ln.asarray(W), 0.5), np.minimum(W, 0.5))
    np.testing.assert_allclose(ln.jvp(lambda x: clipped(x, 0.5), (W,), (np.ones(4),))[1], 7 * W)
    np.testing.assert_allclose(
        ln.hvp(lambda x: ln.sum(clipped(x, 0.5)), (W,), (np.ones(4),)), np.full(4, 7.0)
    )


def test_a_product_of_nothing_is_one_and_changes_with_nothing():
    x = np.zeros((0, 3))
    value, gradient = ln.value_and_grad(lambda x: ln.sum(ln.prod(x, axis=0)))(x)
    assert float(value) == 3.0
    assert np.asarray(gradient).shape == (0, 3)
    value, tangent = ln.jvp(lambda x: ln.prod(x, axis=0, initial=2.0, keepdims=True), (x,), (x,))
    np.testing.assert_array_equal(value, np.full((1, 3), 2.0))
    np.testing.assert_array_equal(tangent, np.zeros((1, 3)))


def _filled_in(x: Any) -> Any:
    y = ln.zeros(3)
    y[0] = x[0] * 5
    y[1:] = x[1:]
    return y


def _added_up(x: Any) -> Any:
    total = ln.zeros(())
    total += ln.sum(x)
    return total


def _summed_into(x: Any) -> Any:
    total = ln.zeros(())
    ln.sum(x * x, out=total)
    return total


def test_arrays_that_were_written_into_may_be_returned():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ln.jvp(_filled_in, (x,), (x,))[1], [5, 2, 3])
    np.testing.assert_array_equal(ln.jacobian(_filled_in)(x), np.diag([5.0, 1, 1]))
    np.testing.assert_array_equal(ln.grad(_added_up)(x), np.ones(3))
    value, gradient = ln.value_and_grad(_summed_into)(x)
    assert value.compute() == 14
    np.testing.assert_array_equal(gradient, 2 * x)


def test_an_array_written_into_within_two_records_is_an_ordinary_one_afterwards():
    z = ln.zeros(3)

    def outer(a: Any) -> Any:
        def inner(b: Any) -> Any:
            z[0] = b * b * a[0]
            return ln.sum(z)

        return ln.grad(inner)(3.0)

    np.testing.assert_array_equal(ln.grad(outer)(np.array([1.0, 2.0])), [6, 0])
    np.testing.assert_array_equal(z, [9, 0, 0])


def test_checkpoint_refuses_arrays_of_an_inner_derivative_that_are_no_arguments():
    def outer(a: Any) -> Any:
        return ln.grad(lambda b: ln.checkpoint(lambda z: z * b)(a))(2.0)

    with pytest.raises(ln.DerivativeError, match="not among its arguments; give it as one"):
        ln.grad(outer)(3.0)
