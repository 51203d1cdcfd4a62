"""Expressions of a plain function as calls of an `Activation`, in the order of Python's evaluation."""

from __future__ import annotations

import ast
import itertools
import operator
from typing import Any

BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "iadd"), ast.Sub: ("sub", "isub"), ast.Mult: ("mul", "imul"),
    ast.Div: ("truediv", "itruediv"), ast.FloorDiv: ("floordiv", "ifloordiv"), ast.Mod: ("mod", "imod"),
    ast.Pow: ("pow", "ipow"), ast.MatMult: ("matmul", "imatmul"), ast.LShift: ("lshift", "ilshift"),
    ast.RShift: ("rshift", "irshift"), ast.BitAnd: ("and_", "iand"), ast.BitOr: ("or_", "ior"),
    ast.BitXor: ("xor", "ixor"),
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not_",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in",
}  # fmt: skip
_HARMLESS = frozenset(["print", "len", "str", "float", "int", "abs", "round", "repr", "range", "bool"])
_LOOPS = frozenset({"enumerate", "zip", "reversed", "range"})
RT, NOW, OPS, INLINED = "__linnet", "__linnet_now", "__linnet_ops", "__linnet_inlined"


class Operators:
    """The operators under the names that translated functions use."""

    in_ = staticmethod(lambda element, container: element in container)
    not_in = staticmethod(lambda element, container: element not in container)


for _name in (*itertools.chain(*BINARY.values()), *_UNARY.values(), *_COMPARE.values()):
    if not hasattr(Operators, _name):
        setattr(Operators, _name, staticmethod(getattr(operator, _name)))


class Expressions:
    """Translates expressions."""

    def __init__(self) -> None:
        self.numbers: itertools.count[int] = itertools.count()
        self.guarded = 0
        """How many `try` statements of the same function are around."""
        self.inside = False
        """Whether this is a function inside the parallel one."""
        self.kept: set[int] = set()
        """Lists and the like that are written down to be given a name."""

    # ------------------------------------------------------------------ building

    def rt(
        self, method: str, node: ast.AST, *args: ast.expr | str | int | bool, line: bool = True
    ) -> ast.expr:
        """A call of a method of the activation."""
        parts: list[ast.expr] = [ast.Constant(getattr(node, "lineno", 0))] if line else []
        parts += [each if isinstance(each, ast.AST) else ast.Constant(each) for each in args]
        call = ast.Call(ast.Attribute(ast.Name(RT, ast.Load()), method, ast.Load()), parts, [])
        return self._at(call, node)

    def _at(self, made: Any, node: ast.AST) -> Any:
        """What was made gets the place of a node, down to what has one."""
        if not hasattr(made, "lineno"):
            if "lineno" in made._attributes:
                ast.copy_location(made, node)
            for each in ast.iter_child_nodes(made):
                self._at(each, node)
        return made

    def op(self, name: str) -> ast.expr:
        return ast.Attribute(ast.Name(OPS, ast.Load()), name, ast.Load())

    def temporary(self) -> str:
        return f"__linnet_{next(self.numbers)}"

    def load(self, name: str) -> ast.expr:
        return ast.Name(name, ast.Load())

    def assign(self, name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
        return self._at(ast.Assign([ast.Name(name, ast.Store())], value), node)

    def sure(self, value: ast.expr, node: ast.AST) -> ast.expr:
        """A value that is about to be stored where an error may be caught: it must be known to have none."""
        return self.rt("sure", node, value, line=False) if self.guarded or self.inside else value

    def do(self, value: ast.expr, node: ast.AST) -> ast.stmt:
        return self._at(ast.Expr(value), node)

    def drained(self, node: ast.AST) -> ast.stmt:
        return self.do(self.rt("drain", node, line=False), node)

    # ------------------------------------------------------------------ expressions

    def expr(self, node: ast.expr) -> ast.expr:
        method = getattr(self, f"expr_{type(node).__name__}", None)
        if method is not None:
            made = self._at(method(node), node)
            return self.rt("made_here", node, made, line=False) if id(node) in self.kept else made
        assert isinstance(node, ast.Constant | ast.Name), type(node)
        return node

    def test(self, node: ast.expr) -> ast.expr:
        return self.rt("test", node, self.expr(node), line=False)

    def looping(self, node: ast.expr, stores: bool = True) -> ast.expr:
        """What a loop goes over; `stores`: its variable is one of the function."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOPS:
            return self._loop_call(node, stores)
        return self.rt("iterate", node, self.expr(node), stores, line=False)

    def _loop_call(self, node: ast.Call, stores: bool) -> ast.expr:
        args: list[ast.expr] = []
        for each in node.args:
            inner = (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Name)
                and each.func.id in ("zip", "enumerate")
            )
            args.append(self._loop_call(each, False) if inner else self._argument(each))  # type: ignore[arg-type]
        packed = ast.Tuple(args, ast.Load())
        return self.rt("loop", node, self.expr(node.func), packed, self._keywords(node), stores)

    def index(self, node: ast.expr) -> ast.expr:
        return self.expr(node)

    def expr_Slice(self, node: ast.Slice) -> ast.expr:
        parts = [
            ast.Constant(None) if x is None else self.expr(x) for x in (node.lower, node.upper, node.step)
        ]
        return self.rt("slice", node, *parts)

    def expr_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self.rt("item", node, self.expr(node.value), self.index(node.slice))

    def expr_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.rt("attribute", node, self.expr(node.value), node.attr)

    def expr_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self.rt(
            "binary", node, self.op(BINARY[type(node.op)][0]), self.expr(node.left), self.expr(node.right)
        )

    def expr_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return self.rt("unary", node, self.op(_UNARY[type(node.op)]), self.expr(node.operand))

    def expr_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [*(self.test(each) for each in node.values[:-1]), self.expr(node.values[-1])]
        return ast.BoolOp(node.op, values)

    def expr_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self.test(node.test), self.expr(node.body), self.expr(node.orelse))

    def expr_Compare(self, node: ast.Compare) -> ast.expr:
        return self._compared(self.expr(node.left), node.ops, node.comparators, node)

    def _compared(
        self, left: ast.expr, ops: list[ast.cmpop], rest: list[ast.expr], node: ast.AST
    ) -> ast.expr:
        """`a < b < c`: c is evaluated only if a < b."""
        kind = "identical" if isinstance(ops[0], ast.Is | ast.IsNot) else "compare"
        name = self.op(_COMPARE[type(ops[0])])
        if len(ops) == 1:
            return self.rt(kind, node, name, left, self.expr(rest[0]))
        one, other = self.temporary(), self.temporary()
        here_ = self.rt("test", node, self.rt(kind, node, name, self.load(one), self.load(other)), line=False)
        both = ast.BoolOp(ast.And(), [here_, self._compared(self.load(other), ops[1:], rest[1:], node)])
        arguments = ast.arguments([], [ast.arg(one), ast.arg(other)], None, [], [], None, [])
        return ast.Call(ast.Lambda(arguments, both), [left, self.expr(rest[0])], [])

    def expr_Tuple(self, node: ast.Tuple) -> ast.expr:
        return self.rt("tuple", node, ast.Tuple([self._argument(each) for each in node.elts], ast.Load()))

    def expr_List(self, node: ast.List) -> ast.expr:
        return ast.List([self._argument(each) for each in node.elts], ast.Load())

    def expr_Set(self, node: ast.Set) -> ast.expr:
        elements: list[ast.expr] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                whole = self.rt("settled", each, self.expr(each.value), line=False)
                elements.append(ast.Starred(self.rt("spread", each, whole, line=False), ast.Load()))
            else:
                elements.append(self.rt("key", each, self.expr(each), line=False))
        return ast.Set(elements)

    def expr_Dict(self, node: ast.Dict) -> ast.expr:
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                keys.append(None)
                values.append(self.rt("mapping", value, self.expr(value), line=False))
            else:
                keys.append(self.rt("key", key, self.expr(key), line=False))
                values.append(self.expr(value))
        return ast.Dict(keys, values)

    def _argument(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            return self._at(
                ast.Starred(self.rt("spread", node, self.expr(node.value), line=False), ast.Load()), node
            )
        return self.expr(node)

    def _keywords(self, node: ast.Call, named: ast.expr | None = None) -> ast.expr:
        """The keywords of a call; `named` collects them if `**` stands among them."""
        keys: list[ast.expr | None] = [None if x.arg is None else ast.Constant(x.arg) for x in node.keywords]
        values = [
            self.rt("mapping", x.value, self.expr(x.value), line=False)
            if x.arg is None
            else self.expr(x.value)
            for x in node.keywords
        ]
        if named is not None:  # Python refuses what is given twice: let it
            keywords = [ast.keyword(x.arg, value) for x, value in zip(node.keywords, values, strict=True)]
            return ast.Call(named, [], keywords)
        return ast.Dict(keys, values)

    def expr_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        alone = len(node.args) == 1 and isinstance(node.args[0], ast.Starred)
        starred = alone or any(each.arg is None for each in node.keywords)
        if isinstance(function, ast.Attribute):
            calls = any(
                isinstance(each, ast.Call)
                for part in (*node.args, *(one.value for one in node.keywords))
                for each in ast.walk(part)
            )
            name = function.attr
            what = self.rt("receiver", node, self.expr(function.value), name, calls, line=False)
        else:
            name, what = "", self.expr(function)
        if not starred:
            return self._called(node, what, name, self._arguments(node), self._keywords(node))
        place = self.temporary()  # errors of what stands behind stars name the function
        args, keywords = self._arguments(node), None
        if alone:
            one = node.args[0]
            assert isinstance(one, ast.Starred)
            whole = self.rt("spread_alone", one, self.load(place), name, self.expr(one.value), line=False)
            args = ast.Tuple([ast.Starred(whole, ast.Load())], ast.Load())
        if any(each.arg is None for each in node.keywords):
            keywords = self.rt("named", node, self.load(place), name, line=False)
        call = self._called(node, self.load(place), name, args, self._keywords(node, keywords))
        arguments = ast.arguments([], [ast.arg(place)], None, [], [], None, [])
        return ast.Call(ast.Lambda(arguments, call), [what], [])

    def _arguments(self, node: ast.Call) -> ast.expr:
        return ast.Tuple([self._argument(each) for each in node.args], ast.Load())

    def _called(
        self, node: ast.Call, what: ast.expr, name: str, args: ast.expr, keywords: ast.expr
    ) -> ast.expr:
        if name:
            return self.rt("method", node, what, name, args, keywords)
        return self.rt("call", node, what, args, keywords)

    def expr_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        parts: list[ast.expr] = []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                conversion = "" if each.conversion < 0 else chr(each.conversion)
                form = ast.Constant("") if each.format_spec is None else self.expr(each.format_spec)
                parts.append(self.rt("formatted", node, self.expr(each.value), conversion, form))
            else:
                parts.append(each)
        return self.rt("joined", node, ast.Tuple(parts, ast.Load()))

    def expr_Lambda(self, node: ast.Lambda) -> ast.expr:
        body = self.expr(node.body)
        inner = ast.Lambda(ast.arguments([], [ast.arg(RT)], None, [], [], None, []), body)
        evaluated = ast.Call(
            ast.Attribute(ast.Call(self.load(NOW), [], []), "evaluate", ast.Load()), [inner], []
        )
        if node.args.vararg is not None:
            name = node.args.vararg.arg
            whole = ast.Call(
                ast.Attribute(ast.Call(self.load(NOW), [], []), "tuple", ast.Load()),
                [ast.Constant(node.lineno), self.load(name)],
                [],
            )
            packed = ast.Lambda(ast.arguments([], [ast.arg(name)], None, [], [], None, []), body)
            inner.body = ast.Call(packed, [whole], [])
        arguments = without_annotations(node.args)
        arguments.defaults = [self.expr(each) for each in node.args.defaults]
        arguments.kw_defaults = [None if each is None else self.expr(each) for each in node.args.kw_defaults]
        return ast.Lambda(arguments, evaluated)

    # ------------------------------------------------------------------ comprehensions

    def _generators(self, node: Any) -> list[ast.comprehension]:
        made: list[ast.comprehension] = []
        for each in node.generators:
            elements = self.looping(each.iter, stores=False)
            target = each.target
            if not isinstance(target, ast.Name):
                flat = isinstance(target, ast.Tuple | ast.List) and all(
                    isinstance(x, ast.Name) for x in target.elts
                )
                count = len(target.elts) if flat else -1  # type: ignore[attr-defined]
                elements = self.rt("pairs", node, elements, ast.Constant(count), line=False)
            made.append(ast.comprehension(target, elements, [self.test(x) for x in each.ifs], 0))
        return made

    def expr_ListComp(self, node: ast.ListComp) -> ast.expr:
        return ast.ListComp(self.expr(node.elt), self._generators(node))

    def expr_SetComp(self, node: ast.SetComp) -> ast.expr:
        return ast.SetComp(self.rt("key", node, self.expr(node.elt), line=False), self._generators(node))

    def expr_DictComp(self, node: ast.DictComp) -> ast.expr:
        key = self.rt("key", node, self.expr(node.key), line=False)
        return ast.DictComp(key, self.expr(node.value), self._generators(node))


def without_annotations(arguments: ast.arguments) -> ast.arguments:
    def bare(each: ast.arg | None) -> Any:
        return None if each is None else ast.arg(each.arg)

    return ast.arguments(
        [bare(each) for each in arguments.posonlyargs],
        [bare(each) for each in arguments.args],
        bare(arguments.vararg),
        [bare(each) for each in arguments.kwonlyargs],
        list(arguments.kw_defaults),
        bare(arguments.kwarg),
        list(arguments.defaults),
    )
