"""Tile programs as users hold them: defined once, bound to sizes, asked for their tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any, overload

from linnet.errors import BindError, ProgramError, SingleAssignmentError, UnwrittenTileError
from linnet.kernels import get as get_kernel
from linnet.programs import wire
from linnet.programs.bound import BoundProgram
from linnet.programs.check import check, check_statements
from linnet.programs.compose import compose
from linnet.programs.diagnostics import Findings
from linnet.programs.enumeration import TooManyRows
from linnet.programs.generated import Compiled
from linnet.programs.grammar import ArrayRole, In, Out, Program, Size, Table, Temp
from linnet.programs.parse import parse_function, parse_source
from linnet.programs.printing import show_program
from linnet.programs.statements import Statement, flatten

if TYPE_CHECKING:
    from linnet.programs.prove import Proof

# What needs isl is imported when first used: `import linnet` alone should cost little.

_SMALL = (0, 1, 2, 3, 5)
"""Sizes at which programs that are not affine are checked when they are defined."""
_SMALL_TASKS = 4_000
_SMALL_TILES = 400_000
_SMALL_BINDINGS = 40


@overload
def tile_program(function: Callable[..., Any], /) -> TileProgram: ...


@overload
def tile_program(*, verify: bool = True) -> Callable[[Callable[..., Any]], TileProgram]: ...


def tile_program(function: Callable[..., Any] | None = None, /, *, verify: bool = True) -> Any:
    """Make a tile program of a function; use as a decorator.

    The function is read, never called. Its parameters are arrays with a role (`ln.In`,
    `ln.Out`, `ln.Temp`), tables (`ln.Table`) and sizes (`int`). With `verify=False` the proofs
    wait until someone asks (`proven`): for programs that tests have proved already.

    Parameters
    ----------
    function : callable
        The function that says the program.
    verify : bool
        Whether to prove now, for all sizes, that each tile is written once and before it is read.

    Returns
    -------
    TileProgram
        With `bind(sizes)`, which makes it one that can run.

    Examples
    --------
    >>> import linnet as ln
    >>> @ln.tile_program
    ... def doubled(A: ln.In, B: ln.Out, N: int):
    ...     for i in range(N):
    ...         B[i] = add(A[i], A[i])
    >>> doubled.bind(N=3).count()
    3
    """

    def made(given: Callable[..., Any]) -> TileProgram:
        return TileProgram(parse_function(given), verify=verify)

    return made if function is None else made(function)


class TileProgram:
    """A program over tiles, for all sizes.

    >>> from linnet.kernels import kernel
    >>> @kernel("doc_scale")
    ... def scale(x):
    ...     return 2 * x
    >>> program = TileProgram.from_source('''
    ... def double(A: In, B: Out, N: int):
    ...     for i in range(N):
    ...         B[i] = doc_scale(A[i])
    ... ''')
    >>> program.proven
    True
    >>> program.bind(N=3).count()
    3
    """

    def __init__(self, tree: Program, *, verify: bool = True, kernels: bool = True) -> None:
        """`kernels=False` allows unknown kernels; `verify=False` puts the proofs off until asked for."""
        self.tree = tree
        check(tree, kernels=kernels)
        self.statements: tuple[Statement, ...] = flatten(tree)
        check_statements(tree, self.statements)
        self._verify = verify
        if verify:
            _ = self.proof
            if self.unproven:
                self._check_small_sizes()

    @classmethod
    def from_source(cls, text: str, constants: Mapping[str, Any] | None = None) -> TileProgram:
        """A program from its text; `constants` gives values to names it does not define."""
        return cls(parse_source(text, constants))

    @classmethod
    def from_bytes(cls, data: bytes) -> TileProgram:
        """The program that `to_bytes` wrote; WireError for anything else. Runs nothing."""
        return cls(wire.from_bytes(data), verify=False, kernels=False)

    def to_bytes(self) -> bytes:
        """The program as data: no code, the same length for every size."""
        return wire.to_bytes(self.tree)

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def arrays(self) -> dict[str, ArrayRole]:
        """Roles of the arrays, by name, in the order of the parameters."""
        return self.tree.roles(In, Out, Temp)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the sizes that `bind` takes."""
        return tuple(self.tree.roles(Size))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that `bind` takes."""
        return tuple(self.tree.roles(Table))

    @property
    def proven(self) -> bool:
        """Whether single assignment and write-before-read are proved for all sizes."""
        return not self.unproven

    @cached_property
    def unproven(self) -> tuple[str, ...]:
        """Why the program could not be proved; such a program is checked when it runs."""
        if self._verify:
            return self.proof.unproven
        from linnet.programs.prove import prove

        findings = Findings(self.name, self.tree.file, self.tree.source)
        reasons = prove(self.tree, self.statements, findings).unproven
        return (*reasons, *(d.message for d in findings.found))

    @cached_property
    def proof(self) -> Proof:
        """Dependences, and what is known of them for all sizes."""
        from linnet.programs.prove import prove

        findings = Findings(self.name, self.tree.file, self.tree.source)
        proof = prove(self.tree, self.statements, findings if self._verify else None)
        findings.raise_if_any()
        return proof

    @property
    def streams(self) -> bool:
        """Whether a kernel of it brings tiles from elsewhere, or takes them there."""
        return any(get_kernel(each.kernel).streams for each in self.statements)

    @cached_property
    def compiled(self) -> Compiled:
        """The generated solvers."""
        return Compiled(self.tree, self.statements, self.proof.dependences)

    def bind(self, **sizes: Any) -> BoundProgram:
        """The program at given sizes (and tables). Nothing is enumerated.

        (But for small programs with tables that could not be proved: they are looked through here,
        since nothing could be said of them before.)
        """
        bound = BoundProgram(self, sizes)
        if self._verify and self.tables and self.unproven and bound.count() <= _SMALL_TASKS:
            with suppress(TooManyRows):
                bound.verify(_SMALL_TILES)
        return bound

    def then(
        self,
        second: TileProgram,
        wires: Mapping[str, str] | None = None,
        /,
        *,
        sizes: Mapping[str, str | int] | None = None,
        keep: bool = True,
        **more: str,
    ) -> TileProgram:
        """This program, then `second`, as one program.

        `A="O"` makes input A of `second` the output O of this one; an input with the name of
        an output is joined to it without saying. Sizes and inputs with equal names are shared;
        `sizes={"M": "N + 1"}` gives a size of `second` in terms of this program's. With
        `keep=False` joined outputs become intermediate, with the fill they have, and are deleted when
        they were read for the last time. The proofs are made now, unless both parts put theirs off.
        """
        tree = compose(self.tree, second.tree, {**(wires or {}), **more}, sizes or {}, keep)
        return TileProgram(tree, verify=self._verify or second._verify)

    def _check_small_sizes(self) -> None:
        """Look for violations of what could not be proved, at all small sizes."""
        if self.tables:
            return  # nothing to look at before the tables are known: bind looks
        tried = 0
        for values in sorted(product(_SMALL, repeat=len(self.sizes)), key=sum):
            if tried >= _SMALL_BINDINGS:
                break
            try:
                bound = BoundProgram(self, dict(zip(self.sizes, values, strict=True)))
                if bound.count() > _SMALL_TASKS:
                    continue
                bound.verify(_SMALL_TILES)
            except (SingleAssignmentError, UnwrittenTileError):
                raise
            except (ProgramError, BindError, ArithmeticError, ValueError, TooManyRows):
                continue  # the program is not defined at these sizes, or not small
            tried += 1

    def __reduce__(self) -> tuple[Any, ...]:
        return TileProgram.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TileProgram) and self.tree == other.tree)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.tree)

    def __repr__(self) -> str:
        return show_program(self.tree)

    def _repr_html_(self) -> str:
        from linnet.reports.html_facts import facts_as_html

        proof = (
            "single assignment and writes before reads, for all sizes" if self.proven else "not for all sizes"
        )
        told = {"proved": proof, "as data": f"{len(self.to_bytes()):,} bytes"}
        return f"{facts_as_html(f'Tile program {self.name}', told)}<pre>{escape(repr(self))}</pre>"

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Lazy arrays: the outputs of the program on arrays, given by position (the `In` parameters in their
        order) or by name. Sizes follow from how the arrays are cut where they can; others are given by name.
        """
        if not _callers:
            raise TypeError(
                f"tile program {self.name!r} can be called on arrays once `linnet` is imported; "
                f"without it, bind it to sizes and give that to an engine"
            )
        return _callers[0](self, arrays, named)


_callers: list[Callable[[TileProgram, tuple[Any, ...], dict[str, Any]], Any]] = []


def calls_by(caller: Callable[[TileProgram, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Say what calling a program does: rooms above make arrays of its outputs."""
    _callers[:] = [caller]
