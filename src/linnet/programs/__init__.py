"""Tile programs: loops over indices around kernel calls on tiles, each tile written once.

    parse, build, wire ─▶ grammar ─▶ check ─▶ statements ─▶ prove ─▶ solve, count, enumerate
                            │
                            └─▶ printing, wire

A program is defined once, for all sizes; `bind` gives it sizes; a bound program answers
who waits for whom from the program itself, without ever holding the graph.
"""

from linnet.programs.bound import BoundProgram
from linnet.programs.build import ProgramBuilder
from linnet.programs.diagnostics import Diagnostic
from linnet.programs.enumeration import TaskArrays
from linnet.programs.generated import Call
from linnet.programs.grammar import In, Out, Table, Task, Temp
from linnet.programs.program import TileProgram, tile_program

__all__ = [
    "BoundProgram",
    "Call",
    "Diagnostic",
    "In",
    "Out",
    "ProgramBuilder",
    "Table",
    "Task",
    "TaskArrays",
    "Temp",
    "TileProgram",
    "tile_program",
]
