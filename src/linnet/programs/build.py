"""Programs made by other programs: the builder that the array and loop front ends use.

    b = ProgramBuilder("double")
    A, B, N = b.input("A"), b.output("B"), b.size("N")
    with b.loop("i", N) as i:
        b.call("scale", [B[i]], [A[i], 2.0])
    program = b.build()

gives the same program as the function one would have written. Index expressions are made
by Python's operators; `&`, `|`, `~` stand for `and`, `or`, `not`, which Python keeps for itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, cast

from linnet.errors import ProgramError
from linnet.programs.grammar import (
    Apply,
    Attribute,
    Binary,
    Choice,
    Expr,
    Float,
    For,
    If,
    In,
    Int,
    Let,
    Lookup,
    Name,
    Out,
    Parameter,
    Program,
    Range,
    Role,
    Run,
    Size,
    Stmt,
    Table,
    Temp,
    Tiles,
    Unary,
)
from linnet.programs.parse_expressions import minus
from linnet.programs.program import TileProgram
from linnet.records import record


class Index:
    """An integer (or condition) of the program being built: a loop variable, a size, or made of them."""

    __slots__ = ("expr",)
    __hash__: ClassVar[None] = None  # type: ignore[assignment] # == builds a condition, so it cannot be a key

    def __init__(self, expr: Expr) -> None:
        self.expr: Expr = expr

    def __add__(self, other: Any) -> Index:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Index:
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> Index:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> Index:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> Index:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> Index:
        return _binary("*", other, self)

    def __floordiv__(self, other: Any) -> Index:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Index:
        return _binary("//", other, self)

    def __mod__(self, other: Any) -> Index:
        return _binary("%", self, other)

    def __rmod__(self, other: Any) -> Index:
        return _binary("%", other, self)

    def __pow__(self, other: Any) -> Index:
        return _binary("**", self, other)

    def __rpow__(self, other: Any) -> Index:
        return _binary("**", other, self)

    def __truediv__(self, other: Any) -> Index:
        return _binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Index:
        return _binary("/", other, self)

    def __neg__(self) -> Index:
        return Index(minus(self.expr))

    def __eq__(self, other: Any) -> Index:  # type: ignore[override]
        return _binary("==", self, other)

    def __ne__(self, other: Any) -> Index:  # type: ignore[override]
        return _binary("!=", self, other)

    def __lt__(self, other: Any) -> Index:
        return _binary("<", self, other)

    def __le__(self, other: Any) -> Index:
        return _binary("<=", self, other)

    def __gt__(self, other: Any) -> Index:
        return _binary(">", self, other)

    def __ge__(self, other: Any) -> Index:
        return _binary(">=", self, other)

    def __and__(self, other: Any) -> Index:
        return _binary("and", self, other)

    def __or__(self, other: Any) -> Index:
        return _binary("or", self, other)

    def __invert__(self) -> Index:
        return Index(Unary("not", self.expr))

    def __bool__(self) -> bool:
        raise ProgramError(
            "an index expression has no truth value while the program is being built; "
            "use `with b.when(condition):`, and & | ~ instead of and, or, not"
        )

    def __repr__(self) -> str:
        from linnet.programs.printing import show_expr

        return show_expr(self.expr)


def minimum(*values: Any) -> Index:
    """The least of several indices."""
    return Index(Apply("min", tuple(_expr(v) for v in values)))


def maximum(*values: Any) -> Index:
    """The greatest of several indices."""
    return Index(Apply("max", tuple(_expr(v) for v in values)))


def ceil_log2(value: Any) -> Index:
    """`ceil(log2(value))`, exactly."""
    return Index(Apply("ceil_log2", (_expr(value),)))


def floor_log2(value: Any) -> Index:
    """`floor(log2(value))`, exactly."""
    return Index(Apply("floor_log2", (_expr(value),)))


def choice(condition: Any, then: Any, otherwise: Any) -> Index:
    """`then if condition else otherwise`."""
    return Index(Choice(_expr(condition), _expr(then), _expr(otherwise)))


@record
class ArrayHandle:
    """An array of the program being built; indexing it names tiles."""

    name: str

    def __getitem__(self, index: Any) -> Tiles:
        pieces = cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,))
        return Tiles(self.name, tuple(_axis(p) for p in pieces))


@record
class TableHandle:
    """A table of the program being built; indexing it looks an entry up."""

    name: str

    def __getitem__(self, index: Any) -> Index:
        return Index(Lookup(self.name, _expr(index)))


class ProgramBuilder:
    """Builds a tile program call by call; see the module's docstring.

    >>> from linnet.kernels import kernel
    >>> @kernel("doc_shift")
    ... def shift(x):
    ...     return x + 1
    >>> b = ProgramBuilder("shifted")
    >>> A, B, N = b.input("A"), b.output("B"), b.size("N")
    >>> with b.loop("i", N) as i:
    ...     b.call("doc_shift", [B[i]], [A[i]])
    >>> b.build()
    @ln.tile_program
    def shifted(A: ln.In, B: ln.Out, N: int):
        for i in range(N):
            B[i] = doc_shift(A[i])
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._parameters: list[Parameter] = []
        self._tables: list[tuple[str, tuple[int, ...]]] = []
        self._assumptions: list[Expr] = []
        self._blocks: list[list[Stmt]] = [[]]

    # -- parameters

    def input(self, name: str) -> ArrayHandle:
        """An array of the user's."""
        return self._array(name, In())

    def output(self, name: str, fill: bool | int | float | None = None) -> ArrayHandle:
        """A result; tiles inside its grid that no task writes are `fill`."""
        return self._array(name, Out(fill))

    def temp(
        self,
        name: str,
        of: str | ArrayHandle | None = None,
        fill: bool | int | float | None = None,
    ) -> ArrayHandle:
        """An intermediate array.

        With `of`, its version 0 is that array; or tiles inside its grid that no task writes are `fill`.
        """
        return self._array(name, Temp(of.name if isinstance(of, ArrayHandle) else of, fill))

    def _array(self, name: str, role: Role) -> ArrayHandle:
        self._parameters.append(Parameter(name, role))
        return ArrayHandle(name)

    def size(self, name: str) -> Index:
        """An integer given when the program is bound."""
        self._parameters.append(Parameter(name, Size()))
        return Index(Name(name))

    def table(self, name: str) -> TableHandle:
        """A table given when the program is bound."""
        self._parameters.append(Parameter(name, Table()))
        return TableHandle(name)

    def constant_table(self, name: str, values: Sequence[int]) -> TableHandle:
        """A table that is part of the program."""
        self._tables.append((name, tuple(int(v) for v in values)))
        return TableHandle(name)

    def assume(self, condition: Index) -> None:
        """What holds of the sizes, as `assert` says it in source."""
        self._assumptions.append(condition.expr)

    # -- statements

    @contextmanager
    def loop(self, name: str, *bounds: Any) -> Generator[Index]:
        """`for name in range(*bounds)`."""
        if not 1 <= len(bounds) <= 3:
            raise ProgramError(f"loop {name!r} takes one to three bounds as range does, not {len(bounds)}")
        start, stop = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2] if len(bounds) == 3 else 1
        body: list[Stmt] = []
        self._blocks.append(body)
        try:
            yield Index(Name(name))
        finally:
            self._blocks.pop()
        self._blocks[-1].append(For(name, _expr(start), _expr(stop), _expr(step), tuple(body)))

    def each(self, name: str, *bounds: Any) -> Generator[Index]:
        """The same as a loop itself: `for i in b.each("i", 9)` runs once.

        Whoever builds programs and whoever does at once what they say can then be written to alike.
        """
        with self.loop(name, *bounds) as index:
            yield index

    @contextmanager
    def when(self, condition: Index) -> Generator[None]:
        """`if condition:`."""
        body: list[Stmt] = []
        self._blocks.append(body)
        try:
            yield
        finally:
            self._blocks.pop()
        self._blocks[-1].append(If(_expr(condition), tuple(body), ()))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """`else:` of the `when` just before."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, If) or last.otherwise:
            raise ProgramError("`otherwise` follows a `when` of the same block")
        body: list[Stmt] = []
        self._blocks.append(body)
        try:
            yield
        finally:
            self._blocks.pop()
        self._blocks[-1][-1] = If(last.condition, last.then, tuple(body))

    def let(self, name: str, value: Any) -> Index:
        """`name = value`, a scalar."""
        self._blocks[-1].append(Let(name, _expr(value)))
        return Index(Name(name))

    def call(self, kernel: str, outputs: Sequence[Tiles], args: Sequence[Any], **keywords: Any) -> None:
        """One kernel call; numbers and indices among `args` are scalars, keywords are attributes."""
        settled = tuple(a if isinstance(a, Tiles) else _expr(a) for a in args)
        named = tuple((k, v.expr if isinstance(v, Index) else Attribute(v)) for k, v in keywords.items())
        self._blocks[-1].append(Run(kernel, tuple(outputs), settled, named))

    def extend(self, statements: Iterable[Stmt]) -> None:
        """Statements made elsewhere (`compose.inlined`), put where the next call would stand."""
        self._blocks[-1].extend(statements)

    def build(self, *, verify: bool = True) -> TileProgram:
        """The program; with `verify` it is proved as one from source is."""
        return TileProgram(self.tree(), verify=verify)

    def tree(self) -> Program:
        """What has been said so far, as data."""
        if len(self._blocks) != 1:
            raise ProgramError("a loop or condition is still open; build after its `with` block has ended")
        return Program(
            self.name,
            tuple(self._parameters),
            tuple(self._blocks[0]),
            tuple(self._tables),
            tuple(self._assumptions),
            f"<{self.name}>",
        )


def _expr(value: Any) -> Expr:
    if isinstance(value, Index):
        return value.expr
    if isinstance(value, float):
        return Float(value)
    if hasattr(value, "__index__"):
        return Int(int(value))
    raise ProgramError(f"{value!r} cannot be part of a tile program; give an integer, a float or an index")


def _axis(piece: Any) -> Expr | Range:
    if not isinstance(piece, slice):
        return _expr(piece)
    start, stop, step = (getattr(cast("Any", piece), part) for part in ("start", "stop", "step"))
    if stop is None:
        raise ProgramError("a range of tiles needs an end: A[i, 0:N]")
    return Range(_expr(0 if start is None else start), _expr(stop), _expr(1 if step is None else step))


def _binary(op: str, left: Any, right: Any) -> Index:
    return Index(Binary(op, _expr(left), _expr(right)))
