"""Programs as bytes: versioned data with a checksum, and nothing that can run.

`framing` says what stands before the body. The body is msgpack: nested lists whose first entry names
the kind of node. Loading trusts nothing: sizes, depths, kinds, names and numbers are all checked, then the
program goes through the same structural checks as one read from source. Kernels travel by name.

Version 2 says the fill of an intermediate array. Version 1, where these had none, is still read.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any, cast

import msgpack

from linnet.errors import LinnetError, WireError
from linnet.programs.check import check
from linnet.programs.framing import framed, unframed, version_of
from linnet.programs.grammar import (
    ARITHMETIC,
    COMPARISONS,
    CONNECTIVES,
    FUNCTIONS,
    UNARY,
    Apply,
    At,
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

MAGIC = b"LNTP"
VERSION = 2
OLDEST = 1
MAX_BYTES = 16 << 20
MAX_DEPTH = 100
MAX_NODES = 200_000
MAX_NAME = 100

_BINARY = (*ARITHMETIC, *COMPARISONS, *CONNECTIVES)

_BAD = (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError, msgpack.UnpackException)
"""What reading bytes that are no program may raise on the way."""


def to_bytes(program: Program) -> bytes:
    """`program` as bytes."""
    body = msgpack.packb(_program(program), use_bin_type=True)
    assert isinstance(body, bytes)
    if len(body) > MAX_BYTES:
        raise WireError(f"program {program.name!r} takes {len(body)} bytes; at most {MAX_BYTES} can be sent")
    return framed(MAGIC, VERSION, body)


def from_bytes(data: bytes | bytearray | memoryview) -> Program:
    """The program in `data`; WireError when there is none."""
    body = unframed(data, MAGIC, VERSION, "a tile program", most=MAX_BYTES, oldest=OLDEST)
    try:
        data_ = msgpack.unpackb(body, raw=False, strict_map_key=True, use_list=True)
        program = _Loader(version_of(data)).program(data_)
        check(program, kernels=False)
    except WireError:
        raise
    except LinnetError as error:
        raise WireError(f"the tile program is not valid: {error}") from error
    except _BAD as error:
        raise WireError(f"the tile program cannot be read: {type(error).__name__}: {error}") from error
    return program


# ---- writing -----------------------------------------------------------------------


def _program(program: Program) -> list[Any]:
    return [
        program.name,
        [[p.name, *_role(p.role)] for p in program.parameters],
        [[name, list(values)] for name, values in program.tables],
        [_expr(e) for e in program.assumptions],
        [_stmt(s) for s in program.body],
        program.file.rsplit("/", 1)[-1][:MAX_NAME],
    ]


def _role(role: Role) -> list[Any]:
    match role:
        case In():
            return ["in"]
        case Out(fill):
            return ["out", fill]
        case Temp(of, fill):
            return ["temp", of, fill]
        case Size():
            return ["size"]
        case Table():
            return ["table"]


def _stmt(stmt: Stmt) -> list[Any]:
    match stmt:
        case For(variable, start, stop, step, body):
            return ["for", variable, _expr(start), _expr(stop), _expr(step), [_stmt(s) for s in body]]
        case If(condition, then, otherwise):
            return ["if", _expr(condition), [_stmt(s) for s in then], [_stmt(s) for s in otherwise]]
        case Let(name, value):
            return ["let", name, _expr(value)]
        case Run(kernel, outputs, args, keywords):
            return [
                "run",
                kernel,
                [_tiles(t) for t in outputs],
                [_tiles(a) if isinstance(a, Tiles) else _expr(a) for a in args],
                [[k, ["const", v.value] if isinstance(v, Attribute) else _expr(v)] for k, v in keywords],
                stmt.at.line if stmt.at else 0,
            ]


def _tiles(tiles: Tiles) -> list[Any]:
    return ["tile", tiles.array, *(_range(i) if isinstance(i, Range) else _expr(i) for i in tiles.index)]


def _range(piece: Range) -> list[Any]:
    return ["range", _expr(piece.start), _expr(piece.stop), _expr(piece.step)]


def _expr(expr: Expr) -> Any:
    match expr:
        case Int(value):
            return value if -(2**63) <= value < 2**63 else ["int", str(value)]
        case Float(value):
            return value
        case Name(id):
            return id
        case Lookup(table, index):
            return ["[]", table, _expr(index)]
        case Unary(op, operand):
            return [f"1{op}", _expr(operand)]
        case Binary(op, left, right):
            return [op, _expr(left), _expr(right)]
        case Apply(function, args):
            return [function, *map(_expr, args)]
        case Choice(condition, then, otherwise):
            return ["?", _expr(condition), _expr(then), _expr(otherwise)]


# ---- reading -----------------------------------------------------------------------


class _Loader:
    """Rebuilds nodes, counting them and their depth."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.nodes = 0

    def count(self, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise WireError(f"the tile program has more than {MAX_NODES} nodes")
        if depth > MAX_DEPTH:
            raise WireError(f"the tile program is nested more than {MAX_DEPTH} deep")

    def program(self, data: Any) -> Program:
        name, parameters, tables, assumptions, body, file = _list(data, 6)
        return Program(
            _name(name),
            tuple(Parameter(_name(p[0]), self.role(p[1:])) for p in map(_list, _list(parameters))),
            self.block(body, 0),
            tuple(
                (_name(n), tuple(_int(v) for v in _list(values))) for n, values in map(_pair, _list(tables))
            ),
            tuple(self.expr(e, 0) for e in _list(assumptions)),
            _text(file),
        )

    def role(self, data: list[Any]) -> Role:
        match data:
            case ["in"]:
                return In()
            case ["out", None | bool() | int() | float() as fill]:
                return Out(fill)
            case ["temp", None | str() as of] if self.version == 1:
                return Temp(of if of is None else _name(of))
            case ["temp", None | str() as of, None | bool() | int() | float() as fill] if self.version > 1:
                return Temp(of if of is None else _name(of), fill)
            case ["size"]:
                return Size()
            case ["table"]:
                return Table()
            case _:
                raise WireError(f"unknown role in a tile program: {_short(data)}")

    def block(self, data: Any, depth: int) -> tuple[Stmt, ...]:
        return tuple(self.stmt(s, depth + 1) for s in _list(data))

    def stmt(self, data: Any, depth: int) -> Stmt:
        self.count(depth)
        match _list(data):
            case ["for", variable, start, stop, step, body]:
                first, last, by = (self.expr(e, depth) for e in (start, stop, step))
                return For(_name(variable), first, last, by, self.block(body, depth))
            case ["if", condition, then, otherwise]:
                return If(self.expr(condition, depth), self.block(then, depth), self.block(otherwise, depth))
            case ["let", name, value]:
                return Let(_name(name), self.expr(value, depth))
            case ["run", kernel, outputs, args, keywords, line]:
                return Run(
                    _dotted(kernel),
                    tuple(self.tiles(t, depth) for t in _list(outputs)),
                    tuple(self.argument(a, depth) for a in _list(args)),
                    tuple((_name(k), self.keyword(v, depth)) for k, v in map(_pair, _list(keywords))),
                    at=At(_int(line)),
                )
            case _:
                raise WireError(f"unknown statement in a tile program: {_short(data)}")

    def argument(self, data: Any, depth: int) -> Tiles | Expr:
        match data:
            case ["tile", *_]:
                return self.tiles(data, depth)
            case _:
                return self.expr(data, depth)

    def keyword(self, data: Any, depth: int) -> Attribute | Expr:
        match data:
            case ["const", value]:
                return Attribute(self.constant(value, depth))
            case _:
                return self.expr(data, depth)

    def constant(self, data: Any, depth: int) -> Any:
        self.count(depth)
        if isinstance(data, list):
            return tuple(self.constant(d, depth + 1) for d in _list(data))
        if data is None or isinstance(data, bool | int | float | str):
            return data
        raise WireError(f"an attribute cannot be {_short(data)}")

    def tiles(self, data: Any, depth: int) -> Tiles:
        self.count(depth)
        match _list(data):
            case ["tile", array, *index]:
                return Tiles(_name(array), tuple(self.axis(i, depth + 1) for i in index))
            case _:
                raise WireError(f"expected tiles, found {_short(data)}")

    def axis(self, data: Any, depth: int) -> Expr | Range:
        match data:
            case ["range", start, stop, step]:
                return Range(self.expr(start, depth), self.expr(stop, depth), self.expr(step, depth))
            case _:
                return self.expr(data, depth)

    def expr(self, data: Any, depth: int) -> Expr:
        self.count(depth)
        inner: Callable[[Any], Expr] = lambda d: self.expr(d, depth + 1)  # noqa: E731
        match data:
            case bool():
                raise WireError("a Boolean stands where a number is expected")
            case int():
                return Int(data)
            case float():
                return Float(data)
            case str():
                return Name(_name(data))
            case ["int", str(digits)] if len(digits) <= 40:
                return Int(int(digits))
            case ["[]", table, index]:
                return Lookup(_name(table), inner(index))
            case ["1-" | "1not" as op, operand] if op[1:] in UNARY:
                return Unary(op[1:], inner(operand))
            case ["?", condition, then, otherwise]:
                return Choice(inner(condition), inner(then), inner(otherwise))
            case [str(op), left, right] if op in _BINARY:
                return Binary(op, inner(left), inner(right))
            case [str(function), *args] if function in FUNCTIONS:
                return Apply(function, tuple(map(inner, args)))
            case _:
                raise WireError(f"unknown expression in a tile program: {_short(data)}")


def _list(data: Any, length: int | None = None) -> list[Any]:
    if isinstance(data, list):
        entries = cast("list[Any]", data)
        if length is None or len(entries) == length:
            return entries
    raise WireError(f"expected a list{f' of {length}' if length else ''}, found {_short(data)}")


def _pair(data: Any) -> list[Any]:
    return _list(data, 2)


def _int(data: Any) -> int:
    if isinstance(data, bool) or not isinstance(data, int):
        raise WireError(f"expected an integer, found {_short(data)}")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str) or len(data) > MAX_NAME:
        raise WireError(f"expected a short text, found {_short(data)}")
    return data


def _name(data: Any) -> str:
    text = _text(data)
    if not text.isidentifier() or keyword.iskeyword(text):
        raise WireError(f"{_short(text)} is not a name")
    return text


def _dotted(data: Any) -> str:
    for part in _text(data).split("."):
        _name(part)
    return data


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:57] + "..."
