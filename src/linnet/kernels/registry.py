"""The registry of kernels.

A tile program calls kernels by name; this table is the only way from a name to
code, so a worker that loads a program from elsewhere can run nothing that is not
registered in its own process. Declarations (outputs, shapes, flops, ...) live
beside the function because planning, progress and prices all read the same ones.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linnet.errors import KernelDeclarationError, UnknownKernelError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_KERNELS: dict[str, Kernel] = {}
_OURS = "linnet.kernels."
_importers: list[Callable[[], None]] = []
"""What imports the kernels that Linnet ships; empty once that was done."""
_importing = threading.RLock()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kernel:
    """A function on tiles, with what planning needs to know of it."""

    name: str
    """The name programs call it by."""
    function: Callable[..., Any]
    """Takes tiles, scalars and attributes; returns one tile, or a tuple of `outputs` tiles. Tiles it
    returns are new arrays, or operands it was told to overwrite."""
    outputs: int = 1
    """How many tiles it returns."""
    shape: Callable[..., Any] | None = None
    """From the operands' shapes (scalars as given, attributes as keywords) to the output's shape, or a
    tuple of shapes."""
    dtype: Callable[..., Any] | None = None
    """From the operands' dtypes (scalars as given, attributes as keywords if it takes any) to the
    output's dtype, or a tuple of dtypes; default: promotion."""
    flops: Callable[..., float] | None = None
    """From the operands' shapes (scalars as given, attributes as keywords) to floating-point
    operations."""
    inplace: tuple[int, ...] = ()
    """Positions of operands it can overwrite. Its function then takes a keyword `overwrite`: the
    positions, of these, whose tiles nobody else needs in this call (none by default)."""
    deterministic: bool = True
    """Whether equal operands give bit-equal results."""
    thread_invariant: bool = False
    """Whether the result has the same bits on any number of BLAS threads."""
    into: bool = False
    """Whether its function takes a keyword `into`: an array (for a range of tiles, a list of them), or
    None, to write its only result to, or the first of several. It returns that if it did."""
    scratch: float = 0.0
    """Memory it needs while it runs, besides operands and results, as a multiple of its operands'."""
    refuses: bool = False
    """Whether it raises `LinAlgError` for matrices that it cannot work on."""
    streams: bool = False
    """Whether it brings tiles from elsewhere, or takes them there (files, random numbers). Programs with
    such kernels finish what they have started before they begin more: all of it need not fit."""
    gathers: bool = False
    """Whether it knows no way to work by tiles: whatever it is given is brought together for it, in one
    task. Plans say so."""

    def __repr__(self) -> str:
        return f"<kernel {self.name}{inspect.signature(self.function)}>"

    def __call__(self, *args: Any, **attributes: Any) -> Any:
        return self.function(*args, **attributes)


def kernel(
    name: str | Callable[..., Any] | None = None,
    *,
    outputs: int = 1,
    shape: Callable[..., Any] | None = None,
    dtype: Callable[..., Any] | None = None,
    flops: Callable[..., float] | None = None,
    inplace: int | tuple[int, ...] = (),
    deterministic: bool = True,
    thread_invariant: bool = False,
    into: bool = False,
    scratch: float = 0.0,
    refuses: bool = False,
    streams: bool = False,
    gathers: bool = False,
) -> Any:
    """Register a function on tiles as a kernel; use as a decorator.

    Parameters
    ----------
    name : str, optional
        What programs call it; without one, the name of the function.
    outputs : int
        How many tiles it returns.
    shape : callable, optional
        From the shapes of the operands to that of the result, or to a tuple of shapes.
    dtype : callable, optional
        From the dtypes of the operands to that of the result; without it, they are promoted.
    flops : callable, optional
        From the shapes of the operands to the number of floating-point operations, for plans.
    inplace : int or tuple of int
        Operands that it can overwrite when it is told to.
    deterministic : bool
        Whether equal operands give results with equal bits.
    thread_invariant : bool
        Whether bits are the same on any number of BLAS threads.
    into : bool
        Whether it takes a keyword `into`: an array to write its (first) result to.
    scratch : float
        Memory it needs besides operands and results, as a multiple of its operands'.
    refuses : bool
        Whether it raises `LinAlgError` for matrices that it cannot work on.
    streams : bool
        Whether it brings tiles from elsewhere, or takes them there.
    gathers : bool
        Whether its operands must be brought together in one task.

    Returns
    -------
    Kernel
        In place of the function; calling it calls the function.

    Examples
    --------
    >>> import numpy as np
    >>> from linnet.kernels import kernel
    >>> @kernel("doc_halve", flops=lambda x: x[0] * x[1])
    ... def halve(x):
    ...     return x / 2
    >>> halve.name
    'doc_halve'

    A kernel never changes its operands, unless it declares `inplace` and is told, call by
    call, that nobody else needs them (for a range of tiles: not one of them):

    >>> @kernel("doc_negate", inplace=0)
    ... def negate(x, *, overwrite=()):
    ...     return np.negative(x, out=x if 0 in overwrite else None)
    >>> negate.inplace
    (0,)
    """
    if callable(name):
        return kernel(None)(name)

    def register(function: Callable[..., Any]) -> Kernel:
        label: Any = function.__name__ if name is None else name
        if not isinstance(label, str) or not _NAME.fullmatch(label):
            raise KernelDeclarationError(
                f"kernel name {label!r} is not an identifier; "
                "use letters, digits, underscores, and dots between parts"
            )
        if outputs < 1:
            raise KernelDeclarationError(
                f"kernel {label!r} declares outputs={outputs}; a kernel has at least one output"
            )
        positions = (inplace,) if isinstance(inplace, int) else tuple(inplace)
        _check_inplace(label, function, positions)
        if not str(function.__module__).startswith(_OURS):
            _import_shipped()  # so that a name that Linnet has is refused here
        known = _KERNELS.get(label)
        if known is not None and _origin(known.function) != _origin(function):
            raise KernelDeclarationError(
                f"kernel name {label!r} is taken by {'.'.join(_origin(known.function))}; "
                f"give {'.'.join(_origin(function))} another name"
            )
        settled = None if dtype is None else _with_attributes(dtype)
        made = Kernel(
            label,
            function,
            outputs,
            shape,
            settled,
            flops,
            positions,
            deterministic,
            thread_invariant,
            into,
            scratch,
            refuses,
            streams,
            gathers,
        )
        _KERNELS[label] = made
        return made

    return register


def get(name: str) -> Kernel:
    """The kernel registered under `name`."""
    try:
        return _KERNELS[name]
    except KeyError:
        _import_shipped()
    try:
        return _KERNELS[name]
    except KeyError:
        near = difflib.get_close_matches(name, _KERNELS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownKernelError(
            f"no kernel named {name!r} is registered{hint} "
            "(register one with @ln.kernel before the program is defined)"
        ) from None


def adopt(shipped: Kernel) -> None:
    """Register a kernel that an engine which ships code brought along, in place of an older one."""
    _import_shipped()
    _KERNELS[shipped.name] = shipped


def names() -> tuple[str, ...]:
    """Names of all registered kernels, sorted."""
    _import_shipped()
    return tuple(sorted(_KERNELS))


def shipped_by(importer: Callable[[], None]) -> Callable[[], None]:
    """Say what imports the modules of Linnet's own kernels; it is called when one of them is missed."""
    _importers.append(importer)
    return importer


def _import_shipped() -> None:
    """Have Linnet's own kernels registered. Threads that come meanwhile wait until all are."""
    if _importers:
        with _importing:
            for importer in _importers:
                importer()
            _importers.clear()


def _check_inplace(label: str, function: Callable[..., Any], positions: tuple[int, ...]) -> None:
    if not positions:
        return
    if any(position < 0 for position in positions):
        raise KernelDeclarationError(
            f"kernel {label!r} declares inplace={positions}; positions of operands count from 0"
        )
    parameters = inspect.signature(function).parameters.values()
    if not any(p.name == "overwrite" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise KernelDeclarationError(
            f"kernel {label!r} declares inplace={positions}, but its function has no keyword `overwrite`; "
            "add `*, overwrite=()`: the positions whose tiles it may overwrite in that call"
        )


def _with_attributes(declared: Callable[..., Any]) -> Callable[..., Any]:
    """A declaration that can be asked with attributes; most dtypes do not depend on any."""
    try:
        parameters = inspect.signature(declared).parameters.values()
    except (TypeError, ValueError):  # built into Python: it takes none
        parameters = ()
    if any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters):
        return declared

    @functools.wraps(declared)
    def asked(*dtypes: Any, **_: Any) -> Any:
        return declared(*dtypes)

    return asked


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    return (function.__module__, function.__qualname__)
