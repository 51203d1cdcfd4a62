"""Rules of Fourier transforms: they are linear, and nearly their own transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linnet.derivatives.names import fft, ln
from linnet.derivatives.rules import Derivatives, Linear, composition, maps

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _fitted(x: Any, length: int, axis: int) -> Any:
    """Cut, or with zeros behind, along an axis."""
    axis %= x.ndim
    if x.shape[axis] >= length:
        return x[tuple(slice(length) if a == axis else slice(None) for a in range(x.ndim))]
    return ln.pad(x, [(0, length - x.shape[axis]) if a == axis else (0, 0) for a in range(x.ndim)])


def _real(g: Any, x: Any) -> Any:
    return ln.real(g) if x.dtype.kind != "c" and g.dtype.kind == "c" else g


def _complex_transform(function: Callable[..., Any]) -> None:
    def make(
        result: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
    ) -> Derivatives:
        return {
            "x": Linear(
                lambda t: function(t, n, axis, norm),
                lambda g: _real(_fitted(function(g, None, axis, norm), x.shape[axis], axis), x),
            )
        }

    maps(function, text="the same, symmetric")(make)


_complex_transform(fft.fft)
_complex_transform(fft.ifft)


@maps(fft.rfft, text="the same; the real part of fft of the weights")
def _rfft(
    result: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
) -> Derivatives:
    length = x.shape[axis] if n is None else n

    def pull(g: Any) -> Any:
        whole = fft.fft(_fitted(g, length, axis), None, axis, norm)
        return ln.real(_fitted(whole, x.shape[axis], axis))

    return {"x": Linear(lambda t: fft.rfft(t, n, axis, norm), pull)}


@maps(fft.irfft, text="the same; ihfft of the weights, inner ones twice")
def _irfft(
    result: Any, x: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
) -> Derivatives:
    length = result.shape[axis]

    def pull(g: Any) -> Any:
        made = fft.ihfft(g, None, axis, norm)
        count = made.shape[axis]
        shape = tuple(count if a == axis % made.ndim else 1 for a in range(made.ndim))
        places = ln.reshape(ln.arange(count), shape)
        once = (places == 0) | (places == length / 2)
        return _fitted(made * ln.where(once, 1.0, 2.0).astype(result.dtype), x.shape[axis], axis)

    return {"x": Linear(lambda t: fft.irfft(t, n, axis, norm), pull)}


@composition(fft.hfft, text="irfft of the conjugate")
def _hfft(x: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return fft.irfft(ln.conjugate(x), n, axis, _SWAPPED[norm])


@composition(fft.ihfft, text="conjugate of rfft")
def _ihfft(x: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return ln.conjugate(fft.rfft(x, n, axis, _SWAPPED[norm]))


def _along_axes(s: Any, axes: Any, ndim: int) -> list[tuple[Any, int]]:
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    sizes = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    return list(zip(sizes, axes, strict=True))


def _of_several(function: Callable[..., Any], one: Callable[..., Any], default: Any) -> None:
    def made(x: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        for n, axis in reversed(_along_axes(s, axes, x.ndim)):
            x = one(x, n, axis, norm)
        return x

    composition(function, text="axis by axis")(made)


for _name, _default in (("n", None), ("2", (-2, -1))):
    _of_several(getattr(fft, f"fft{_name}"), fft.fft, _default)
    _of_several(getattr(fft, f"ifft{_name}"), fft.ifft, _default)


def _of_several_real(name: str, default: Any) -> None:
    def forward(x: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        *others, (n, axis) = _along_axes(s, axes, x.ndim)
        x = fft.rfft(x, n, axis, norm)
        for n, axis in reversed(others):
            x = fft.fft(x, n, axis, norm)
        return x

    def inverse(x: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        *others, (n, axis) = _along_axes(s, axes, x.ndim)
        for m, other in others:
            x = fft.ifft(x, m, other, norm)
        return fft.irfft(x, n, axis, norm)

    composition(getattr(fft, f"rfft{name}"), text="axis by axis")(forward)
    composition(getattr(fft, f"irfft{name}"), text="axis by axis")(inverse)


_of_several_real("n", None)
_of_several_real("2", (-2, -1))


@maps(fft.fftshift, text="the same; ifftshift")
def _fftshift(result: Any, x: Any, axes: Any = None) -> Derivatives:
    return {"x": Linear(lambda t: fft.fftshift(t, axes), lambda g: fft.ifftshift(g, axes))}


@maps(fft.ifftshift, text="the same; fftshift")
def _ifftshift(result: Any, x: Any, axes: Any = None) -> Derivatives:
    return {"x": Linear(lambda t: fft.ifftshift(t, axes), lambda g: fft.fftshift(g, axes))}
