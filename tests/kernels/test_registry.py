"""Registering kernels: what is refused, and the words of it."""

from __future__ import annotations

import pytest

from linnet.errors import KernelDeclarationError, UnknownKernelError
from linnet.kernels import get, kernel, names


def test_shipped_kernels_are_registered():
    assert {"chol", "trsm", "syrk", "gemm", "geqrt", "tpqrt"} <= set(names())
    assert get("chol").inplace == (0,)
    assert repr(get("sum_tiles")).startswith("<kernel sum_tiles(")


def test_unknown_names_get_a_hint():
    with pytest.raises(
        UnknownKernelError, match=r"no kernel named 'chool' is registered; did you mean 'chol'\?"
    ):
        get("chool")


def test_bad_declarations_are_refused():
    with pytest.raises(KernelDeclarationError, match="'no name' is not an identifier"):
        kernel("no name")(lambda x: x)
    with pytest.raises(KernelDeclarationError, match="outputs=0; a kernel has at least one output"):
        kernel("t_none", outputs=0)(lambda x: x)
    with pytest.raises(KernelDeclarationError, match="positions of operands count from 0"):
        kernel("t_negative", inplace=-1)(lambda x, overwrite=(): x)
    with pytest.raises(KernelDeclarationError, match=r"no keyword `overwrite`; add `\*, overwrite=\(\)`"):
        kernel("t_silent", inplace=0)(lambda x: x)
    with pytest.raises(
        KernelDeclarationError, match=r"kernel name 'chol' is taken by linnet\.kernels\.linalg\.dense_factors"
    ):
        kernel("chol")(lambda x: x)


def test_defining_the_same_function_again_replaces_it():
    def made():
        @kernel("t_again")
        def again(x):
            return x

        return again

    first, second = made(), made()
    assert get("t_again") is second is not first
