"""Whether the source of a function shows an effect.

What is not understood counts as an effect. The names that a function binds itself are told apart by what they
are bound to: *new* ones hold objects that the function made, which it may change.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any, Protocol

from linnet.futures.pure_names import CHANGING, CONSUMERS, METHODS, NUMPY

_EFFECTS: dict[type[ast.AST], str] = {
    ast.Global: "`global`", ast.Nonlocal: "`nonlocal`", ast.Yield: "`yield`", ast.YieldFrom: "`yield`",
    ast.Await: "`await`", ast.AsyncFor: "`async`", ast.AsyncWith: "`async`", ast.AsyncFunctionDef: "`async`",
    ast.With: "`with`", ast.ClassDef: "`class`", ast.Import: "`import`", ast.ImportFrom: "`import`",
    ast.Delete: "`del`", ast.Match: "`match`", ast.NamedExpr: "`:=`", ast.TryStar: "`except*`",
}  # fmt: skip
_CHANGES = frozenset().union(*CHANGING.values()) | {"sort", "remove", "popitem", "fill"}
_MAKERS = frozenset(
    [
        "list",
        "dict",
        "set",
        "sorted",
        "int",
        "float",
        "complex",
        "str",
        "bytes",
        "bool",
        "len",
        "abs",
        "round",
        "sum",
        "range",
    ]
)
_LOOPS: dict[str, Any] = {each.__name__: each for each in (enumerate, zip, reversed, range, map, filter)}
_ARRAYS = frozenset(
    [
        "zeros",
        "ones",
        "empty",
        "arange",
        "array",
        "full",
        "eye",
        "linspace",
        "zeros_like",
        "ones_like",
        "empty_like",
    ]
)


class Names(Protocol):
    """What names from outside mean."""

    def meaning(self, name: str) -> Any: ...
    def attribute(self, value: Any, name: str) -> Any: ...
    def is_missing(self, value: Any) -> bool: ...
    def may_call(self, value: Any) -> bool: ...
    def may_read(self, value: Any) -> bool: ...
    def is_inert(self, value: Any) -> bool: ...
    def may_write(self, value: Any, positional: int, keywords: list[str | None]) -> bool: ...


class _Effect(Exception):
    """What was found."""


def read(tree: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> str:
    """Why a function is not known to be pure; empty if it is."""
    try:
        if isinstance(tree, ast.AsyncFunctionDef):
            raise _Effect("it is `async`")
        _Reader(names, set(), {}).function(tree)
    except _Effect as effect:
        return str(effect)
    return ""


def _parameters(arguments: ast.arguments) -> set[str]:
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    listed += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return {each.arg for each in listed}


class _Reader:
    """Goes through one function."""

    def __init__(self, names: Names, around: set[str], functions: dict[str, bool]) -> None:
        self.names = names
        self.around = around
        """Names bound in functions around this one."""
        self.functions = dict(functions)
        """Names of functions that are defined inside, all of them without effect."""
        self.bound: set[str] = set()
        self.new: set[str] = set()
        self.deep: set[str] = set()

    def function(self, tree: ast.FunctionDef | ast.Lambda) -> None:
        parameters = _parameters(tree.args)
        body = tree.body if isinstance(tree.body, list) else [tree.body]
        self._bind(parameters, body)
        for each in body:
            self.visit(each)

    def _bind(self, parameters: set[str], body: list[Any]) -> None:
        """Which names are bound here, and which of them hold only what was made here."""
        values: dict[str, list[ast.AST | None]] = {name: [None] for name in parameters}
        for node in _own_nodes(body):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    _note(target, node.value, values)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                _note(node.target, node.value, values)
            elif isinstance(node, ast.AugAssign):
                _note(node.target, ast.BinOp(node.target, node.op, node.value), values)
            elif isinstance(node, (ast.For, ast.comprehension)):
                _note(node.target, None, values)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                values.setdefault(node.name, []).append(None)
            elif isinstance(node, ast.FunctionDef):
                values.setdefault(node.name, []).append(None)
                self.functions[node.name] = True
        self.bound = set(values)
        for name in [each for each in self.functions if len(values.get(each, [None])) > 1]:
            del self.functions[name]
        self.new = {name for name, made in values.items() if all(self._is_new(each) for each in made)}
        self.deep = {
            name for name in self.new if all(self._is_new(each, deep=True) for each in values[name])
        } - _stored(body)

    def _is_new(self, value: ast.AST | None, deep: bool = False) -> bool:
        """Whether an expression makes a new object, or one that cannot be changed."""
        if isinstance(value, ast.Constant | ast.JoinedStr | ast.Compare):
            return True
        if isinstance(value, ast.BinOp):
            if not deep:
                return True
            sides = (value.left, value.right)
            return all(
                isinstance(each, ast.Constant | ast.Name) or self._is_new(each, True) for each in sides
            )
        if isinstance(value, ast.UnaryOp):
            return True
        if isinstance(value, ast.List | ast.Set | ast.Tuple):
            return not deep or all(self._is_new(each, True) for each in value.elts)
        if isinstance(value, ast.Dict):
            return not deep or all(self._is_new(each, True) for each in value.values)
        if isinstance(value, ast.ListComp | ast.SetComp):
            return not deep or isinstance(value.elt, ast.Constant)
        if isinstance(value, ast.DictComp):
            return not deep or isinstance(value.value, ast.Constant)
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name) and value.func.id in _MAKERS:
                shadowed = value.func.id in self.bound or value.func.id in self.around
                shadowed = shadowed or self.names.meaning(value.func.id) is not getattr(
                    builtins, value.func.id
                )
                return not shadowed and (not deep or not value.args)
            copies = all(each.arg == "dtype" for each in value.keywords)
            if not isinstance(value.func, ast.Attribute) or value.func.attr not in _ARRAYS or not copies:
                return False
            return id(self._chain(value.func)) in NUMPY
        return False

    # ------------------------------------------------------------------ statements and expressions

    def visit(self, node: ast.AST) -> None:
        found = _EFFECTS.get(type(node))
        if found is not None:
            raise _Effect(f"it has {found} in line {getattr(node, 'lineno', 0)}")
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            self._nested(node)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Name):
            self._name(node)
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            self._store(node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.GeneratorExp):
            raise _Effect(f"a generator leaves it in line {node.lineno}")
        elif isinstance(node, ast.Attribute) and self._chain(node) is not None:
            value = self._chain(node)
            if not (self.names.may_read(value) or self.names.is_inert(value)):
                self._effect(node, "it reads what may have effects")
        elif isinstance(node, ast.Attribute):
            outside = isinstance(node.value, ast.Name) and node.value.id not in self.bound | self.around
            if node.attr.startswith("_") or (outside and self.names.is_inert(self._chain(node.value))):
                self._effect(node, "it reads what may have effects")
            self.visit(node.value)
        elif isinstance(node, ast.AnnAssign):
            self.visit(node.target)
            if node.value is not None:
                self.visit(node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            self._loop(node)
        else:
            self._children(node)

    def _effect(self, node: ast.AST, what: str) -> None:
        raise _Effect(f"{what} in line {getattr(node, 'lineno', 0)}: `{ast.unparse(node)[:60]}`")

    def _children(self, node: ast.AST) -> None:
        for each in ast.iter_child_nodes(node):
            self.visit(each)

    def _nested(self, node: ast.FunctionDef | ast.Lambda) -> None:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            self._effect(node.decorator_list[0], "it has a decorator")
        for each in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
            self.visit(each)
        _Reader(self.names, self.around | self.bound, self.functions).function(node)

    def _loop(self, node: ast.For | ast.comprehension) -> None:
        """What a loop goes over may be made by `enumerate` and the like, which nobody else sees."""
        self.visit(node.target)
        self._looped(node.iter)
        if isinstance(node, ast.For):
            for each in (*node.body, *node.orelse):
                self.visit(each)
        else:
            if node.is_async:
                raise _Effect("it has `async`")
            for each in node.ifs:
                self.visit(each)

    def _looped(self, node: ast.expr) -> None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOPS:
            if (
                node.func.id in self.bound | self.around
                or self.names.meaning(node.func.id) is not _LOOPS[node.func.id]
            ):
                self._effect(node, "it calls what is not known to be pure")
            for each in (*node.args, *(one.value for one in node.keywords)):
                if node.func.id in ("map", "filter") and each is node.args[0]:
                    self._callee(each)
                else:
                    self._looped(each)
        else:
            self.visit(node)

    def _name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) or node.id in self.bound or node.id in self.around:
            return
        value = self.names.meaning(node.id)
        if self.names.is_missing(value):
            self._effect(node, "it reads a name that means nothing yet")
        if not (self.names.may_read(value) or self.names.is_inert(value)):
            self._effect(node, "it reads what may have effects")

    def _store(self, node: ast.Subscript | ast.Attribute) -> None:
        if (
            isinstance(node, ast.Attribute)
            or not isinstance(node.value, ast.Name)
            or node.value.id not in self.new
        ):
            self._effect(node, "it changes what others may see")
        self.visit(node.slice)  # type: ignore[union-attr]

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            if target.id not in self.new:
                self._effect(node, "it changes what others may see")
        elif not isinstance(target, ast.Subscript) or not (
            isinstance(target.value, ast.Name) and target.value.id in self.deep
        ):
            self._effect(node, "it changes what others may see")
        else:
            self.visit(target.slice)
        self.visit(node.value)

    # ------------------------------------------------------------------ calls

    def _call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and self._chain(function) is None:
            self._method(node, function)
        else:
            value = self._callee(function)
            starred = any(isinstance(each, ast.Starred) for each in node.args)
            positional = 100 if starred else len(node.args)
            if self.names.may_write(value, positional, [each.arg for each in node.keywords]):
                self._effect(node, "it may change what others see")
        consumer = isinstance(function, ast.Name) and function.id in CONSUMERS
        consumer = consumer or (isinstance(function, ast.Attribute) and function.attr == "join")
        for each in node.args:
            if isinstance(each, ast.GeneratorExp) and consumer:
                self._children(each)
            elif consumer:
                self._looped(each)
            else:
                self.visit(each)
        for named in node.keywords:
            if named.arg == "key":
                self._callee(named.value)
            else:
                self.visit(named.value)

    def _callee(self, node: ast.expr) -> Any:
        """Something that is called; what it is, if it comes from outside."""
        if isinstance(node, ast.Lambda):
            self._nested(node)
            return None
        if isinstance(node, ast.Name):
            if self.functions.get(node.id):
                return None
            if node.id in self.bound or node.id in self.around:
                self._effect(node, "it calls what it was given")
            value = self.names.meaning(node.id)
        else:
            value = self._chain(node)
        if value is None or self.names.is_missing(value) or not self.names.may_call(value):
            self._effect(node, "it calls what is not known to be pure")
        return value

    def _method(self, node: ast.Call, function: ast.Attribute) -> None:
        base = function.value
        if function.attr in _CHANGES:
            if not (isinstance(base, ast.Name) and base.id in self.new):
                self._effect(node, "it changes what others may see")
            return
        if function.attr not in METHODS or any(each.arg in ("out", None) for each in node.keywords):
            self._effect(node, "it calls a method that is not known to be pure")
        self.visit(base)

    def _chain(self, node: ast.expr) -> Any:
        """What a name with dots means, if it begins at a module; None: it does not."""
        if isinstance(node, ast.Attribute):
            value = self._chain(node.value)
            found = None if value is None else self.names.attribute(value, node.attr)
            return None if found is None or self.names.is_missing(found) else found
        if isinstance(node, ast.Name) and node.id not in self.bound and node.id not in self.around:
            value = self.names.meaning(node.id)
            return None if self.names.is_missing(value) else value
        return None


def _own_nodes(body: list[Any]) -> list[ast.AST]:
    """The nodes of a function, without those of functions inside it."""
    todo, found = list(body), []
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))
    return found


def _note(target: ast.AST, value: ast.AST | None, values: dict[str, list[ast.AST | None]]) -> None:
    """A target is bound to a value; None: to something that others may hold."""
    if isinstance(target, ast.Name):
        values.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple | ast.List):
        sources: list[Any] = [None] * len(target.elts)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            sources = list(value.elts)
        for each, source in zip(target.elts, sources, strict=True):
            _note(
                each,
                None if isinstance(each, ast.Starred) or isinstance(source, ast.Starred) else source,
                values,
            )
    elif isinstance(target, ast.Starred):
        _note(target.value, None, values)


def _stored(body: list[Any]) -> set[str]:
    """Names of containers into which something is put that others may hold."""
    found: set[str] = set()
    for node in _own_nodes(body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    if not isinstance(node.value, ast.Constant | ast.BinOp | ast.Compare):
                        found.add(target.value.id)
                elif isinstance(target, ast.Tuple | ast.List):
                    found |= {
                        each.value.id
                        for each in target.elts
                        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name)
                    }
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = node.func.value
            found |= {base.id} if node.func.attr in _CHANGES and isinstance(base, ast.Name) else set()
    return found
