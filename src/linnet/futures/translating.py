"""From the source of a plain function to one whose statements call an `Activation`.

Control flow stays Python's: `if`, loops, `return`, `try` are the same statements. Expressions become calls
that know tasks, in the order in which Python evaluates them. Every node keeps its line, so that tracebacks
show the user's source. `docs/futures.md` writes the translation down as a table.
"""

from __future__ import annotations

import ast
from types import CellType, CodeType, FunctionType

from linnet.futures.activation import Activation
from linnet.futures.places import current_scheduler
from linnet.futures.plain import INSIDE
from linnet.futures.scheduler import here
from linnet.futures.source import Source
from linnet.futures.translating_expressions import (
    BINARY,
    INLINED,
    NOW,
    OPS,
    RT,
    Expressions,
    Operators,
    without_annotations,
)

_HARMLESS = frozenset(["print", "len", "str", "float", "int", "abs", "round", "repr", "range", "bool"])
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def now() -> Activation:
    """The parallel function that this thread runs; without one, nothing runs by itself."""
    return here.activation or Activation(current_scheduler(), here.depth, at_once=True)


def translate(function: FunctionType, source: Source) -> FunctionType:
    """The function whose statements call an activation; it shares defaults, names and cells."""
    assert isinstance(source.tree, ast.FunctionDef)
    tree = _Translator(source.tree).outer()
    tree.name = "__linnet_body"  # under its own name it would be a variable of what is around it
    free = list(function.__code__.co_freevars)
    around = ast.parse(f"def around({', '.join([*free, NOW, OPS])}):\n    return None").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body = [tree]
    module = ast.fix_missing_locations(ast.Module([around], []))
    flags = function.__code__.co_flags & 0x1000000
    made = compile(module, source.file, "exec", flags=flags, dont_inherit=True)
    code = _found(_found(made, "around"), tree.name)
    named = code.replace(co_name=function.__code__.co_name)
    code = _renamed(named, code.co_qualname, function.__code__.co_qualname)
    _register(code)
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    cells |= {NOW: CellType(now), OPS: CellType(Operators)}
    closure = tuple(cells[name] for name in code.co_freevars)
    result = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__ = function.__qualname__
    return result


def _found(code: CodeType, name: str) -> CodeType:
    return next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)


def _renamed(code: CodeType, before: str, after: str) -> CodeType:
    """The code, and those inside it, with the names that they have in the plain function."""
    inside = tuple(
        _renamed(each, before, after) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.replace(co_consts=inside, co_qualname=code.co_qualname.replace(before, after, 1))


def _register(code: CodeType) -> None:
    if not (code.co_argcount and code.co_varnames[0].startswith(RT)):  # part of an expression
        INSIDE.add(code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            _register(each)


def accumulators(tree: ast.FunctionDef) -> frozenset[str]:
    """Names that are changed by `+=` and the like, and whose values nobody else gets.

    They are read by operators, conditions, f-strings, `return`, and builtins that keep nothing.
    """
    changed = {
        n.target.id for n in ast.walk(tree) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }
    allowed: set[int] = set()
    shared: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not tree:
            shared |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        readers: list[ast.AST | None] = []
        if isinstance(node, ast.BinOp):
            readers = [node.left, node.right]
        elif isinstance(node, ast.Compare):
            readers = [node.left, *node.comparators]
        elif isinstance(node, ast.UnaryOp):
            readers = [node.operand]
        elif isinstance(node, ast.If | ast.While):
            readers = [node.test]
        elif isinstance(node, ast.FormattedValue):
            readers = [node.value]
        elif isinstance(node, ast.Return):
            readers = [node.value, *(node.value.elts if isinstance(node.value, ast.Tuple) else [])]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _HARMLESS:
            readers = list(node.args)
        allowed |= {id(each) for each in readers}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in allowed:
            shared.add(node.id)
    parameters = {each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg)}
    return frozenset(changed - shared - parameters - _bound_to_others(tree))


def _bound_to_others(tree: ast.FunctionDef) -> set[str]:
    """Names that are bound to anything but what an operator just made, or a constant."""
    own: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            own.add(id(node.target))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if (
                isinstance(target, ast.Tuple)
                and isinstance(value, ast.Tuple)
                and len(target.elts) == len(value.elts)
            ):
                pairs = list(zip(target.elts, value.elts, strict=True))
            own |= {id(each) for each, made in pairs if isinstance(made, ast.Constant | ast.BinOp)}
    stores = (
        each for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
    return {each.id for each in stores if id(each) not in own}


class _Translator(Expressions):
    """Translates one function, and those inside it."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        super().__init__()
        self.tree = tree
        self.alone = accumulators(tree)
        self.looped = 0
        """How many of its loops there are inside the innermost `try`."""

    # ------------------------------------------------------------------ functions

    def outer(self) -> ast.FunctionDef:
        """The function itself; its defaults are those of the plain one."""
        tree = self.tree
        begin = self.assign(RT, ast.Call(self.load(NOW), [], []), tree)
        varargs = self._varargs(tree.args, tree)
        body = [begin, *varargs, *self.block(tree.body)]
        return self._at(ast.FunctionDef(tree.name, without_annotations(tree.args), body, [], None), tree)

    def _varargs(self, arguments: ast.arguments, node: ast.AST) -> list[ast.stmt]:
        """`*args` of a function inside may hold tasks: it becomes one."""
        if arguments.vararg is None:
            return []
        name = arguments.vararg.arg
        return [self.assign(name, self.rt("tuple", node, self.load(name)), node)]

    def function(self, tree: ast.FunctionDef) -> list[ast.stmt]:
        """A function inside: statements call it as they are, others get values from it."""
        before = self.guarded, self.looped, self.inside
        self.guarded, self.looped, self.inside = 0, 0, True
        body = self.block(tree.body)
        end = self._at(
            ast.Return(self.rt("give", tree, self.load(INLINED), ast.Constant(None), line=False)), tree
        )
        self.guarded, self.looped, self.inside = before
        begin = [
            self.assign(RT, ast.Call(self.load(NOW), [], []), tree),
            self.assign(INLINED, self.rt("entering", tree, line=False), tree),
            *self._varargs(tree.args, tree),
        ]
        arguments = without_annotations(tree.args)
        arguments.defaults = [self.expr(each) for each in tree.args.defaults]
        arguments.kw_defaults = [None if each is None else self.expr(each) for each in tree.args.kw_defaults]
        foreign = self._at(ast.UnaryOp(ast.Not(), self.load(INLINED)), tree)
        whole = [*begin, *self._guard([*body, end], tree, foreign)]
        return [self._at(ast.FunctionDef(tree.name, arguments, whole, [], None), tree)]

    # ------------------------------------------------------------------ statements

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in body:
            made += self.stmt(each)
        return made

    def stmt(self, node: ast.stmt) -> list[ast.stmt]:
        method = getattr(self, f"stmt_{type(node).__name__}", None)
        if method is not None:
            return method(node)
        assert isinstance(node, ast.Pass | ast.Nonlocal), type(node)
        return [node]

    def stmt_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        return self.function(node)

    def stmt_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        return [self.do(self.expr(node.value), node)]

    def stmt_Return(self, node: ast.Return) -> list[ast.stmt]:
        value = ast.Constant(None) if node.value is None else self.expr(node.value)
        if not self.inside:
            return [self._at(ast.Return(self.rt("leave", node, value, line=False)), node)]
        if self.guarded:
            value = self.rt("checked", node, value, line=False)
        return [self._at(ast.Return(self.rt("give", node, self.load(INLINED), value, line=False)), node)]

    def stmt_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        written = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        self.kept |= {id(each) for each in written if isinstance(each, _DISPLAYS)}
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = self.expr(node.value)
            return [self._at(ast.Assign(node.targets, self.sure(value, node)), node)]
        name = self.temporary()
        made = [self.assign(name, self.expr(node.value), node)]
        for target in node.targets:
            made += self.store(target, self.load(name), node)
        return made

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            return [ast.copy_location(ast.Pass(), node)]
        return self.stmt_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def store(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        """Statements that bind a target to a value, which is a name."""
        if isinstance(target, ast.Name):
            return [self.assign(target.id, self.sure(value, node), node)]
        if isinstance(target, ast.Subscript):
            call = self.rt(
                "set_item", node, self.expr(target.value), self.index(target.slice), value, line=False
            )
            return [self.do(call, node)]
        if isinstance(target, ast.Attribute):
            return [
                self.do(
                    self.rt("set_attribute", node, self.expr(target.value), target.attr, value, line=False),
                    node,
                )
            ]
        assert isinstance(target, ast.Tuple | ast.List)
        if any(isinstance(each, ast.Starred) for each in target.elts):
            whole = self.rt("settled", node, value, line=False)
        else:
            whole = self.rt("unpacked", node, value, ast.Constant(len(target.elts)))
        names = [self.temporary() for _ in target.elts]
        targets: list[ast.expr] = []
        for name, each in zip(names, target.elts, strict=True):
            one: ast.expr = ast.Name(name, ast.Store())
            targets.append(ast.Starred(one, ast.Store()) if isinstance(each, ast.Starred) else one)
        made: list[ast.stmt] = [self._at(ast.Assign([ast.Tuple(targets, ast.Store())], whole), node)]
        for name, each in zip(names, target.elts, strict=True):
            made += self.store(each.value if isinstance(each, ast.Starred) else each, self.load(name), node)
        return made

    def stmt_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        _, change = BINARY[type(node.op)]
        target = node.target

        def changed(old: ast.expr, alone: bool) -> ast.expr:
            return self.rt("inplace", node, self.op(change), old, self.expr(node.value), alone)

        if isinstance(target, ast.Name):
            new = changed(self.load(target.id), target.id in self.alone)
            return [self.assign(target.id, self.sure(new, node), node)]
        where, at = self.temporary(), self.temporary()
        made = [self.assign(where, self.expr(target.value), node)]
        if isinstance(target, ast.Attribute):
            old = self.rt("attribute", node, self.load(where), target.attr)
            new = self.rt(
                "set_attribute", node, self.load(where), target.attr, changed(old, False), line=False
            )
            return [*made, self.do(new, node)]
        made.append(self.assign(at, self.index(target.slice), node))
        old = self.rt("item", node, self.load(where), self.load(at))
        new = self.rt("set_item", node, self.load(where), self.load(at), changed(old, False), line=False)
        return [*made, self.do(new, node)]

    def stmt_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                call = self.rt(
                    "delete_item", node, self.expr(target.value), self.index(target.slice), line=False
                )
                made.append(self.do(call, node))
            else:
                made += [
                    self.do(self.sure(ast.Constant(None), node), node),
                    self._at(ast.Delete([target]), node),
                ]
        return made

    def stmt_If(self, node: ast.If) -> list[ast.stmt]:
        return [self._at(ast.If(self.test(node.test), self.block(node.body), self.block(node.orelse)), node)]

    def stmt_While(self, node: ast.While) -> list[ast.stmt]:
        test = self.test(node.test)
        self.looped += 1
        body = self.block(node.body)
        self.looped -= 1
        return [self._at(ast.While(test, body, self.block(node.orelse)), node)]

    def stmt_For(self, node: ast.For) -> list[ast.stmt]:
        elements = self.looping(node.iter)
        begin: list[ast.stmt] = []
        target = node.target
        if not isinstance(target, ast.Name):
            name = self.temporary()
            begin = self.store(target, self.load(name), node)
            target = ast.Name(name, ast.Store())
        self.looped += 1
        body = [*begin, *self.block(node.body)]
        self.looped -= 1
        return [self._at(ast.For(target, elements, body, self.block(node.orelse)), node)]

    def stmt_Break(self, node: ast.Break) -> list[ast.stmt]:
        return [self.drained(node), node] if self.guarded and not self.looped else [node]

    def stmt_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [self.drained(node), node] if self.guarded and not self.looped else [node]

    def stmt_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        error = None if node.exc is None else self.rt("settled", node, self.expr(node.exc), line=False)
        cause = None if node.cause is None else self.rt("settled", node, self.expr(node.cause), line=False)
        return [self.drained(node), self._at(ast.Raise(error, cause), node)]

    def stmt_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        message = None if node.msg is None else self.rt("leave", node, self.expr(node.msg), line=False)
        return [self._at(ast.Assert(self.test(node.test), message), node)]

    def stmt_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [self.drained(node), node]

    def stmt_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        return [self.drained(node), node]

    def stmt_Try(self, node: ast.Try) -> list[ast.stmt]:
        """Everything before, inside and after each part is kept apart: errors belong where they come from."""
        looped, self.looped = self.looped, 0
        self.guarded += 1
        last = ast.Constant(bool(node.finalbody))
        body = self._guard(self.block(node.body), node, ast.Constant(True))
        handlers: list[ast.ExceptHandler] = []
        for each in node.handlers:
            inside = self._guard(self.block(each.body), each, last)
            handlers.append(self._at(ast.ExceptHandler(each.type, each.name, inside), each))
        orelse = self._guard(self.block(node.orelse), node, last) if node.orelse else []
        final = self._guard(self.block(node.finalbody), node, ast.Constant(False)) if node.finalbody else []
        self.guarded -= 1
        self.looped = looped
        return [self.drained(node), self._at(ast.Try(body, handlers, orelse, final), node)]

    def stmt_With(self, node: ast.With) -> list[ast.stmt]:
        """Entering and leaving are effects: what comes before is done, the block's first error is known."""
        looped, self.looped = self.looped, 0
        self.guarded += 1
        body = self._with(node.items, node)
        self.guarded -= 1
        self.looped = looped
        return body

    def _with(self, items: list[ast.withitem], node: ast.With) -> list[ast.stmt]:
        if not items:
            return self.block(node.body)
        item, name = items[0], self.temporary()
        manager = self.rt("leave", node, self.expr(item.context_expr), line=False)
        bound = [] if item.optional_vars is None else self.store(item.optional_vars, self.load(name), node)
        inside = self._guard([*bound, *self._with(items[1:], node)], node, ast.Constant(True))
        entered = ast.withitem(manager, ast.Name(name, ast.Store()))
        return [self._at(ast.With([entered], inside), node)]

    def _guard(self, body: list[ast.stmt], node: ast.AST, caught: ast.expr) -> list[ast.stmt]:
        """Statements whose first error, in the order of the program, is raised; at their end all is done.

        `caught` says whether somebody sees variables and containers after an error: then nothing is stored
        before all that comes before it is known to have none.
        """
        name = self.temporary()
        first = self.rt("first", node, self.load(name), line=False)
        handler = ast.ExceptHandler(
            self.load("BaseException"), name, [ast.If(first, [ast.Raise(None, None)], [])]
        )
        # A return, break or continue leaves the `try`; what reaches its end drained without an error.
        done = self.temporary()
        surface = ast.If(
            ast.UnaryOp(ast.Not(), self.load(done)), [self.do(self.rt("surface", node, line=False), node)], []
        )
        whole: list[ast.stmt] = [
            self.assign(done, ast.Constant(False), node),
            self.do(self.rt("begin", node, caught, line=False), node),
            self._at(
                ast.Try(
                    [*body, self.drained(node), self.assign(done, ast.Constant(True), node)],
                    [handler],
                    [],
                    [self.do(self.rt("end", node, line=False), node)],
                ),
                node,
            ),
            self._at(surface, node),
        ]
        return whole
