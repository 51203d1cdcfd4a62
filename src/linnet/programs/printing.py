"""A program as the text one would write for it."""

from __future__ import annotations

from collections.abc import Iterator

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
    Program,
    Range,
    Role,
    Run,
    Stmt,
    Table,
    Temp,
    Tiles,
    Unary,
)

_BINDING = {"or": 2, "and": 3, "+": 6, "-": 6, "*": 7, "//": 7, "%": 7, "/": 7, "**": 9}
_COMPARE, _CHOICE, _NOT, _NEGATE, _ATOM = 5, 1, 4, 8, 10


def show_expr(expr: Expr, outer: int = 0) -> str:
    """`expr` as source, in parentheses only where needed."""
    text, binding = _expr(expr)
    return f"({text})" if binding < outer else text


def _expr(expr: Expr) -> tuple[str, int]:
    match expr:
        case Int(value):
            return str(value), _ATOM if value >= 0 else _NEGATE
        case Float(value):
            if value - value != 0:  # infinities and nan have no literal
                return f'float("{value!r}")', _ATOM
            text = repr(value)
            return text, _NEGATE if text[0] == "-" else _ATOM
        case Name(id):
            return id, _ATOM
        case Lookup(table, index):
            return f"{table}[{show_expr(index)}]", _ATOM
        case Unary("-", operand):
            return f"-{show_expr(operand, _NEGATE)}", _NEGATE
        case Unary(_, operand):
            return f"not {show_expr(operand, _NOT)}", _NOT
        case Binary("**", left, right):
            return f"{show_expr(left, _ATOM)}**{show_expr(right, _ATOM)}", _BINDING["**"]
        case Binary(op, left, right):
            binding = _BINDING.get(op, _COMPARE)
            first = binding + 1 if op not in _BINDING else binding
            return f"{show_expr(left, first)} {op} {show_expr(right, binding + 1)}", binding
        case Apply("ceil_log2" | "floor_log2" as function, args):
            return f"{function.split('_')[0]}(log2({show_expr(args[0])}))", _ATOM
        case Apply(function, args):
            return f"{function}({', '.join(show_expr(a) for a in args)})", _ATOM
        case Choice(condition, then, otherwise):
            first, middle = show_expr(then, _CHOICE + 1), show_expr(condition, _CHOICE + 1)
            return f"{first} if {middle} else {show_expr(otherwise, _CHOICE)}", _CHOICE


def show_tiles(tiles: Tiles) -> str:
    """`A[i, 0:K]`."""
    return f"{tiles.array}[{', '.join(_axis(i) for i in tiles.index) or '()'}]"


def _axis(piece: Expr | Range) -> str:
    if not isinstance(piece, Range):
        return show_expr(piece)
    step = "" if piece.step == Int(1) else f":{show_expr(piece.step)}"
    return f"{show_expr(piece.start)}:{show_expr(piece.stop)}{step}"


def show_run(run: Run) -> str:
    """`O[i, i] = chol(S[i, i, i])`."""
    outputs = ", ".join(show_tiles(t) for t in run.outputs)
    args = [show_tiles(a) if isinstance(a, Tiles) else show_expr(a) for a in run.args]
    args += [
        f"{name}={value.value!r}" if isinstance(value, Attribute) else f"{name}={show_expr(value)}"
        for name, value in run.keywords
    ]
    return f"{outputs} = {run.kernel}({', '.join(args)})"


def show_loop(loop: For) -> str:
    """`for i in range(a, b, c):`."""
    args = [show_expr(loop.stop)]
    if loop.start != Int(0) or loop.step != Int(1):
        args.insert(0, show_expr(loop.start))
    if loop.step != Int(1):
        args.append(show_expr(loop.step))
    return f"for {loop.variable} in range({', '.join(args)}):"


def show_role(role: Role) -> str:
    """A role as it is annotated."""
    match role:
        case In():
            return "ln.In"
        case Out(None):
            return "ln.Out"
        case Out(fill):
            return f"ln.Out(fill={fill!r})"
        case Temp(None, None):
            return "ln.Temp"
        case Temp(of, None):
            return f'ln.Temp("{of}")'
        case Temp(None, fill):
            return f"ln.Temp(fill={fill!r})"
        case Temp(of, fill):
            return f'ln.Temp("{of}", fill={fill!r})'
        case Table():
            return "ln.Table"
        case _:
            return "int"


def show_program(program: Program) -> str:
    """The whole program as source; reading it back gives an equal program."""
    parameters = ", ".join(f"{p.name}: {show_role(p.role)}" for p in program.parameters)
    lines = ["@ln.tile_program", f"def {program.name}({parameters}):"]
    lines += [f"    {name} = {_table(values)}" for name, values in program.tables]
    lines += [f"    assert {show_expr(e)}" for e in program.assumptions]
    lines += _block(program.body, "    ")
    return "\n".join(lines)


def _table(values: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def _block(body: tuple[Stmt, ...], indent: str) -> list[str]:
    lines = [line for stmt in body for line in _stmt(stmt, indent)]
    return lines or [f"{indent}pass"]


def _stmt(stmt: Stmt, indent: str) -> Iterator[str]:
    match stmt:
        case Run():
            yield indent + show_run(stmt)
        case Let(name, value):
            yield f"{indent}{name} = {show_expr(value)}"
        case For():
            yield indent + show_loop(stmt)
            yield from _block(stmt.body, indent + "    ")
        case If():
            yield from _if(stmt, indent, "if")


def _if(stmt: If, indent: str, word: str) -> Iterator[str]:
    yield f"{indent}{word} {show_expr(stmt.condition)}:"
    yield from _block(stmt.then, indent + "    ")
    match stmt.otherwise:
        case ():
            return
        case (If() as nested,):
            yield from _if(nested, indent, "elif")
        case _:
            yield f"{indent}else:"
            yield from _block(stmt.otherwise, indent + "    ")
