"""An interpreter of the serial semantics of docs/futures.md: one statement after another over a store of variables.

It is the oracle of random programs, beside Python itself. Statements give a signal (None: go on) and never
raise to leave loops, so errors have the context they have in Python. What single operators and functions do is
Python's; order, stores, scopes and control flow are written here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

BINARY: dict[type, tuple[Any, Any]] = {
    ast.Add: (operator.add, operator.iadd),
    ast.Sub: (operator.sub, operator.isub),
    ast.Mult: (operator.mul, operator.imul),
    ast.Div: (operator.truediv, operator.itruediv),
    ast.FloorDiv: (operator.floordiv, operator.ifloordiv),
    ast.Mod: (operator.mod, operator.imod),
    ast.Pow: (operator.pow, operator.ipow),
    ast.MatMult: (operator.matmul, operator.imatmul),
    ast.BitAnd: (operator.and_, operator.iand),
    ast.BitOr: (operator.or_, operator.ior),
    ast.BitXor: (operator.xor, operator.ixor),
    ast.LShift: (operator.lshift, operator.ilshift),
    ast.RShift: (operator.rshift, operator.irshift),
}
UNARY: dict[type, Any] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
COMPARED: dict[type, Any] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
CONVERTED = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}
BREAK, CONTINUE = ("break",), ("continue",)
Signal = Any
"""None: go on; BREAK, CONTINUE, or ("return", value)."""


class Scope:
    """The variables of one run of a function; names from outside are looked up further out."""

    def __init__(self, local: set[str], outer: Scope | None, names: dict[str, Any]) -> None:
        self.store: dict[str, Any] = {}
        self.local, self.outer, self.names = local, outer, names

    def owner(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and name not in scope.local:
            scope = scope.outer
        return scope

    def read(self, name: str) -> Any:
        owner = self.owner(name)
        if owner is None:
            builtins = self.names["__builtins__"]
            builtins = builtins if isinstance(builtins, dict) else vars(builtins)
            for place in (self.names, builtins):
                if name in place:
                    return place[name]
            raise NameError(f"name {name!r} is not defined")
        if name in owner.store:
            return owner.store[name]
        if owner is self:
            raise UnboundLocalError(
                f"cannot access local variable {name!r} where it is not associated with a value"
            )
        raise NameError(
            f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
        )

    def write(self, name: str, value: Any) -> None:
        owner = self.owner(name)
        assert owner is not None
        owner.store[name] = value


def interpreted(text: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function of this name in a source, run by the interpreter."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return Interpreter(Scope(set(), None, names)).function(node)
    raise LookupError(name)


def assigned(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that are variables of a function."""
    arguments = node.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    found = {each.arg for each in every if each is not None}
    outer: set[str] = set()
    todo: list[ast.AST] = list(node.body) if isinstance(node, ast.FunctionDef) else []
    while todo:
        each = todo.pop()
        if isinstance(each, ast.FunctionDef):
            found.add(each.name)
            continue
        if isinstance(each, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp):
            continue
        if isinstance(each, ast.Nonlocal):
            outer.update(each.names)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        if isinstance(each, ast.ExceptHandler) and each.name:
            found.add(each.name)
        todo += ast.iter_child_nodes(each)
    return found - outer


class Interpreter:
    """Runs statements in a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    # ------------------------------------------------------------------ functions

    def function(self, node: ast.FunctionDef | ast.Lambda) -> Callable[..., Any]:
        """A function that runs its body in a scope of its own."""
        plain = ast.parse("def f(): return locals()").body[0]
        assert isinstance(plain, ast.FunctionDef)
        plain.name = node.name if isinstance(node, ast.FunctionDef) else "f"
        plain.args = ast.arguments(
            posonlyargs=node.args.posonlyargs,
            args=node.args.args,
            vararg=node.args.vararg,
            kwonlyargs=node.args.kwonlyargs,
            kw_defaults=[None if each is None else ast.Constant(0) for each in node.args.kw_defaults],
            kwarg=node.args.kwarg,
            defaults=[ast.Constant(0) for _ in node.args.defaults],
        )
        made: dict[str, Any] = {}
        exec(compile(ast.fix_missing_locations(ast.Module([plain], [])), "<arguments>", "exec"), made)
        bound = made[plain.name]
        bound.__defaults__ = tuple(map(self.value, node.args.defaults)) or None
        named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        bound.__kwdefaults__ = {each.arg: self.value(default) for each, default in named if default} or None
        local = assigned(node)

        def call(*args: Any, **keywords: Any) -> Any:
            scope = Scope(local, self.scope, self.scope.names)
            scope.store.update(bound(*args, **keywords))
            inside = Interpreter(scope)
            if isinstance(node, ast.Lambda):
                return inside.value(node.body)
            signal = inside.block(node.body)
            return None if signal is None else signal[1]

        return call

    # ------------------------------------------------------------------ statements

    def block(self, statements: list[ast.stmt]) -> Signal:
        for each in statements:
            signal = getattr(self, f"do_{type(each).__name__}")(each)
            if signal is not None:
                return signal
        return None

    def do_Pass(self, node: ast.Pass) -> Signal:
        return None

    do_Nonlocal = do_Pass

    def do_Expr(self, node: ast.Expr) -> Signal:
        self.value(node.value)

    def do_Assign(self, node: ast.Assign) -> Signal:
        value = self.value(node.value)
        for target in node.targets:
            self.store(target, value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> Signal:
        if node.value is not None:
            self.store(node.target, self.value(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> Signal:
        change = BINARY[type(node.op)][1]
        target = node.target
        if isinstance(target, ast.Name):
            before = self.scope.read(target.id)
            self.scope.write(target.id, change(before, self.value(node.value)))
        elif isinstance(target, ast.Subscript):
            thing, index = self.value(target.value), self.value(target.slice)
            before = thing[index]
            thing[index] = change(before, self.value(node.value))
        else:
            thing = self.value(target.value)
            before = getattr(thing, target.attr)
            setattr(thing, target.attr, change(before, self.value(node.value)))

    def do_Delete(self, node: ast.Delete) -> Signal:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                thing = self.value(target.value)
                del thing[self.value(target.slice)]
            else:
                assert isinstance(target, ast.Name)
                self.scope.read(target.id)
                owner = self.scope.owner(target.id)
                assert owner is not None
                del owner.store[target.id]

    def do_If(self, node: ast.If) -> Signal:
        return self.block(node.body if self.value(node.test) else node.orelse)

    def do_While(self, node: ast.While) -> Signal:
        while self.value(node.test):
            signal = self.block(node.body)
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal
        return self.block(node.orelse)

    def do_For(self, node: ast.For) -> Signal:
        for each in self.value(node.iter):
            self.store(node.target, each)
            signal = self.block(node.body)
            if signal is BREAK:
                return None
            if signal is not None and signal is not CONTINUE:
                return signal
        return self.block(node.orelse)

    def do_Break(self, node: ast.Break) -> Signal:
        return BREAK

    def do_Continue(self, node: ast.Continue) -> Signal:
        return CONTINUE

    def do_Return(self, node: ast.Return) -> Signal:
        return "return", None if node.value is None else self.value(node.value)

    def do_Assert(self, node: ast.Assert) -> Signal:
        if not self.value(node.test):
            raise AssertionError(*([] if node.msg is None else [self.value(node.msg)]))

    def do_Raise(self, node: ast.Raise) -> Signal:
        if node.exc is None:
            raise
        error = self.value(node.exc)
        if node.cause is None:
            raise error
        raise error from self.value(node.cause)

    def do_FunctionDef(self, node: ast.FunctionDef) -> Signal:
        self.scope.write(node.name, self.function(node))

    def do_Try(self, node: ast.Try) -> Signal:
        signal, caught = None, False
        try:
            try:
                signal = self.block(node.body)
            except BaseException as error:
                handler = self.handler(node.handlers, error)
                if handler is None:
                    raise
                caught = True
                signal = self.handled(handler, error)
            if not caught and signal is None:
                signal = self.block(node.orelse)
        finally:
            last = self.block(node.finalbody)
            if last is not None:
                return last  # noqa: B012 # as in Python, it counts and the error is gone
        return signal

    def handler(self, handlers: list[ast.ExceptHandler], error: BaseException) -> ast.ExceptHandler | None:
        for each in handlers:
            if each.type is None or isinstance(error, self.value(each.type)):
                return each
        return None

    def handled(self, handler: ast.ExceptHandler, error: BaseException) -> Signal:
        if handler.name:
            self.scope.write(handler.name, error)
        try:
            return self.block(handler.body)
        finally:
            if handler.name:
                owner = self.scope.owner(handler.name)
                assert owner is not None
                owner.store.pop(handler.name, None)

    def do_With(self, node: ast.With) -> Signal:
        return self.with_items(node.items, node.body)

    def with_items(self, items: list[ast.withitem], body: list[ast.stmt]) -> Signal:
        if not items:
            return self.block(body)
        with self.value(items[0].context_expr) as entered:
            if items[0].optional_vars is not None:
                self.store(items[0].optional_vars, entered)
            return self.with_items(items[1:], body)
        return None  # an error that was taken care of

    # ------------------------------------------------------------------ stores

    def store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.write(target.id, value)
        elif isinstance(target, ast.Subscript):
            thing = self.value(target.value)
            thing[self.value(target.slice)] = value
        elif isinstance(target, ast.Attribute):
            setattr(self.value(target.value), target.attr, value)
        else:
            assert isinstance(target, ast.Tuple | ast.List)
            starred = [place for place, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
            parts = unpacked(value, len(target.elts), starred[0] if starred else None)
            for each, part in zip(target.elts, parts, strict=True):
                self.store(each.value if isinstance(each, ast.Starred) else each, part)

    # ------------------------------------------------------------------ expressions

    def value(self, node: ast.expr) -> Any:
        return getattr(self, f"of_{type(node).__name__}")(node)

    def of_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def of_Name(self, node: ast.Name) -> Any:
        return self.scope.read(node.id)

    def of_BinOp(self, node: ast.BinOp) -> Any:
        left = self.value(node.left)
        return BINARY[type(node.op)][0](left, self.value(node.right))

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return UNARY[type(node.op)](self.value(node.operand))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        value = None
        for each in node.values:
            value = self.value(each)
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def of_Compare(self, node: ast.Compare) -> Any:
        left, found = self.value(node.left), True
        for place, (kind, each) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.value(each)
            found = COMPARED[type(kind)](left, right)
            if place < len(node.ops) - 1 and not found:
                return found
            left = right
        return found

    def of_IfExp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def of_Call(self, node: ast.Call) -> Any:
        f = self.value(node.func)
        args = self.elements(node.args)
        keywords: dict[str, Any] = {}
        for each in node.keywords:
            if each.arg is None:
                keywords.update(self.value(each.value))
            else:
                keywords[each.arg] = self.value(each.value)
        return f(*args, **keywords)

    def elements(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found.extend(self.value(each.value))
            else:
                found.append(self.value(each))
        return found

    def of_List(self, node: ast.List) -> Any:
        return self.elements(node.elts)

    def of_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.elements(node.elts))

    def of_Set(self, node: ast.Set) -> Any:
        return set(self.elements(node.elts))

    def of_Dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(value))
            else:
                name = self.value(key)
                found[name] = self.value(value)
        return found

    def of_Subscript(self, node: ast.Subscript) -> Any:
        thing = self.value(node.value)
        return thing[self.value(node.slice)]

    def of_Slice(self, node: ast.Slice) -> Any:
        return slice(
            *[None if each is None else self.value(each) for each in (node.lower, node.upper, node.step)]
        )

    def of_Attribute(self, node: ast.Attribute) -> Any:
        return getattr(self.value(node.value), node.attr)

    def of_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return "".join([self.value(each) for each in node.values])

    def of_FormattedValue(self, node: ast.FormattedValue) -> Any:
        value = CONVERTED[node.conversion](self.value(node.value))
        return format(value, "" if node.format_spec is None else self.value(node.format_spec))

    def of_Lambda(self, node: ast.Lambda) -> Any:
        return self.function(node)

    def of_ListComp(self, node: ast.ListComp) -> Any:
        return [inside.value(node.elt) for inside in self.turns(node.generators)]

    def of_SetComp(self, node: ast.SetComp) -> Any:
        return {inside.value(node.elt) for inside in self.turns(node.generators)}

    def of_DictComp(self, node: ast.DictComp) -> Any:
        found: dict[Any, Any] = {}
        for inside in self.turns(node.generators):
            key = inside.value(node.key)
            found[key] = inside.value(node.value)
        return found

    def turns(self, loops: list[ast.comprehension]) -> Iterator[Interpreter]:
        """The turns of a comprehension, in a scope of its own; the first iterable is evaluated outside."""
        first = iter(self.value(loops[0].iter))
        targets = [each for loop in loops for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
        inside = Interpreter(Scope({each.id for each in targets}, self.scope, self.scope.names))

        def go(place: int, values: Any) -> Iterator[Interpreter]:
            loop = loops[place]
            for each in values:
                inside.store(loop.target, each)
                if not all(inside.value(test) for test in loop.ifs):
                    continue
                if place == len(loops) - 1:
                    yield inside
                else:
                    yield from go(place + 1, inside.value(loops[place + 1].iter))

        return go(0, first)


def unpacked(value: Any, count: int, star: int | None) -> list[Any]:
    """A value in so many parts, one of them perhaps a list of all that is left; or Python's error."""
    if not hasattr(type(value), "__iter__") and not hasattr(type(value), "__getitem__"):
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object")
    parts = list(value)
    if star is None:
        if len(parts) < count:
            raise ValueError(f"not enough values to unpack (expected {count}, got {len(parts)})")
        if len(parts) > count:
            raise ValueError(f"too many values to unpack (expected {count})")
        return parts
    if len(parts) < count - 1:
        raise ValueError(f"not enough values to unpack (expected at least {count - 1}, got {len(parts)})")
    after = count - 1 - star
    return [*parts[:star], parts[star : len(parts) - after], *parts[len(parts) - after :]]
