"""A tile program between the others of an expression: its own names become names of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.algorithms.recipe import of_stack
from linnet.arrays.expression.nodes import ProgramCall, Result
from linnet.programs.compose import inlined
from linnet.programs.grammar import In, Out, Program, Size, Table, Temp
from linnet.programs.liveness import live

if TYPE_CHECKING:
    from linnet.arrays.lowering.lower import Lowering


def inline(lowering: Lowering, number: int, node: ProgramCall) -> None:
    """Put the program of a call into the one that is being built."""
    entries, recipe, builder = lowering.graph.entries, node.recipe, lowering.builder
    results: dict[str, int] = {}
    for reader in entries[number].readers:
        result = entries[reader].node
        if isinstance(result, Result) and lowering.needed[reader] is not None:
            results[result.name] = reader
    sizes, wanted = dict(recipe.sizes), frozenset(results)
    tree = recipe.choose(lowering.setting, wanted, sizes).tree
    if recipe.stack is not None:
        tree = of_stack(tree, recipe.stack)
    # Where nothing is trusted, nothing is in doubt.
    notes = recipe.notes if lowering.setting.trusting else recipe.notes - {recipe.doubt}
    tree = live(tree, wanted | (notes & tree.roles(Out).keys()))
    names = _names(lowering, number, node, tree, results)
    sizes = {name: value for name, value in sizes.items() if name in tree.roles(Size)}
    used = tree.roles(Table)
    given = [*tree.tables, *((name, values) for name, values in recipe.tables if name in used)]
    tables = {name: f"{name}_{number}" for name, _ in given}
    for name, values in given:
        builder.constant_table(tables[name], values)
    builder.extend(inlined(tree, names, sizes, tables, f"c{number}_"))


def _names(
    lowering: Lowering, number: int, node: ProgramCall, tree: Program, results: dict[str, int]
) -> dict[str, str]:
    """What the arrays of a program are called in the whole; those that are new there are declared."""
    recipe, builder = node.recipe, lowering.builder
    operands = dict(zip(recipe.inputs, lowering.graph.entries[number].operands, strict=True))
    names: dict[str, str] = {}
    # Those whose version 0 is another array come after that one.
    for parameter in sorted(
        tree.parameters, key=lambda p: isinstance(p.role, Temp) and p.role.of is not None
    ):
        name, role = parameter.name, parameter.role
        own = f"{name}_{number}"
        if isinstance(role, In):
            names[name] = lowering.named(operands[name])
        elif name in results:
            names[name] = lowering.array(results[name], role.fill if isinstance(role, Out) else None).name
        elif name == recipe.doubt:
            lowering.doubts.append(builder.temp(own))
            names[name] = own
        elif isinstance(role, Out):
            names[name] = builder.output(own, role.fill).name
            if name == recipe.condition:
                lowering.conditions.append(own)
        elif isinstance(role, Temp):
            base = None if role.of is None else names[role.of]
            names[name] = builder.temp(own, of=base, fill=role.fill).name
    return names
