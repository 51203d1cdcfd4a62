"""What a parallel function may not contain: found when decorating, and shown together."""

from __future__ import annotations

import ast
import builtins
from types import FunctionType

from linnet.errors import ParallelError
from linnet.futures.source import Source
from linnet.programs.diagnostics import Findings

_FOREIGN: dict[type[ast.AST], tuple[str, str]] = {
    ast.Yield: ("a generator gives its values while its caller runs", "return a list"),
    ast.YieldFrom: ("a generator gives its values while its caller runs", "return a list"),
    ast.GeneratorExp: (
        "a generator expression runs when somebody else asks for its values",
        "write a list comprehension: [...]",
    ),
    ast.Await: ("`await` leaves the function in the middle", "call plain functions"),
    ast.AsyncFor: ("`async for` leaves the function in the middle", "loop with `for`"),
    ast.AsyncWith: ("`async with` leaves the function in the middle", "call plain functions"),
    ast.AsyncFunctionDef: ("`async` functions cannot run as futures", "write `def`"),
    ast.Global: ("`global` changes what others see", "return the value"),
    ast.ClassDef: ("classes cannot be defined here", "define the class outside the function"),
    ast.Match: ("`match` is not part of the language", "write `if` and `elif`"),
    ast.NamedExpr: ("`:=` is not part of the language", "assign in a statement before"),
    ast.TryStar: ("`except*` is not part of the language", "write `except`"),
}
_LOOKING_IN = frozenset({"locals", "vars", "eval", "exec", "super", "breakpoint"})


def refuse(function: FunctionType, source: Source) -> None:
    """Raise if the function cannot be shown to keep its meaning."""
    findings = Findings(function.__name__, source.file, source.lines, what="parallel function")
    tree = source.tree
    if isinstance(tree, ast.AsyncFunctionDef):
        message, hint = _FOREIGN[ast.AsyncFunctionDef]
        findings.add(message, hint, source.at(tree))
        findings.raise_if_any(ParallelError)
    assert isinstance(tree, ast.FunctionDef)
    local = _local_names(tree)
    outside = _parameters(tree)
    for node in (each for part in tree.body for each in ast.walk(part)):
        found = _FOREIGN.get(type(node))
        if found is not None:
            findings.add(*found, source.at(node))
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            base = node.value
            if not isinstance(base, ast.Name) or base.id in outside or base.id not in local:
                findings.add(
                    f"`{ast.unparse(node)} = ...` changes an object that others hold",
                    "return the new value, or do it in a function that is called",
                    source.at(node),
                )
        elif isinstance(node, ast.comprehension) and node.is_async:
            findings.add(
                "`async for` leaves the function in the middle", "loop with `for`", source.at(node.iter)
            )
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            findings.add(
                "a function inside a parallel function cannot be decorated",
                "define it outside",
                source.at(node.decorator_list[0]),
            )
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _LOOKING_IN:
            if node.id not in local and function.__globals__.get(node.id, None) in (
                None,
                getattr(builtins, node.id),
            ):
                findings.add(
                    f"`{node.id}` looks at the variables of the function, which hold futures here",
                    "pass what is needed as arguments",
                    source.at(node),
                )
        elif isinstance(node, ast.ExceptHandler) and node.type is not None and not _is_name(node.type):
            findings.add(
                "what `except` names must be classes, by name",
                "give the class a name before the `try`",
                source.at(node.type),
            )
        elif isinstance(node, ast.Name) and node.id.startswith("__linnet"):
            findings.add("names that begin with `__linnet` are taken", "choose another name", source.at(node))
    findings.raise_if_any(ParallelError)


def _is_name(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(_is_name, node.elts))
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_name(node.value))


def _parameters(tree: ast.FunctionDef) -> set[str]:
    return {each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg)}


def _local_names(tree: ast.FunctionDef) -> set[str]:
    """Names that are bound somewhere in the function or in one inside it."""
    found = {
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    found |= {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    found |= {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each is not tree}
    return found
