"""One tile or many, straight or planned: the same values, dtypes, shapes and errors."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import tiled

import linnet as ln
from linnet.arrays.expression import chunking

pytestmark = pytest.mark.slow

A = np.random.default_rng(0).integers(-9, 9, (4, 6)) / 4
B = np.random.default_rng(1).integers(1, 9, (4, 6)).astype(np.int32)

EXPRESSIONS = """
a + b; a - b; a * b; a / b; b // 2; b % 3; a ** 2; b ** 2; 2 ** b; -a; abs(a); ~b; b & 3; b | 1; b ^ b; b << 1; b >> 1
a < b; a <= 0; a == a; a != b; a > b; a >= b; divmod(b, 3)[1]; a @ a.T; b.T @ b; a.T; a.mT; a[1]; a[1:3, ::2]; a[::-1]
a[..., 0]; a[None]; a[[0, 2, 1]]; a[:, [0, 0]]; a[a > 0]; a[b > 3, None]; a[1, 2]; np.sin(a); np.exp(b); np.hypot(a, b)
np.maximum(a, b); np.sign(a); np.floor(a); np.isnan(a); np.clip(a, -1, 1); np.where(a > 0, a, b); a.sum(); b.sum(axis=0)
a.mean(axis=1); a.std(); a.var(axis=0, ddof=1); a.max(); a.min(axis=1); a.argmax(); a.argmin(axis=0); b.prod(axis=1)
(a > 0).any(); (a > 0).all(axis=1); np.cumsum(a); np.cumsum(b, axis=1); np.cumprod(b, axis=0); np.sort(a); np.sort(a, axis=0)
np.argsort(a, axis=1, kind="stable"); np.unique(b); np.median(a); np.quantile(a, 0.3, axis=0); np.percentile(a, [10, 90])
np.concatenate([a, b]); np.stack([a, a]); np.hstack([a, b]); np.vstack([a, b]); a.reshape(3, 8); a.reshape(-1); a.ravel()
np.transpose(a); np.swapaxes(a, 0, 1); np.expand_dims(a, 0); np.squeeze(a[:1]); np.flip(a, 1); np.roll(a, 2); np.rot90(a)
np.repeat(a, 2, axis=0); np.tile(a, 2); np.pad(a, 1); np.diff(a); np.gradient(a)[0]; np.tril(a); np.triu(a, 1); np.diag(a)
np.trace(a); np.dot(a, a.T); np.tensordot(a, a, axes=2); np.einsum("ij,ij->i", a, b); np.outer(a[0], b[0]); np.kron(a, b)
np.take(a, [1, 0], axis=1); np.nonzero(a)[0]; np.count_nonzero(a); np.searchsorted(np.sort(a[0]), a[1]); np.histogram(a)[0]
np.bincount(b.ravel()); np.cov(a); np.corrcoef(a); np.linalg.norm(a); np.linalg.norm(a, axis=0); np.fft.fft(a); np.nansum(a)
np.average(a, weights=b); np.ptp(a, axis=0); np.isin(b, [1, 2]); np.broadcast_to(a[0], (3, 6)); a.astype(np.float32); a.round(1)
np.convolve(a[0], b[0]); np.interp(a, [0, 1], [2, 3]); np.digitize(a, [0, 1]); np.partition(a[0], 2)[2]; np.array_equal(a, a)
"""

MISTAKES = """
a + a[:, :5]; a @ a; a[9]; a[0, 0, 0]; a[:, 7]; a[[5]]; a.sum(axis=2); a.reshape(5, 5); np.concatenate([a, a[:, 0]]); a & 1
np.stack([a, a[0]]); np.sort(a, axis=5); np.take(a, [7], axis=0); np.einsum("ij,jk", a, a); b.astype(np.uint8) + 300; ~a
np.broadcast_to(a, (3, 6)); np.squeeze(a, 0); np.transpose(a, (0, 0)); np.swapaxes(a, 0, 3); np.tensordot(a, a, 1); a << 1
a.mean(axis=(0, 0)); np.quantile(a, 2); np.bincount(-b.ravel()); np.diag(a[None]); np.linalg.inv(a); np.fft.fft(a, axis=4)
np.max(a[:0]); float(a); bool(a); int(a); a[1.5]; np.argmax(a[:0]); np.pad(a, -1); np.repeat(a, -1); a.item(); np.rot90(a[0])
"""


def listed(text):
    return [each.strip() for line in text.strip().splitlines() for each in line.split(";")]


def value(text, a, b):
    return eval(text, {"a": a, "b": b, "np": np})


WAYS = {"straight": -1, "one tile": -1, "two": 2, "uneven": (3, 4), "every chunk 1": 1}


@pytest.fixture(params=WAYS)
def arrays(request, monkeypatch):
    if request.param == "one tile":
        monkeypatch.setattr(chunking, "SMALL", -1)
    return tiled(A, WAYS[request.param]), tiled(B, WAYS[request.param])


@pytest.mark.parametrize("text", listed(EXPRESSIONS))
def test_the_same_result(text, arrays):
    expected = value(text, A, B)
    made = value(text, *arrays)
    got = made.compute() if isinstance(made, ln.Array) else made
    assert np.shape(made) == np.shape(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    assert np.allclose(got, expected, rtol=1e-13, atol=1e-13, equal_nan=True)
    if isinstance(expected, np.ndarray):
        assert isinstance(made, ln.Array)
        assert made.dtype == expected.dtype


@pytest.mark.parametrize("text", listed(MISTAKES))
def test_the_same_error_at_the_call(text, arrays):
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as theirs:
        value(text, A, B)
    kinds = tuple(
        kind for kind in (TypeError, ValueError, IndexError, OverflowError) if issubclass(theirs.type, kind)
    )
    assert kinds
    with pytest.raises(kinds):
        value(text, *arrays)


def test_what_is_asked_twice_is_computed_twice():
    calls = []

    def count(block):
        calls.append(block.shape)
        return block

    x = ln.map_blocks(count, tiled(A, 2) + 1, dtype=A.dtype)
    calls.clear()
    assert np.array_equal(x.compute(), A + 1)
    once = len(calls)
    assert once
    x.compute()
    assert len(calls) == 2 * once
    x.persist()
    seen = len(calls)
    x.compute()
    assert len(calls) == seen


def test_a_later_change_leaves_results_as_they_were(arrays):
    a, _ = arrays
    y, part, turned = a + 1, a[1:3], a.T
    a[0] = 99
    a[a > 50] = -99
    assert np.array_equal(y.compute(), A + 1)
    assert np.array_equal(part.compute(), A[1:3])
    assert np.array_equal(turned.compute(), A.T)
    assert (a.compute()[0] == -99).all()
