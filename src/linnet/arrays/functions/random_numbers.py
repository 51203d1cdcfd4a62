"""Random arrays: NumPy's Generator, tile by tile, the same numbers however the array is cut.

The numbers are not those of NumPy's generators with the same seed: these draw one after another,
ours by position, so that tiles can be made anywhere, in any order, and again.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axis_of, wrap
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import aligned, blocks, constant, recut
from linnet.arrays.expression.nodes import Access, Along, At, Entry, Node, Number, Operand, Piece, Source
from linnet.arrays.functions.random_counts import Counts
from linnet.arrays.functions.random_order import LARGE, dealt, is_large
from linnet.arrays.functions.spaced_numbers import arange
from linnet.kernels.arrays.random_numbers import FILLING, block_shape, seeds
from linnet.tiles import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from linnet.arrays.array import Array

_PLAIN = (bool, int, float, np.integer, np.floating)

_drawing = threading.Lock()


def _distribution(name: str, *parameters: str, dtype: Any = float, **defaults: Any) -> Callable[..., Array]:
    """A method that NumPy's generators have, with these parameters."""

    def method(self: Generator, *args: Any, size: Any = None, chunks: Any = None, **keywords: Any) -> Array:
        if len(args) > len(parameters) + 1:
            raise TypeError(
                f"{name}() takes {', '.join(parameters)} and size; {len(args)} arguments were given"
            )
        if len(args) == len(parameters) + 1:
            *args, size = args  # type: ignore[assignment]
        given = {**defaults, **dict(zip(parameters, args, strict=False)), **keywords}
        missing = [each for each in parameters if each not in given]
        unknown = [each for each in given if each not in parameters]
        if missing or unknown:
            words = f"is missing {missing[0]!r}" if missing else f"got an unexpected argument {unknown[0]!r}"
            raise TypeError(f"{name}() {words}; its parameters are {', '.join(parameters)}")
        return self._draw(name, size, dtype, chunks, {each: given[each] for each in parameters})

    method.__name__ = name
    method.__qualname__ = f"Generator.{name}"
    method.__doc__ = f"`{name}({', '.join((*parameters, 'size=None'))})`, as NumPy's generators draw it."
    return method


class Generator(Counts):
    """Draws arrays of random numbers.

    >>> rng = Generator(7)
    >>> x, y = rng.random((4, 3), chunks=2), Generator(7).random((4, 3))
    >>> bool((x == y).all())
    True
    """

    def __init__(self, seed: Any = None) -> None:
        if isinstance(seed, np.random.SeedSequence):
            sequence = seed
        elif isinstance(seed, np.random.Generator | np.random.BitGenerator):
            source = np.random.default_rng(seed)
            sequence = np.random.SeedSequence(source.integers(2**63, size=2).tolist())
        else:
            sequence = np.random.SeedSequence(seed)
        self._entropy = int.from_bytes(sequence.generate_state(4, np.uint64).tobytes(), "little")
        self._drawn = 0
        """Arrays drawn so far: each has numbers of its own."""

    def __repr__(self) -> str:
        return f"Generator(0x{self._entropy & 0xFFFFFFFF:08x}…)"

    def spawn(self, n_children: int) -> list[Generator]:
        """Independent generators."""
        return [Generator(np.random.SeedSequence([*self._key().data.tolist()])) for _ in range(n_children)]

    def _key(self) -> Source:
        with _drawing:
            stream = self._drawn
            self._drawn += 1
        return constant(seeds(self._entropy, stream))

    def _local(self) -> np.random.Generator:
        """A generator of NumPy's for what is decided in one place."""
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self._key().data.tolist())))

    # ---- the one way all of them are drawn

    def _draw(
        self,
        method: str,
        size: Any,
        dtype: Any,
        chunks: Any,
        parameters: dict[str, Any],
        fixed: dict[str, Any] | None = None,
    ) -> Array:
        """An array of a method's numbers; parameters may be arrays, and are broadcast."""
        given = {name: value for name, value in parameters.items() if not isinstance(value, _PLAIN)}
        plain = {name: value for name, value in parameters.items() if name not in given}
        nodes = {name: as_node(value) for name, value in given.items()}
        if all(node.ndim == 0 and type(node) is Source for node in nodes.values()):
            plain |= {name: node.data.item() for name, node in nodes.items()}  # type: ignore[attr-defined]
            nodes = {}
        spread = np.broadcast_shapes(*(node.shape for node in nodes.values())) if nodes else ()
        shape = _shape(size, spread)
        dtype = np.dtype(dtype)
        settled = tuple((name, _settled(value)) for name, value in (*plain.items(), *(fixed or {}).items()))
        if not nodes:
            _probe(method, dict(settled), dtype, int(0 not in shape))
        wanted = chunking.normalized("auto" if chunks is None else chunks, shape, dtype)
        layout = _along_blocks(wanted, shape) if nodes else wanted
        key = self._key()
        inputs: list[Node] = [key, *(aligned(node, layout) for node in nodes.values())]
        piece = _piece(inputs, layout, method, dtype, tuple(nodes), settled)
        return wrap(recut(blocks(inputs, [piece], layout, dtype), wanted))

    # ---- plain numbers

    def random(
        self, size: Any = None, dtype: Any = np.float64, out: Any = None, *, chunks: Any = None
    ) -> Array:
        """Uniform in [0, 1)."""
        return _into(self._draw("random", size, dtype, chunks, {}), out)

    def standard_normal(
        self, size: Any = None, dtype: Any = np.float64, out: Any = None, *, chunks: Any = None
    ) -> Array:
        """Normal, of mean 0 and deviation 1."""
        return _into(self._draw("standard_normal", size, dtype, chunks, {}), out)

    def standard_exponential(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        method: str = "zig",
        out: Any = None,
        *,
        chunks: Any = None,
    ) -> Array:
        """Exponential, of scale 1."""
        return _into(self._draw("standard_exponential", size, dtype, chunks, {}, {"method": method}), out)

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None, *, chunks: Any = None
    ) -> Array:
        """Gamma, of scale 1."""
        return _into(self._draw("standard_gamma", size, dtype, chunks, {"shape": shape}), out)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
        *,
        chunks: Any = None,
    ) -> Array:
        """Integers from low up to, not including, high (with `endpoint`, including it)."""
        if high is None:
            low, high = 0, low
        return self._draw(
            "integers", size, dtype, chunks, {"low": low, "high": high}, {"endpoint": bool(endpoint)}
        )

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, *, chunks: Any = None) -> Array:
        """Normal."""
        return self._draw("normal", size, float, chunks, {"loc": loc, "scale": scale})

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, *, chunks: Any = None) -> Array:
        """Uniform between two bounds."""
        return self._draw("uniform", size, float, chunks, {"low": low, "high": high})

    # ---- several numbers that belong together

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: Any = "warn",
        tol: float = 1e-8,
        *,
        method: Any = "svd",
        chunks: Any = None,
    ) -> Array:
        """Vectors of correlated normals."""
        centre, spread = np.asarray(mean), np.asarray(cov)
        if centre.ndim != 1 or spread.shape != (len(centre),) * 2:
            raise ValueError(
                f"mean must be a vector and cov a square matrix of its length; "
                f"got shapes {centre.shape} and {spread.shape}"
            )
        # NumPy's own checks, with its own words.
        np.random.Generator(np.random.SFC64(0)).multivariate_normal(
            centre,
            spread,
            1,
            check_valid=check_valid,
            tol=tol,
            method=method,
        )
        values, vectors = np.linalg.eigh(spread)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        lead = _shape(size, ())
        whole: Any = None if chunks is None else (*chunks, -1) if isinstance(chunks, tuple) else chunks
        z = self.standard_normal((*lead, len(centre)), chunks=whole)
        return z @ np.ascontiguousarray(factor.T) + centre

    def dirichlet(self, alpha: Any, size: Any = None, *, chunks: Any = None) -> Array:
        """Vectors of positive numbers that sum to 1."""
        weights = np.asarray(alpha, float)
        if weights.ndim != 1 or (weights < 0).any() or not weights.any():
            raise ValueError(f"alpha must be a vector of numbers ≥ 0, not all zero; got {alpha!r}")
        lead = _shape(size, ())
        drawn = self.standard_gamma(weights, (*lead, len(weights)), chunks=chunks)
        return drawn / drawn.sum(axis=-1, keepdims=True)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
        *,
        chunks: Any = None,
    ) -> Array:
        """Elements chosen at random: of an array along an axis, or of the integers below `a`."""
        population = None if isinstance(a, int | np.integer) else wrap(as_node(a))
        count = int(a) if population is None else population.shape[axis_of(axis, population.ndim)]
        shape = _shape(size, ())
        if (
            p is None
            and population is not None
            and count
            and len(shape) == 1
            and is_large(population.__node__)
        ):
            if not replace and shape[0] > count:
                raise ValueError("Cannot take a larger sample than population when replace is False")
            return self._dealt(population.__node__, axis_of(axis, population.ndim), shape[0], replace)
        if replace and p is None:
            if count <= 0 and 0 not in shape:
                raise ValueError("a must be a positive integer or an array that is not empty")
            index = self.integers(0, count, shape, chunks=chunks)
        else:
            drawn = self._local().choice(
                count, shape or None, replace, None if p is None else np.asarray(p), 0, shuffle
            )
            index = wrap(as_node(drawn))
        return index if population is None else population.take(index, axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """The elements of an array along an axis, or the integers below `x`, in random order."""
        if isinstance(x, int | np.integer) and int(x) * np.dtype(np.int64).itemsize < LARGE:
            return wrap(as_node(self._local().permutation(int(x))))
        array = arange(int(x)) if isinstance(x, int | np.integer) else wrap(as_node(x))
        along = axis_of(axis, array.ndim)
        if is_large(array.__node__):
            return self._dealt(array.__node__, along, array.shape[along])
        return array.take(self._local().permutation(array.shape[along]), axis=axis)

    def _dealt(self, node: Node, axis: int, count: int, replace: bool = False) -> Array:
        """Rows of an array too long to draw their order in one place."""
        return wrap(dealt(node, axis, count, self._key(), self._local(), replace=replace))

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put an array into random order along an axis; the array takes a new version."""
        if not isinstance(x, ArrayBase):
            raise TypeError(f"shuffle changes an array of ours, not a {type(x).__name__}; use permutation")
        x._node = self.permutation(x, axis).__node__

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Array:
        """Each slice along an axis in a random order of its own; None: all elements."""
        array = wrap(as_node(x))
        if axis is None:
            return _into(self.permutation(array.reshape(-1)).reshape(array.shape), out)
        order: Any = self.random(array.shape).argsort(axis=axis)
        return _into(wrap(as_node(np.take_along_axis(array, order, axis))), out)

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return self._local().bytes(length)

    exponential: Callable[..., Array] = _distribution("exponential", "scale", scale=1.0)
    gamma: Callable[..., Array] = _distribution("gamma", "shape", "scale", scale=1.0)
    beta: Callable[..., Array] = _distribution("beta", "a", "b")
    binomial: Callable[..., Array] = _distribution("binomial", "n", "p", dtype=np.int64)
    chisquare: Callable[..., Array] = _distribution("chisquare", "df")
    f: Callable[..., Array] = _distribution("f", "dfnum", "dfden")
    geometric: Callable[..., Array] = _distribution("geometric", "p", dtype=np.int64)
    gumbel: Callable[..., Array] = _distribution("gumbel", "loc", "scale", loc=0.0, scale=1.0)
    hypergeometric: Callable[..., Array] = _distribution(
        "hypergeometric", "ngood", "nbad", "nsample", dtype=np.int64
    )
    laplace: Callable[..., Array] = _distribution("laplace", "loc", "scale", loc=0.0, scale=1.0)
    logistic: Callable[..., Array] = _distribution("logistic", "loc", "scale", loc=0.0, scale=1.0)
    lognormal: Callable[..., Array] = _distribution("lognormal", "mean", "sigma", mean=0.0, sigma=1.0)
    logseries: Callable[..., Array] = _distribution("logseries", "p", dtype=np.int64)
    negative_binomial: Callable[..., Array] = _distribution("negative_binomial", "n", "p", dtype=np.int64)
    noncentral_chisquare: Callable[..., Array] = _distribution("noncentral_chisquare", "df", "nonc")
    noncentral_f: Callable[..., Array] = _distribution("noncentral_f", "dfnum", "dfden", "nonc")
    pareto: Callable[..., Array] = _distribution("pareto", "a")
    poisson: Callable[..., Array] = _distribution("poisson", "lam", dtype=np.int64, lam=1.0)
    power: Callable[..., Array] = _distribution("power", "a")
    rayleigh: Callable[..., Array] = _distribution("rayleigh", "scale", scale=1.0)
    standard_cauchy: Callable[..., Array] = _distribution("standard_cauchy")
    standard_t: Callable[..., Array] = _distribution("standard_t", "df")
    triangular: Callable[..., Array] = _distribution("triangular", "left", "mode", "right")
    vonmises: Callable[..., Array] = _distribution("vonmises", "mu", "kappa")
    wald: Callable[..., Array] = _distribution("wald", "mean", "scale")
    weibull: Callable[..., Array] = _distribution("weibull", "a")
    zipf: Callable[..., Array] = _distribution("zipf", "a", dtype=np.int64)


def default_rng(seed: Any = None) -> Generator:
    """A generator; the same seed gives the same arrays, whatever the workers and chunks.

    Parameters
    ----------
    seed : int, sequence of int, SeedSequence or Generator, optional
        None: a fresh one.

    Returns
    -------
    Generator
        With the methods of `numpy.random.Generator`, which give lazy arrays.

    Examples
    --------
    >>> default_rng(0).integers(10, size=3).compute().shape
    (3,)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)


def _probe(method: str, parameters: dict[str, Any], dtype: np.dtype[Any], size: int) -> None:
    """Let NumPy judge the parameters, on a single number: of none it lets some of them pass."""
    extra = {"dtype": dtype} if method in FILLING or method == "integers" else {}
    getattr(np.random.Generator(np.random.SFC64(0)), method)(**parameters, size=size, **extra)


def _shape(size: Any, spread: tuple[int, ...]) -> tuple[int, ...]:
    if size is None:
        return spread
    shape = (int(size),) if hasattr(size, "__index__") else tuple(int(n) for n in size)
    if min(shape, default=0) < 0:
        raise ValueError(f"size={size!r}: lengths cannot be negative")
    if spread and np.broadcast_shapes(spread, shape) != shape:
        raise ValueError(f"parameters of shape {spread} do not fit into size {shape}")
    return shape


def _settled(value: Any) -> Any:
    """A parameter as a plain value that can be written into a program."""
    return value.item() if isinstance(value, np.generic) else value


def _along_blocks(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """A layout near the wanted one that cuts no block."""
    sizes = [
        max(b, max(z - a for a, z in itertools.pairwise(edges)) // b * b)
        for edges, b in zip(layout.boundaries, block_shape(shape), strict=True)
    ]
    return Layout.regular(shape, sizes)


def _piece(
    inputs: list[Node],
    layout: Layout,
    method: str,
    dtype: np.dtype[Any],
    names: tuple[str, ...],
    fixed: tuple[tuple[str, Any], ...],
) -> Piece:
    numbers: list[Number] = []
    for axis, edges in enumerate(layout.boundaries):
        numbers.append(Entry(axis, tuple(edges[:-1])))
        numbers.append(Entry(axis, tuple(b - a for a, b in itertools.pairwise(edges))))
    operands: list[Operand] = []
    rank = len(layout.boundaries)
    for which, node in enumerate(inputs[1:], start=1):
        access: list[Access] = []
        for axis, length in enumerate(node.shape):
            access.append(At(0) if length == 1 else Along(axis + rank - node.ndim))
        operands.append(Operand(which, tuple(access)))
    attributes = (
        ("method", method),
        ("shape", layout.shape),
        ("dtype", dtype.str),
        ("names", names),
        ("fixed", fixed),
    )
    return Piece("sample", (Operand(0, (At(0),)), *numbers, *operands), attributes)


def _into(result: Any, out: Any) -> Any:
    if out is None:
        return result
    if not isinstance(out, ArrayBase) or out.__node__.shape != result.shape:
        raise ValueError(f"out= must be an array of shape {result.shape}")
    out._node = cast(result.__node__, out.__node__.dtype)
    return out


__all__ = ["Generator", "default_rng"]
