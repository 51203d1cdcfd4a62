"""Programs as sets of integers (isl): exact where everything is affine.

An expression built from sizes and loop variables by + - min max, by multiplication,
// and % with constants, by choices and by constant tables is piecewise quasi-affine; isl
represents it, and the conditions made of it, exactly and for all sizes at once.
Anything else raises NotAffine, and the statement is analysed by other means.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import islpy as isl

from linnet.errors import LinnetError
from linnet.programs.grammar import (
    COMPARISONS,
    Apply,
    Binary,
    Choice,
    Expr,
    Int,
    Lookup,
    Name,
    Program,
    Size,
    Unary,
)
from linnet.programs.statements import Access, Loop, Statement

MAX_OPERATIONS = 2_000_000
"""isl gives up beyond this many steps; the program then counts as not affine."""
MAX_TABLE = 128
"""Longer tables are not written out as pieces."""

IN, OUT, PARAM, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param, isl.dim_type.set


class NotAffine(LinnetError):
    """An expression that isl cannot represent."""


class Sets:
    """The iteration sets and access maps of one program."""

    def __init__(self, program: Program, statements: Sequence[Statement]) -> None:
        self.program = program
        self.statements = statements
        self.sizes: list[str] = list(program.roles(Size))
        self.tables: dict[str, tuple[int, ...]] = dict(program.tables)
        self.context = isl.DEFAULT_CONTEXT  # islpy makes plain integers in this one
        self.grant()
        self._spaces: dict[int, tuple[Any, list[Any], list[Any]]] = {}
        self._domains: dict[int, Any] = {}
        self._accesses: dict[object, Any] = {}

    def grant(self) -> None:
        """Allow the next questions their number of steps."""
        self.context.set_max_operations(MAX_OPERATIONS)
        self.context.reset_operations()

    # -- spaces and expressions

    def space(self, dims: int) -> tuple[Any, list[Any], list[Any]]:
        """Zero, the sizes, and the variables of a space, as affine functions on it."""
        if dims not in self._spaces:
            space = isl.Space.set_alloc(self.context, len(self.sizes), dims)
            for k, name in enumerate(self.sizes):
                space = space.set_dim_name(PARAM, k, name)
            local = isl.LocalSpace.from_space(space)
            zero = isl.PwAff.from_aff(isl.Aff.zero_on_domain(local))
            sizes = [
                isl.PwAff.from_aff(isl.Aff.var_on_domain(local, PARAM, k)) for k in range(len(self.sizes))
            ]
            variables = [isl.PwAff.from_aff(isl.Aff.var_on_domain(local, SET, k)) for k in range(dims)]
            self._spaces[dims] = (zero, sizes, variables)
        return self._spaces[dims]

    def function(self, expr: Expr, names: dict[str, int], dims: int) -> Any:
        """`expr` as a piecewise affine function of a space whose axes are called `names`."""
        zero, sizes, variables = self.space(dims)

        def go(e: Expr) -> Any:
            match e:
                case Int(value):
                    return zero.add_constant_val(isl.Val.int_from_si(self.context, value))
                case Name(id):
                    return variables[names[id]] if id in names else sizes[self.sizes.index(id)]
                case Unary("-", operand):
                    return go(operand).neg()
                case Binary("+", left, right):
                    return go(left).add(go(right))
                case Binary("-", left, right):
                    return go(left).sub(go(right))
                case Binary("*", left, right):
                    a, b = go(left), go(right)
                    if not (a.is_cst() or b.is_cst()):
                        raise NotAffine("a product of two variables or sizes")
                    return a.mul(b)
                case Binary("//" | "%" as op, left, right):
                    by = _constant(right)
                    if by is None or by <= 0:
                        raise NotAffine(f"{op} by something that is not a positive constant")
                    value = isl.Val.int_from_si(self.context, by)
                    return go(left).mod_val(value) if op == "%" else go(left).scale_down_val(value).floor()
                case Binary("**", left, right):
                    base, exponent = _constant(left), _constant(right)
                    if base is None or exponent is None or not 0 <= exponent <= 62:
                        raise NotAffine("a power of a variable")
                    return go(Int(base**exponent))
                case Apply("min" | "max" as function, args):
                    pieces = go(args[0])
                    for other in args[1:]:
                        pieces = pieces.min(go(other)) if function == "min" else pieces.max(go(other))
                    return pieces
                case Choice(condition, then, otherwise):
                    holds = self.condition(condition, names, dims)
                    return (
                        go(then)
                        .intersect_domain(holds)
                        .union_add(go(otherwise).intersect_domain(holds.complement()))
                    )
                case Lookup(table, index):
                    return self.lookup(table, go(index), zero)
                case _:
                    raise NotAffine("a logarithm, a table given later, or a condition used as a number")

        return go(expr)

    def lookup(self, table: str, index: Any, zero: Any) -> Any:
        values = self.tables.get(table)
        if values is None or not 0 < len(values) <= MAX_TABLE:
            raise NotAffine("a table that is long or given when the program is bound")
        pieces: Any = None
        for k, value in enumerate(values):
            here = index.eq_set(zero.add_constant_val(isl.Val.int_from_si(self.context, k)))
            piece = zero.add_constant_val(isl.Val.int_from_si(self.context, value)).intersect_domain(here)
            pieces = piece if pieces is None else pieces.union_add(piece)
        return pieces

    def condition(self, expr: Expr, names: dict[str, int], dims: int) -> Any:
        """The set of points where a condition holds."""
        match expr:
            case Binary(op, left, right) if op in COMPARISONS:
                a, b = self.function(left, names, dims), self.function(right, names, dims)
                return getattr(a, _COMPARE[op])(b)
            case Binary("and", left, right):
                return self.condition(left, names, dims).intersect(self.condition(right, names, dims))
            case Binary("or", left, right):
                return self.condition(left, names, dims).union(self.condition(right, names, dims))
            case Unary("not", operand):
                return self.condition(operand, names, dims).complement()
            case _:
                raise NotAffine("a condition that is not a comparison")

    # -- domains and accesses

    @cached_property
    def assumptions_are_affine(self) -> bool:
        """Whether `sizes_allowed` says all that the program assumes."""
        try:
            for expr in self.program.assumptions:
                self.condition(expr, {}, 0)
        except NotAffine:
            return False
        return True

    @cached_property
    def sizes_allowed(self) -> Any:
        """The sizes a program may be bound to: not negative, and as its assumptions say."""
        zero, sizes, _ = self.space(0)
        allowed = zero.eq_set(zero)
        for size in sizes:
            allowed = allowed.intersect(size.ge_set(zero))
        for expr in self.program.assumptions:
            try:
                allowed = allowed.intersect(self.condition(expr, {}, 0))
            except NotAffine:
                continue  # fewer assumptions: what is proved without one holds with it
        return allowed.params()

    def range(self, loop: Loop, names: dict[str, int], dims: int) -> Any:
        """Points whose variable of `loop` lies in its range and meets its guards."""
        var = self.space(dims)[2][names[loop.variable]]
        start = self.function(loop.start, names, dims)
        stop = self.function(loop.stop, names, dims)
        step = _constant(loop.step)
        if step is None:
            raise NotAffine("a step that is not constant")
        if step > 0:
            inside = var.ge_set(start).intersect(var.lt_set(stop))
        else:
            inside = var.le_set(start).intersect(var.gt_set(stop))
        if abs(step) != 1:
            zero = self.space(dims)[0]
            modulus = isl.Val.int_from_si(self.context, abs(step))
            inside = inside.intersect(var.sub(start).mod_val(modulus).eq_set(zero))
        for guard in loop.guards:
            inside = inside.intersect(self.condition(guard, names, dims))
        return inside

    def inside(self, loops: Sequence[Loop], guards: Sequence[Expr], names: dict[str, int], dims: int) -> Any:
        zero = self.space(dims)[0]
        inside = zero.eq_set(zero).intersect_params(self.sizes_allowed)
        for guard in guards:
            inside = inside.intersect(self.condition(guard, names, dims))
        for loop in loops:
            inside = inside.intersect(self.range(loop, names, dims))
        return inside

    def domain(self, number: int) -> Any:
        """The iterations of one statement: a set over its loop variables."""
        if number not in self._domains:
            statement = self.statements[number]
            names = {v: k for k, v in enumerate(statement.variables)}
            points = self.inside(statement.loops, statement.guards, names, len(names))
            self._domains[number] = points.coalesce()
        return self._domains[number]

    def access(self, number: int, kind: str, slot: int) -> Any:
        """Iterations of a statement → tiles that one of its accesses names."""
        statement = self.statements[number]
        access: Access = getattr(statement, kind)[slot]
        key = (number, access.index, access.locals, access.guards)  # equal for all that name the same tiles
        if key not in self._accesses:
            self._accesses[key] = self.relation(statement, access)
        return self._accesses[key]

    def relation(self, statement: Statement, access: Access) -> Any:
        """Built from functions, not by moving axes: isl's move_dims leaves stale samples in a set behind."""
        depth, locals = len(statement.loops), len(access.locals)
        variables = [*statement.variables, *(loop.variable for loop in access.locals)]
        names = {v: k for k, v in enumerate(variables)}
        dims = depth + locals
        points = self.domain(statement.number).add_dims(SET, locals)
        for loop in access.locals:
            points = points.intersect(self.range(loop, names, dims))
        for guard in access.guards:
            points = points.intersect(self.condition(guard, names, dims))
        relation: Any = None
        for expr in access.index:
            axis = isl.Map.from_pw_aff(self.function(expr, names, dims))
            relation = axis if relation is None else relation.flat_range_product(axis)
        relation = isl.Map.from_domain(points) if relation is None else relation.intersect_domain(points)
        return relation.project_out(IN, depth, locals)


def greatest(points: Any, axis: int) -> int:
    """Greatest value along an axis of a bounded set that is not empty, without parameters."""
    # piece by piece: asked for a union with an empty piece in it, isl answers 0 for that piece
    pieces = [b.to_set() for b in points.get_basic_sets() if not b.is_empty()]
    return max(piece.dim_max_val(axis).to_python() for piece in pieces)


def first_point(points: Any) -> list[int]:
    """The first point of a set in lexicographic order; the set has no parameters and is not empty."""
    # read back from its text: isl's move_dims, used by callers, leaves a stale sample in a set behind
    fresh = isl.Set.read_from_str(points.get_ctx(), str(points))
    piece = next(b for b in fresh.lexmin().get_basic_sets() if not b.is_empty())
    point = piece.sample_point()
    return [point.get_coordinate_val(SET, k).to_python() for k in range(points.dim(SET))]


def _constant(expr: Expr) -> int | None:
    match expr:
        case Int(value):
            return value
        case Unary("-", Int(value)):
            return -value
        case _:
            return None


_COMPARE = {"==": "eq_set", "!=": "ne_set", "<": "lt_set", "<=": "le_set", ">": "gt_set", ">=": "ge_set"}
