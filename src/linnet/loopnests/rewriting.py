"""The function with its nests taken out: what is left is plain Python, on lazy arrays.

Every outermost nest becomes a question to the run (`nest(k, locals())`): the nest was done, and gives the
scalars it assigned, or it is about whole arrays, and the loop runs as it was written, with the nests inside
it. `sum(... for ...)` outside of nests is asked for in the same way.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from linnet.futures.source import Source
from linnet.loopnests.binding import assigned_names
from linnet.loopnests.language import Assign, Fold, Loop, Name, Stmt
from linnet.loopnests.monoids import MONOIDS
from linnet.loopnests.reading import FOLDS, Reader, WholeArrays, dotted, is_counting
from linnet.loopnests.refusing import Origin

RUN = "__loops_run"


@dataclass(slots=True)
class Piece:
    """A nest, or a fold outside of nests."""

    body: tuple[Stmt, ...]
    results: tuple[str, ...]
    """The names it assigns that are read elsewhere."""


@dataclass(slots=True)
class Rewritten:
    """A function, ready to be run."""

    code: CodeType
    pieces: list[Piece] = field(default_factory=list[Piece])
    stored: frozenset[str] = frozenset()
    """Names whose elements are assigned, and names of the same arrays."""


def rewritten(source: Source, origin: Origin, free: tuple[str, ...]) -> Rewritten:
    """A function without its nests."""
    tree = copy.deepcopy(source.tree)
    if isinstance(tree, ast.AsyncFunctionDef):
        origin.refuse("`async` functions cannot be loops", "write `def`", None)
    tree.decorator_list = []
    tree.returns = None
    for each in (*tree.args.args, *tree.args.kwonlyargs, *tree.args.posonlyargs):
        each.annotation = None
    tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]
    tree.args.kw_defaults = [None if each is None else ast.Constant(None) for each in tree.args.kw_defaults]
    writer = Rewriter(source, origin)
    tree.body = writer.body(tree.body)
    around = ast.parse(f"def __around({', '.join((RUN, *free))}):\n    return None")
    outer = around.body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [tree, ast.Return(ast.Name(tree.name, ast.Load()))]
    ast.fix_missing_locations(around)
    return Rewritten(compile(around, source.file, "exec"), writer.pieces, _stored(source.tree))


def _stored(tree: ast.AST) -> frozenset[str]:
    """Names whose elements are assigned, with the names they have besides."""
    found: set[str] = set()
    same: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            inner: ast.expr = node
            while isinstance(inner, ast.Subscript):
                inner = inner.value
            found |= {inner.id} if isinstance(inner, ast.Name) else set()
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        if isinstance(node, ast.Assign):
            names = [each.id for one in node.targets for each in ast.walk(one) if isinstance(each, ast.Name)]
            used = [each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)]
            same.extend((a, b) for a in names for b in used)
    for _ in same:
        more = {a for pair in same if found & set(pair) for a in pair}
        if more <= found:
            break
        found |= more
    return frozenset(found)


class Rewriter:
    """Takes nests out of statements."""

    def __init__(self, source: Source, origin: Origin) -> None:
        self.origin = origin
        self.reader: Reader = Reader(origin, source.indent)
        self.pieces: list[Piece] = []
        self.tree = source.tree

    def body(self, body: list[ast.stmt], loop: str = "") -> list[ast.stmt]:
        """Statements outside of nests; `loop` is the kind of loop around them."""
        return [each for one in body for each in self.statement(one, loop)]

    def statement(self, node: ast.stmt, loop: str) -> list[ast.stmt]:
        """One statement."""
        match node:
            case ast.For():
                return self._loop(node)
            case ast.While():
                carried = ast.Tuple([ast.Constant(name) for name in self._carried(node)], ast.Load())
                node.test = _call("stage", self.expression(node.test), carried, _locals())
                node.body, node.orelse = self.body(node.body, "while"), self.body(node.orelse, loop)
                return [node]
            case ast.If():
                node.test = self.expression(node.test)
                node.body, node.orelse = self.body(node.body, loop), self.body(node.orelse, loop)
                return [node]
            case ast.Break() if loop == "for":
                self.reader.refuse_statement(node)
            case ast.Expr(ast.Constant()):
                return [node]
            case ast.Return() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Assert() | ast.Raise():
                return [self.expression(node)]
            case (
                ast.Pass()
                | ast.Break()
                | ast.Continue()
                | ast.Import()
                | ast.ImportFrom()
                | ast.FunctionDef()
            ):
                return [node]
            case ast.Expr():
                self.origin.refuse(
                    "a statement without a target is a side effect",
                    "assign its value, or do it outside of the function",
                    self.reader.at(node),
                )
            case _:
                self.reader.refuse_statement(node)
        return [node]

    def _loop(self, node: ast.For) -> list[ast.stmt]:
        try:
            nest = self.reader.nest(node) if is_counting(node.iter) else None
        except WholeArrays:
            nest = None
        plain = copy.deepcopy(node)
        plain.body = self.body(plain.body, "for")
        if not is_counting(plain.iter):
            plain.iter = _call("iterable", plain.iter, ast.Constant(node.lineno))
        if nest is None:
            return [plain]
        number = self._piece((nest,), node)
        names = self.pieces[number].results
        held = ast.Name(f"__loops_made{number}", ast.Store())
        asked = ast.Assign([held], _call("nest", ast.Constant(number), _locals()))
        taken: list[ast.stmt] = []
        for place, name in enumerate(names):
            made = ast.Subscript(ast.Name(held.id, ast.Load()), ast.Constant(place), ast.Load())
            taken.append(ast.Assign([ast.Name(name, ast.Store())], made))
            gone = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [_attribute("UNSET")])
            taken.append(ast.If(gone, [ast.Delete([ast.Name(name, ast.Del())])], []))
        test = ast.Compare(ast.Name(held.id, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
        made = [asked, ast.If(test, taken or [ast.Pass()], [plain])]
        return [ast.copy_location(each, node) for each in made]

    def _carried(self, node: ast.While) -> list[str]:
        """Names that the body of a loop assigns and that its next turn, or what comes after it, reads."""
        assigned: set[str] = set()
        read = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
        for name, is_assigned in (each for one in node.body for each in _names_in_order(one)):
            if is_assigned:
                assigned.add(name)
            elif name not in assigned:
                read.add(name)
        end = node.end_lineno or 0
        later = (each for each in ast.walk(self.tree) if isinstance(each, ast.Name) and each.lineno > end)
        return sorted(assigned & (read | {each.id for each in later if isinstance(each.ctx, ast.Load)}))

    def _piece(self, body: tuple[Stmt, ...], node: ast.AST) -> int:
        elsewhere = {
            each.id for each in ast.walk(self.tree)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and not self._within(each, node)
        }  # fmt: skip
        names = {name for name in assigned_names(body) | _loop_names(body) if not name.startswith("$")}
        self.pieces.append(Piece(body, tuple(sorted(names & elsewhere))))
        return len(self.pieces) - 1

    @staticmethod
    def _within(name: ast.Name, node: ast.AST) -> bool:
        """Whether a name stands inside a node, by its place in the text."""
        first = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        last = (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))
        return first <= (name.lineno, name.col_offset) < last

    def expression(self, node: ast.AST) -> Any:
        """An expression outside of nests: folds in it are taken out."""
        return _Folds(self).visit(node)


class _Folds(ast.NodeTransformer):
    """Takes out `sum(... for ... in range(...))`."""

    def __init__(self, writer: Rewriter) -> None:
        self.writer = writer

    def visit_Call(self, node: ast.Call) -> ast.AST:
        words = dotted(node.func)
        if words is not None and words.split(".")[-1] == "tensor" and len(node.args) == 2:
            return self._grouped(node)
        fold = (
            words in FOLDS
            and len(node.args) == 1
            and not node.keywords
            and isinstance(node.args[0], ast.GeneratorExp)
        )
        if not fold or not isinstance(node.args[0], ast.GeneratorExp) or words is None:
            return self.generic_visit(node)
        try:
            made = self.writer.reader.fold(words, node.args[0], frozenset(), self.writer.reader.at(node))
        except WholeArrays:
            return node
        assert isinstance(made, Fold)
        result = Name("$result", at=made.at)
        self.writer.pieces.append(Piece((Assign(result, made, at=made.at),), ("$result",)))
        number = len(self.writer.pieces) - 1
        asked = _call("fold", ast.Constant(number), _locals())
        held = ast.NamedExpr(ast.Name("__loops_fold", ast.Store()), asked)
        test = ast.Compare(held, [ast.IsNot()], [_attribute("UNSET")])
        return ast.copy_location(ast.IfExp(test, ast.Name("__loops_fold", ast.Load()), node), node)

    def _grouped(self, node: ast.Call) -> ast.AST:
        """`ln.tensor(shape, {key: value for ...}, reduce="+")`: values with one key are combined."""
        elements = node.args[1]
        match elements:
            case ast.DictComp(key, value) | ast.GeneratorExp(ast.Tuple([key, value])):
                pass
            case _:
                return self.generic_visit(node)
        reader, at = self.writer.reader, self.writer.reader.at(node)
        words = [each.value for each in node.keywords if each.arg == "reduce"]
        reduce = words[0].value if words and isinstance(words[0], ast.Constant) else None
        if len(node.keywords) > len(words) or (words and reduce not in MONOIDS and reduce is not None):
            return self.generic_visit(node)
        try:
            body = reader.grouped(elements, key, value, None if reduce is None else str(reduce), at)
        except WholeArrays:
            return self.generic_visit(node)
        self.writer.pieces.append(Piece(body, ()))
        number = ast.Constant(len(self.writer.pieces) - 1)
        asked = _call("tensor", number, self.visit(node.args[0]), ast.Constant(reduce), _locals())
        held = ast.NamedExpr(ast.Name("__loops_fold", ast.Store()), asked)
        test = ast.Compare(held, [ast.IsNot()], [_attribute("UNSET")])
        return ast.copy_location(ast.IfExp(test, ast.Name("__loops_fold", ast.Load()), node), node)


def _names_in_order(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Names in the order in which they are used, and whether they are assigned there."""
    match node:
        case ast.Name():
            yield node.id, isinstance(node.ctx, ast.Store)
            return
        case ast.Assign():
            parts: list[ast.AST] = [node.value, *node.targets]
        case ast.AugAssign(ast.Name(name)):
            yield name, False
            parts = [node.value, node.target]
        case ast.For():
            parts = [node.iter, node.target, *node.body, *node.orelse]
        case _:
            parts = list(ast.iter_child_nodes(node))
    for each in parts:
        yield from _names_in_order(each)


def _loop_names(body: tuple[Stmt, ...]) -> set[str]:
    found: set[str] = set()
    for each in body:
        if isinstance(each, Loop):
            found |= {each.variable} | _loop_names(each.body)
    return found


def _attribute(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(RUN, ast.Load()), name, ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_attribute(name), list(arguments), [])


def _locals() -> ast.expr:
    return ast.Call(ast.Name("locals", ast.Load()), [], [])
