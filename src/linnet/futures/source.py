"""The source of a function as a syntax tree, for certain: it is compiled again and compared.

A file may have been edited since it was imported, and a wrapped function leads `inspect` to the text of
another one. Neither must decide what runs.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import linecache
import textwrap
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from linnet.programs.grammar import At


class SourceError(Exception):
    """Why the source of a function cannot be had."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one function."""

    tree: ast.FunctionDef | ast.AsyncFunctionDef
    """Its definition, with the line numbers of its file."""
    file: str
    lines: tuple[str, ...]
    """The lines of the file."""
    indent: int
    """Columns that were taken off the left."""

    def at(self, node: ast.AST) -> At:
        """Where a node stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", column + 1)
        if getattr(node, "end_lineno", line) != line:
            end = 10**6
        return At(line, column + self.indent, end + self.indent)


def source_of(function: FunctionType) -> Source:
    """The definition of a function."""
    code = function.__code__
    if code.co_name == "<lambda>":
        raise SourceError("it is a lambda; write it with `def`")
    file, first = code.co_filename, code.co_firstlineno
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    if not 0 < first <= len(lines):
        raise SourceError(f"its source cannot be read (line {first} of {file})")
    try:
        text = "".join(inspect.getblock(lines[first - 1 :]))
    except (IndentationError, SyntaxError) as error:
        raise SourceError(f"its source cannot be read ({error})") from error
    indent = len(text) - len(text.lstrip(" \t"))
    try:
        module = ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"its source cannot be read ({error})") from error
    tree = module.body[0] if module.body else None
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef) or tree.name != code.co_name:
        raise SourceError("its source is not that of one function")
    ast.increment_lineno(tree, first - 1)
    if not _same(_compiled(tree, code), code):
        raise SourceError("its source has changed since it was defined")
    return Source(tree, file, tuple(lines), indent)


def _compiled(tree: ast.FunctionDef | ast.AsyncFunctionDef, code: CodeType) -> CodeType | None:
    """The code of a definition, compiled where the names that it has from around it are variables."""
    here = "".join(f"    {name} = None\n" for name in code.co_freevars) or "    pass\n"
    module = ast.parse(f"def around():\n{here}")
    bare = copy.copy(tree)
    bare.decorator_list, bare.name = [], "again"  # under its own name it would be a variable here
    around = module.body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body.append(bare)
    flags = code.co_flags & 0x1000000  # from __future__ import annotations
    made = compile(module, "<again>", "exec", flags=flags, dont_inherit=True)
    return _inside(_inside(made, "around"), "again")


def _inside(code: CodeType | None, name: str) -> CodeType | None:
    constants: tuple[Any, ...] = () if code is None else code.co_consts
    found = [each for each in constants if isinstance(each, CodeType) and each.co_name == name]
    return found[0] if found else None


_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "CALL_METHOD": "CALL"}
"""How a module's function is called depends on whether the file imports the module at its top."""


def _same(one: CodeType | None, other: CodeType) -> bool:
    """Whether two codes do the same; lines, and where jumps lead in bytes, do not count."""
    return one is not None and _steps(one) == _steps(other)


def _steps(code: CodeType) -> list[Any]:
    found: list[Any] = [code.co_argcount, code.co_kwonlyargcount, code.co_varnames, code.co_freevars]
    for each in dis.get_instructions(code):
        if each.opname in _SKIPPED:
            continue
        value: Any = each.argval
        if isinstance(value, CodeType):
            value = _steps(value)
        elif each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            value = None
        elif isinstance(value, str) and "<locals>" in value:
            value = None  # the qualified name of a class inside
        else:
            value = repr(value)
        found.append((_ALIKE.get(each.opname, each.opname), value))
    return found
