"""What has no derivative is refused when the derivative is asked for, in words that say why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln

X = np.array([1.0, 2.0, 3.0])
LEAK: list[Any] = []


def refused(words: str, call: Any) -> None:
    with pytest.raises(ln.DerivativeError, match=words):
        call()


def test_the_error_is_a_type_error():
    assert issubclass(ln.DerivativeError, TypeError)
    assert issubclass(ln.DerivativeError, ln.LinnetError)


def test_arguments_that_are_no_floats():
    refused(
        r"argument 0 of ln.grad is int64.*convert it \(x.astype\(float\)\)",
        lambda: ln.grad(ln.sum)(np.arange(3)),
    )
    refused(r"argument 0 of ln.grad is bool", lambda: ln.grad(ln.sum)(np.array([True])))
    refused(r"primal 1 of ln.jvp is int64", lambda: ln.jvp(ln.add, (X, np.arange(3)), (X, X)))
    refused(r"primal 0 of ln.vjp is int64", lambda: ln.vjp(ln.sum, 3))


def test_arguments_and_results_that_are_no_arrays():
    refused(
        r"argument 0 of ln.grad is a dict.*each array as an argument of its own",
        lambda: ln.grad(lambda p: p["a"])({"a": X}),
    )
    refused(r"primal 0 of ln.vjp is None", lambda: ln.vjp(ln.sum, None))
    refused(r"returned a dict; functions that are differentiated", lambda: ln.grad(lambda x: {"a": x})(X))
    refused(r"<lambda> returned None", lambda: ln.vjp(lambda x: None, X))


def test_results_that_are_no_numbers():
    refused(
        r"returned an array of shape \(3,\): sum it, or use ln.jacobian", lambda: ln.grad(lambda x: x * 2)(X)
    )
    refused(r"returned a tuple: use ln.vjp", lambda: ln.grad(lambda x: (x[0], x[1]))(X))
    refused(r"real floating-point number, not int64", lambda: ln.grad(lambda x: ln.argmax(x))(X))
    refused(r"real floating-point number, not complex128", lambda: ln.grad(lambda x: x[0] * 1j)(X))
    refused(r"floating-point arrays, not int64", lambda: ln.jacobian(ln.argsort)(X))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("histogram", lambda x: ln.histogram(x)[0][0] * x[0]),
        ("unique", lambda x: ln.unique(x)[0]),
        ("map_blocks", lambda x: ln.sum(ln.map_blocks(np.sin, x))),
        ("linalg.lu", lambda x: ln.sum(ln.linalg.lu(ln.outer(x, x) + ln.eye(3))[2])),
        ("linalg.eig", lambda x: ln.sum(ln.real(ln.linalg.eig(ln.outer(x, x))[0]))),
        ("polyfit", lambda x: ln.polyfit(X, x, 1)[0]),
        ("packbits", lambda x: ln.packbits(x)),
        ("to_npy", lambda x: ln.to_npy(x, "nowhere.npy")),
    ],
)  # fmt: skip
def test_functions_without_a_rule_are_named(name: str, call: Any):
    refused(rf"^{name} has no rule of derivatives", lambda: ln.grad(call)(X))


def test_parts_of_functions_that_have_no_rule():
    square = np.eye(3)[:2]
    refused(
        r"linalg.svd has a rule of derivatives for full_matrices=False", lambda: ln.vjp(ln.linalg.svd, square)
    )
    refused(r"linalg.qr has a rule.*shape \(2, 3\)", lambda: ln.vjp(ln.linalg.qr, square))
    refused(
        r"pad has no rule of derivatives for mode='mean'",
        lambda: ln.vjp(lambda x: ln.pad(x, 1, mode="mean"), X),
    )
    refused(r"quantile has a rule.*'lower'", lambda: ln.vjp(lambda x: ln.quantile(x, 0.5, method="lower"), X))
    refused(r"np.hypot.reduce has no rule", lambda: ln.vjp(lambda x: np.hypot.reduce(x), X))


@pytest.mark.parametrize(
    ("what", "call"),
    [
        (r"float\(\)", lambda x: float(x[0])), (r"compute\(\)", lambda x: x.compute()), (r"item\(\)", lambda x: x[0].item()),
        (r"np.asarray\(\)", lambda x: np.asarray(x)), (r"tolist\(\)", lambda x: x.tolist()), (r"compute\(\)", lambda x: ln.compute(x)),
    ],
)  # fmt: skip
def test_values_that_would_lose_the_derivative(what: str, call: Any):
    refused(
        rf"^{what} asks for the values of an array of shape .*the derivative would be lost",
        lambda: ln.grad(call)(X),
    )


def test_arrays_that_are_kept_from_a_finished_derivative():
    LEAK.clear()
    ln.grad(lambda x: LEAK.append(x * 2) or ln.sum(x))(X)
    refused(r"belongs to a derivative that is finished; return what you need", lambda: LEAK[0] + 1)


def test_tangents_and_cotangents_that_do_not_fit():
    refused(
        r"tangent 0 of ln.jvp has shape \(2,\); it must have the shape \(3,\)",
        lambda: ln.jvp(ln.sin, (X,), (X[:2],)),
    )
    refused(r"takes primals in a tuple, not ndarray: write \(x,\)", lambda: ln.jvp(ln.sin, X, X))
    refused(r"given 1 primals, but 2 tangents", lambda: ln.jvp(ln.sin, (X,), (X, X)))
    refused(r"the cotangent has shape \(2,\)", lambda: ln.vjp(ln.sin, X)[1](X[:2]))
    refused(r"returned 2 arrays, but 1 cotangents", lambda: ln.vjp(lambda x: (x, x), X)[1]([X]))
    refused(r"tangent 0 of ln.jvp is complex128", lambda: ln.jvp(ln.sin, (X,), (X * 1j,)))


def test_argnums_that_name_no_argument():
    with pytest.raises(ValueError, match=r"argnums=1 of ln.grad: the function was called with 1 arguments"):
        ln.grad(ln.sum, 1)(X)
    with pytest.raises(ValueError, match=r"names an argument twice"):
        ln.grad(ln.add, (0, -2))(X, X)
    with pytest.raises(
        TypeError, match=r"argnums of ln.grad must be an integer or a tuple of integers, not 'x'"
    ):
        ln.grad(ln.sum, "x")(X)
    for mode in (ln.grad, ln.value_and_grad, ln.jacobian, ln.hessian, ln.checkpoint, ln.custom_vjp, ln.vjp):
        with pytest.raises(TypeError, match="takes a function, not int"):
            mode(3)


def test_rules_of_the_users_own_that_do_not_fit():
    @ln.custom_vjp
    def own(x: Any, y: Any) -> Any:
        return x * y

    own.defvjp(lambda x, y: x * y, lambda kept, g: (g, g))
    refused(r"own: forward must return a pair", lambda: ln.grad(lambda x: ln.sum(own(x, 2.0)))(X))
    own.defvjp(lambda x, y: (x * y, y), lambda kept, g: g)
    refused(
        r"own: backward must return a tuple of 2 weights", lambda: ln.grad(lambda x: ln.sum(own(x, 2.0)))(X)
    )
    own.defvjp(lambda x, y: (x * y, y), lambda kept, g: (g[:1], None))
    refused(
        r"what backward of own returned has shape \(1,\)", lambda: ln.grad(lambda x: ln.sum(own(x, 2.0)))(X)
    )
    outside: list[Any] = []

    def f(x: Any) -> Any:
        outside[:] = [x]
        return ln.sum(ln.checkpoint(lambda y: y * outside[0])(x * 2))

    refused(r"is being differentiated and is not among its arguments; give it as one", lambda: ln.grad(f)(X))


def test_errors_of_the_function_itself_are_its_own():
    with pytest.raises(ValueError, match="broadcast"):
        ln.grad(lambda x: ln.sum(x + np.ones(2)))(X)
    with pytest.raises(ZeroDivisionError):
        ln.grad(lambda x: x[0] / (1 // 0))(X)
    with pytest.raises(TypeError, match="cannot be written over int64"):
        ln.grad(lambda x: ln.sum(ln.asarray([1, 2, 3]).__iadd__(x)))(X)
