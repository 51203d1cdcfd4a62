"""Programs are kept: by what they say, and by the expression they were made of.

An expression on new data finds its program by its structure, and is neither lowered nor planned again.
One whose slices are longer, or begin elsewhere, is lowered anew, but says the same: numbers that name no
tile are not in the program, they are given when it is bound. So its proofs and its compiled functions are
there already, and only another kind of expression, or one that lies in another number of tiles, makes
another program.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from linnet.arrays.expression.graph import Graph, graph
from linnet.arrays.expression.nodes import Node
from linnet.arrays.lowering.folds_by_node import Nodes, spread
from linnet.arrays.lowering.lower import Lowered, Lowering
from linnet.arrays.lowering.read_files_twice import repeated
from linnet.programs.grammar import Program
from linnet.programs.program import TileProgram
from linnet.programs.wire import to_bytes
from linnet.session.work import Setting

ALONE = Setting()
"""One node, without a limit of memory."""
_KEPT = 256
_programs: OrderedDict[tuple[Any, ...], Lowered] = OrderedDict()
"""By the structure of the expression and the setting."""
_trees: OrderedDict[bytes, TileProgram] = OrderedDict()
"""By what they say."""
_lock = threading.Lock()


def lowered(wanted: Sequence[Node], setting: Setting = ALONE) -> tuple[Lowered, Graph]:
    """The program for an expression in a setting, and the graph it was made from."""
    nodes = Nodes(setting.nodes, setting.grid)
    found = repeated(graph(spread(wanted, nodes)), setting.memory)
    key = (found.key, setting._replace(memory=None))
    with _lock:
        made = _programs.get(key)
        if made is not None:
            _programs.move_to_end(key)
            return made, found
    made = Lowering(found, nodes, setting).program(same_program)
    with _lock:
        _programs[key] = made
        while len(_programs) > _KEPT:
            _programs.popitem(last=False)
    return made, found


def is_kept(found: Graph, setting: Setting) -> bool:
    """Whether there is a program for an expression."""
    with _lock:
        return (found.key, setting._replace(memory=None)) in _programs


def same_program(tree: Program) -> TileProgram:
    """The program of a tree; one that was made before if it is the same to the last digit."""
    try:
        key = to_bytes(tree)
    except TypeError:  # an attribute that cannot travel: it runs here all the same
        return TileProgram(tree, verify=False)
    with _lock:
        made = _trees.get(key)
        if made is not None:
            _trees.move_to_end(key)
            return made
    made = TileProgram(tree, verify=False)
    with _lock:
        made = _trees.setdefault(key, made)
        while len(_trees) > _KEPT:
            _trees.popitem(last=False)
    return made
