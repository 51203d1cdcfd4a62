"""The array API standard (2025.12), from its text: names, parameters, and what NumPy does otherwise.

Every function of the standard is here by its signature; `test_standard_results` has what they compute.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from standard_names import BINARY, UNARY
from strategies import tiled

import linnet as ln

MAIN = """
__array_namespace_info__()
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
argsort(x, /, *, axis=-1, descending=False, stable=True)
asarray(obj, /, *, dtype=None, device=None, copy=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_shapes(*shapes)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
clip(x, /, min=None, max=None)
concat(arrays, /, *, axis=0)
count_nonzero(x, /, *, axis=None, keepdims=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
expand_dims(x, /, *, axis=0)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
finfo(type, /)
flip(x, /, *, axis=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
iinfo(type, /)
isdtype(dtype, kind)
isin(x1, x2, /, *, invert=False)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
matmul(x1, x2, /)
matrix_transpose(x, /)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
meshgrid(*arrays, indexing='xy')
min(x, /, *, axis=None, keepdims=False)
moveaxis(x, source, destination, /)
nonzero(x, /)
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis=None)
searchsorted(x1, x2, /, *, side='left', sorter=None)
sort(x, /, *, axis=-1, descending=False, stable=True)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tensordot(x1, x2, /, *, axes=2)
tile(x, repetitions, /)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
vecdot(x1, x2, /, *, axis=-1)
where(condition, x1, x2, /)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
"""
LINALG = """
cholesky(x, /, *, upper=False)
cross(x1, x2, /, *, axis=-1)
det(x, /)
diagonal(x, /, *, offset=0)
eig(x, /)
eigh(x, /)
eigvals(x, /)
eigvalsh(x, /)
inv(x, /)
matmul(x1, x2, /)
matrix_norm(x, /, *, keepdims=False, ord='fro')
matrix_power(x, n, /)
matrix_rank(x, /, *, rtol=None)
matrix_transpose(x, /)
outer(x1, x2, /)
pinv(x, /, *, rtol=None)
qr(x, /, *, mode='reduced')
slogdet(x, /)
solve(x1, x2, /)
svd(x, /, *, full_matrices=True)
svdvals(x, /)
tensordot(x1, x2, /, *, axes=2)
trace(x, /, *, offset=0, dtype=None)
vecdot(x1, x2, /, *, axis=-1)
vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
TRANSFORM = "(x, /, *, n=None, axis=-1, norm='backward')"
TRANSFORMS = "(x, /, *, s=None, axes=None, norm='backward')"
FFT = [
    *(name + TRANSFORM for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *(name + TRANSFORMS for name in ("fftn", "ifftn", "rfftn", "irfftn")),
    *(name + "(n, /, *, d=1.0, dtype=None, device=None)" for name in ("fftfreq", "rfftfreq")),
    *(name + "(x, /, *, axes=None)" for name in ("fftshift", "ifftshift")),
]
SIGNATURES = [
    *((ln, line) for line in MAIN.split("\n") if line),
    *((ln, f"{name}(x, /)") for name in UNARY),
    *((ln, f"{name}(x1, x2, /)") for name in BINARY),
    *((ln.linalg, line) for line in LINALG.split("\n") if line),
    *((ln.fft, line) for line in FFT),
]


@pytest.mark.parametrize(
    ("namespace", "line"),
    SIGNATURES,
    ids=[f"{n.__name__}.{line.partition('(')[0]}" for n, line in SIGNATURES],
)
def test_functions_take_the_standards_parameters(namespace: Any, line: str) -> None:
    name, _, rest = line.partition("(")
    scope: dict[str, Any] = {}
    exec(f"def wanted({rest}: ...", scope)
    given = inspect.signature(getattr(namespace, name)).parameters
    ordered = list(given.values())
    for place, wanted in enumerate(inspect.signature(scope["wanted"]).parameters.values()):
        if wanted.kind is wanted.KEYWORD_ONLY:
            own = given[wanted.name]
            assert own.kind in (own.KEYWORD_ONLY, own.POSITIONAL_OR_KEYWORD)
            continue
        own = ordered[place]
        if wanted.kind is wanted.POSITIONAL_ONLY:
            assert own.kind in (own.POSITIONAL_ONLY, own.POSITIONAL_OR_KEYWORD)
        else:
            assert own.kind is wanted.kind
            assert own.name == wanted.name or wanted.kind is wanted.VAR_POSITIONAL


# ---- what the standard decides and NumPy does not

A = np.arange(24.0).reshape(2, 3, 4) % 7 - 3
M = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, 2.0], [0.5, 2.0, 6.0]])


def test_the_sign_of_a_complex_nan_is_nan() -> None:
    assert np.isnan(
        np.asarray(ln.sign(ln.asarray([complex(math.nan, math.inf), complex(1, math.nan)])))
    ).all()
    assert np.asarray(ln.sign(ln.asarray([0j, 2j]))).tolist() == [0j, 1j]


def test_eigenvalues_are_complex_under_our_name_and_numpys_under_numpys() -> None:
    x = ln.asarray(M)
    assert ln.linalg.eig(x).eigenvalues.dtype == ln.linalg.eigvals(x).dtype == ln.complex128
    assert np.linalg.eig(x).eigenvalues.dtype == np.linalg.eigvals(x).dtype == ln.float64


def test_limits_are_pythons_numbers() -> None:
    for dtype in (ln.float32, ln.float64, ln.complex64, ln.complex128):
        info, numpys = ln.finfo(dtype), np.finfo(dtype)
        assert (info.bits, info.dtype, info.tiny) == (numpys.bits, numpys.dtype, numpys.tiny)
        for name in ("eps", "max", "min", "smallest_normal"):
            assert type(getattr(info, name)) is float
            assert getattr(info, name) == getattr(numpys, name)
    assert type(ln.iinfo(ln.uint64).max) is int


def test_the_namespace_describes_itself() -> None:
    info = ln.__array_namespace_info__()
    assert ln.__array_api_version__ == "2025.12"
    assert ln.asarray(1).__array_namespace__(api_version="2025.12") is ln
    assert set(info.capabilities()) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert info.default_device() in info.devices()
    assert set(info.dtypes()) == {
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    }  # fmt: skip
    assert info.dtypes(kind=("bool", "real floating")).keys() == {"bool", "float32", "float64"}
    assert info.default_dtypes()["indexing"] == ln.int64
    assert [type(each) for each in (ln.e, ln.pi, ln.inf, ln.nan)] == [float] * 4
    with pytest.raises(ValueError, match="2025.12 is the newest"):
        ln.asarray(1).__array_namespace__(api_version="1999.12")


@pytest.mark.parametrize("chunks", [None, 1, 2])
def test_memory_is_handed_over(chunks: int | None) -> None:
    x = tiled(A, chunks)
    assert np.array_equal(np.from_dlpack(x), A)
    assert np.shares_memory(np.from_dlpack(x, copy=False), A)
    assert not np.shares_memory(np.from_dlpack(x, copy=True), A)
    assert np.array_equal(np.asarray(ln.from_dlpack(x + 1)), A + 1)
    lazy = x + 1
    shared = np.from_dlpack(lazy, copy=False)
    assert np.array_equal(shared, A + 1)
    assert np.shares_memory(shared, np.from_dlpack(lazy, copy=False))


def test_tiles_are_not_one_piece_of_memory() -> None:
    with pytest.raises(BufferError, match="tile by tile"):
        (tiled(A, 2) + 1).persist().__dlpack__(copy=False)
