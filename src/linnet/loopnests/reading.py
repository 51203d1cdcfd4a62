"""From Python's syntax to loop nests.

Only what a nest may contain is read here; everything around nests stays Python. A loop whose body holds
something else (a whole-array statement, a `while`) is no nest: `WholeArrays` says so, and the function runs
that loop as Python does, with the nests inside it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from linnet.loopnests.language import (
    Assign,
    Binary,
    Branch,
    Call,
    Expr,
    Load,
    Logic,
    Loop,
    Name,
    Pick,
    Stmt,
    Unary,
    Update,
)
from linnet.loopnests.reading_expressions import (
    BINARY,
    FOLDS,
    MONOIDS,
    ExpressionReader,
    WholeArrays,
    dotted,
    is_counting,
)
from linnet.programs.grammar import At

__all__ = ["FOLDS", "Reader", "WholeArrays", "dotted", "is_counting"]


ELEMENTS = "the tensor"
"""What the array is called that a comprehension in `ln.tensor` makes."""


class Reader(ExpressionReader):
    """Reads nests of one function."""

    # ---- statements

    def nest(self, node: ast.For) -> Loop:
        """A `for` statement as a nest."""
        if node.orelse:
            self.origin.refuse(
                "a loop with `else` is not part of the language",
                "put the statements after the loop",
                self.at(node),
            )
        loops = self.loops(node.target, node.iter, frozenset())
        return self.nested(loops, self.block(node.body, frozenset(loop.variable for loop in loops)))

    def nested(self, loops: Sequence[Loop], body: tuple[Stmt, ...]) -> Loop:
        """Loops inside each other around a body."""
        for loop in reversed(loops):
            body = (Loop(loop.variable, loop.start, loop.stop, loop.step, body, loop.wave, at=loop.at),)
        made = body[0]
        assert isinstance(made, Loop)
        return made

    def grouped(
        self,
        node: ast.DictComp | ast.GeneratorExp,
        key: ast.expr,
        value: ast.expr,
        monoid: str | None,
        at: At,
    ) -> tuple[Stmt, ...]:
        """`{key: value for ...}` as loops that put values into the array called `ELEMENTS`."""
        loops, conditions, inside = self.comprehended(node.generators, frozenset())
        keys = key.elts if isinstance(key, ast.Tuple) else [key]
        target = Load(ELEMENTS, tuple(self.expression(each, inside) for each in keys), at=at)
        made = self.expression(value, inside)
        body: tuple[Stmt, ...] = (
            Assign(target, made, at=at) if monoid is None else Update(target, monoid, made, at=at),
        )
        for test in reversed(conditions):
            body = (Branch(test, body, at=at),)
        return (self.nested(loops, body),)

    def block(self, body: Sequence[ast.stmt], inside: frozenset[str]) -> tuple[Stmt, ...]:
        """Statements inside loops over the variables `inside`."""
        made: list[Stmt] = []
        for number, node in enumerate(body):
            skipped = self._continued(node)
            if skipped is not None:
                rest = self.block(body[number + 1 :], inside)
                at = self.at(node)
                return (*made, Branch(Unary("not", self.expression(skipped, inside), at=at), rest, at=at))
            made.extend(self.statement(node, inside))
        return tuple(made)

    @staticmethod
    def _continued(node: ast.stmt) -> ast.expr | None:
        """The condition of `if condition: continue`."""
        if (
            isinstance(node, ast.If)
            and len(node.body) == 1
            and isinstance(node.body[0], ast.Continue)
            and not node.orelse
        ):
            return node.test
        return None

    def statement(self, node: ast.stmt, inside: frozenset[str]) -> list[Stmt]:
        """One statement."""
        at = self.at(node)
        match node:
            case ast.Pass():
                return []
            case ast.Expr(ast.Constant(str())):
                return []
            case ast.For(target, counted, body, []):
                loops = self.loops(target, counted, inside)
                variables = frozenset(loop.variable for loop in loops)
                return [self.nested(loops, self.block(body, inside | variables))]
            case ast.If(test, body, orelse):
                return [
                    Branch(
                        self.expression(test, inside),
                        self.block(body, inside),
                        self.block(orelse, inside),
                        at=at,
                    )
                ]
            case ast.AugAssign(target, op, value):
                return [
                    self._augmented(
                        node,
                        self._target(target, inside),
                        BINARY.get(type(op)),
                        self.expression(value, inside),
                    )
                ]
            case ast.AnnAssign(target, _, value) if value is not None:
                return [self._assigned(self._target(target, inside), self.expression(value, inside), at)]
            case ast.Assign([ast.Tuple() as left], value):
                return self._several(node, left, value, inside)
            case ast.Assign([target], value):
                return [self._assigned(self._target(target, inside), self.expression(value, inside), at)]
            case ast.Assign(targets, value):
                found = [self._target(each, inside) for each in reversed(targets)]
                return [self._assigned(found[0], self.expression(value, inside), at), *(
                    self._assigned(each, found[0], at) for each in found[1:]
                )]  # fmt: skip
            case ast.While() | ast.With() | ast.FunctionDef() | ast.For():
                raise WholeArrays
            case _:
                self.refuse_statement(node)
        raise AssertionError(node)

    def refuse_statement(self, node: ast.stmt) -> None:
        """Say why a statement cannot be in a nest."""
        words = {
            ast.Break: (
                "`break` ends a loop early, so how far it runs depends on values",
                "guard the statements with `if` instead",
            ),
            ast.Continue: (
                "`continue` is only known as `if condition: continue`",
                "put the rest of the body under `if`",
            ),
            ast.Return: ("`return` inside a loop ends it early", "return after the loops"),
            ast.Expr: (
                "a statement without a target is a side effect",
                "assign its value, or move it out of the loops",
            ),
            ast.Raise: ("`raise` inside a loop is a side effect", "check the arguments before the loops"),
            ast.Assert: ("`assert` inside a loop is a side effect", "check the arguments before the loops"),
            ast.Global: ("`global` changes what others see", "return the value"),
            ast.Delete: ("`del` inside a loop is a side effect", "leave it out"),
        }
        message, fix = words.get(
            type(node),
            (
                f"{type(node).__name__} is not part of the language of loops",
                "write plain loops and assignments",
            ),
        )
        self.origin.refuse(message, fix, self.at(node))

    def _target(self, node: ast.expr, inside: frozenset[str]) -> Load | Name:
        if isinstance(node, ast.Name):
            if node.id in inside:
                self.origin.refuse(
                    f"the loop variable {node.id!r} is assigned",
                    "give the scalar another name",
                    self.at(node),
                )
            return Name(node.id, at=self.at(node))
        if isinstance(node, ast.Subscript):
            made = self.expression(node, inside)
            if isinstance(made, Load):
                return made
        if isinstance(node, ast.Attribute):
            self.origin.refuse(
                "assigning to an attribute is a side effect", "assign to arrays and names", self.at(node)
            )
        raise WholeArrays

    def _augmented(self, node: ast.AugAssign, target: Load | Name, op: str | None, value: Expr) -> Stmt:
        at = self.at(node)
        if op is None:
            raise WholeArrays  # @=
        if op in MONOIDS:
            return Update(target, MONOIDS[op], value, at=at)
        if op == "-":
            return Update(target, "+", Unary("less", value, at=value.at), at=at)
        return Assign(target, Binary(op, target, value, at=at), at=at)

    def _assigned(self, target: Load | Name, value: Expr, at: At) -> Stmt:
        """An assignment; `x = x ⊕ v` is an update."""
        match value:
            case Binary(op, left, right) if op in MONOIDS:
                if left == target:
                    return Update(target, op, right, at=at)
                if right == target:
                    return Update(target, op, left, at=at)
            case Binary("-", left, right) if left == target:
                return Update(target, "+", Unary("less", right, at=right.at), at=at)
            case Call("min" | "max" as name, (left, right)) if left == target:
                return Update(target, name, right, at=at)
            case Logic(op, left, right) if left == target:
                return Update(target, op, right, at=at)
            case _:
                pass
        return Assign(target, value, at=at)

    def _several(
        self, node: ast.Assign, left: ast.Tuple, value: ast.expr, inside: frozenset[str]
    ) -> list[Stmt]:
        """`a, b = ...`: an arg-min, or several values through scalars of their own."""
        at = self.at(node)
        targets = [self._target(each, inside) for each in left.elts]
        if isinstance(value, ast.Call) and dotted(value.func) in ("min", "max") and len(targets) == 2:
            pairs = [each.elts for each in value.args if isinstance(each, ast.Tuple) and len(each.elts) == 2]
            if len(pairs) == len(value.args) == 2:
                old, new = ([self.expression(each, inside) for each in pair] for pair in pairs)
                if old != targets:
                    self.origin.refuse(
                        "an arg-min compares the pair that it assigns, written first",
                        "write `best, arg = min((best, arg), (value, label))`",
                        at,
                    )
                return [Pick(targets[0], targets[1], dotted(value.func) or "min", new[0], new[1], at=at)]
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(targets):
            raise WholeArrays
        made: list[Stmt] = []
        names: list[Name] = []
        for each in value.elts:
            self._fresh += 1
            names.append(Name(f"$pair{self._fresh}", at=at))
            made.append(Assign(names[-1], self.expression(each, inside), at=at))
        made.extend(Assign(target, name, at=at) for target, name in zip(targets, names, strict=True))
        return made
