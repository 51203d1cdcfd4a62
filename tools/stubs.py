"""Write what type checkers see of names that are found when first used: `python tools/stubs.py [--check]`.

The root imports its rooms late, methods of arrays are defined by chapters, and functions of linear algebra
give lazy arrays for lazy ones and NumPy's for NumPy's. None of that can be read off the source. Three stubs
say it: `linnet/__init__.pyi`, `linnet/arrays/methods.pyi`, `linnet/linalg.pyi`.
"""

from __future__ import annotations

import difflib
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import linnet as ln
from linnet.arrays.array import Array
from linnet.arrays.elements.elementwise import ALIASES, UFUNCS
from linnet.arrays.elements.operator_methods import OPERATORS
from linnet.arrays.namespace import chapters_of

SOURCE = Path(__file__).parents[1] / "src/linnet"
HEAD = '"""Types of {what}: written by `tools/stubs.py`."""\n\n'


# ---- the root


def root() -> str:
    """Every public name, imported from where it is defined."""
    lines, imports = [], defaultdict[str, list[str]](list)
    chapters = chapters_of()
    for name in ln.__all__:
        value = getattr(ln, name)
        if name == "__version__" or name == "__array_api_version__":
            lines.append(f"{name}: str")
        elif inspect.ismodule(value):
            imports["linnet"].append(f"{name} as {name}")
        elif name in ("e", "inf", "nan", "pi"):
            lines.append(f"{name}: float")
        elif name == "newaxis":
            lines.append("newaxis: None")
        elif name == "ndarray":
            lines.append("ndarray = Array")
        elif inspect.isfunction(value) and ALIASES.get(name, name) in UFUNCS and name not in ("sign",):
            several = UFUNCS[ALIASES.get(name, name)].nout > 1
            lines.append(f"{name}: {'TwoResults' if several else 'ElementFunction'}")
        elif isinstance(value, type) and issubclass(value, np.generic):
            imports["numpy"].append(f"{value.__name__} as {name}")
        elif getattr(value, "__module__", "").split(".")[0] == "numpy":
            imports["numpy"].append(f"{name} as {name}")
        else:
            home = chapters.get(name) or value.__module__
            own = "map_calls" if name == "map" else name
            imports[home].append(f"{own} as {name}")
    imports["linnet.arrays.elements.elementwise"] += ["ElementFunction", "TwoResults"]
    text = [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(imports.items())]
    return HEAD.format(what="the public names") + "\n".join([*text, "", *lines]) + "\n"


# ---- methods of arrays


VIEWS = {"blocks": "BlockView", "partitions": "BlockView", "vindex": "PointView"}
"""Attributes of arrays that are no arrays."""


def methods() -> str:
    """Operators, and methods that chapters give to arrays."""
    lines = []
    for name, value in vars(Array).items():
        function = value.fget if isinstance(value, property) else value
        if not inspect.isfunction(function) and not isinstance(function, type):
            continue
        if function.__module__ == "linnet.arrays.array":
            continue
        if isinstance(value, property):
            kind = {"blocks": "BlockView", "partitions": "BlockView", "vindex": "PointView"}.get(
                name, "Array"
            )
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            if value.fset:
                lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        elif function.__name__ in UFUNCS:
            lines.append(f"    def {name}(self, *, out: Any = None, where: Any = True) -> Array: ...")
        elif name in OPERATORS:
            kind = "tuple[Array, Array]" if "divmod" in name else "Array"
            other = "" if len(inspect.signature(function).parameters) == 1 else ", other: Any"
            unusual = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            lines.append(f"    def {name}(self{other}) -> {kind}: ...{unusual}")
        else:
            lines.append(f"    def {name}({_parameters(function)}) -> {_kind(function)}: ...")
    imports = [
        "from collections.abc import Callable, Iterator, Sequence",
        "from typing import Any",
        "from linnet.arrays.array import Array",
        "from linnet.arrays.functions.blocks_and_points import BlockView, PointView",
    ]
    head = HEAD.format(what="the methods that chapters give to arrays")
    return head + "\n".join([*imports, "", "class Methods:", *lines]) + "\n"


def _parameters(function: Any) -> str:
    """The parameters of a function as those of a method; defaults that are no plain values as `...`."""
    parts = ["self"]
    parameters = list(inspect.signature(function).parameters.values())[1:]
    for place, each in enumerate(parameters):
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        mark = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(each.kind, "")
        text = f"{mark}{each.name}: {each.annotation if _is_plain(each.annotation) else 'Any'}"
        if each.default is not inspect.Parameter.empty:
            plain = each.default is None or isinstance(each.default, bool | int | float | str)
            text += f" = {each.default!r}" if plain else " = ..."
        parts.append(text)
        last = place + 1 == len(parameters) or parameters[place + 1].kind is not each.kind
        if each.kind is inspect.Parameter.POSITIONAL_ONLY and last:
            parts.append("/")
    return ", ".join(parts)


def _is_plain(annotation: Any) -> bool:
    """Whether the names in it mean the same in a stub."""
    known = {"Any", "None", "bool", "int", "float", "str", "tuple", "list", "dict", "Sequence", "Callable"}
    return isinstance(annotation, str) and set(re.findall(r"[A-Za-z_]\w*", annotation)) <= known


def _kind(function: Any) -> str:
    kind = inspect.signature(function).return_annotation
    return kind if isinstance(kind, str) else "Any"


# ---- linear algebra

EAGER = dict.fromkeys(("cond", "det", "matrix_norm", "matrix_rank", "norm", "trace", "vector_norm"), "Any")
"""What functions give for NumPy arrays where it is not an array; `Any`: a scalar, or an array for a stack."""
RESULTS = {
    "cho_factor": "CholeskyFactors",
    "eig": "EigResult",
    "eigh": "EighResult",
    "lstsq": "LstsqResult",
    "lu": "LUResult",
    "lu_factor": "LUFactors",
    "qr": "QRResult",
    "slogdet": "SlogdetResult",
    "svd": "SVDResult",
    "svd_compressed": "SVDResult",
    "tsqr": "QRResult",
}
"""Named tuples, of arrays of either kind."""
VARIANTS = {
    "lu": ("permute_l", "Literal[True]", "LUPermuted[{array}]"),
    "qr": ("mode", 'Literal["r"]', "{array}"),
    "svd": ("compute_uv", "Literal[False]", "{array}"),
    "tsqr": ("compute_svd", "Literal[True]", "SVDResult[{array}]"),
}
"""Options with which a function gives something else."""
LAZY_ONLY = {"tensordot", "vecdot", "svd_compressed", "tsqr", "tensorinv", "tensorsolve", "multi_dot"}
"""Functions that give lazy arrays whatever they are given, or take arrays in lists."""


def linalg() -> str:
    """Overloads: one lazy array among the operands makes the result lazy."""
    classes = sorted({*RESULTS.values(), "LUPermuted"})
    lines: list[str] = []
    exported = []
    for name in ln.linalg.__all__:
        value = getattr(ln.linalg, name)
        if inspect.isfunction(value):
            lines += _overloads(name, inspect.signature(value))
        elif name not in classes:
            exported.append(f"from {value.__module__} import {name} as {name}")
    homes = defaultdict[str, list[str]](list)
    for name in classes:
        homes[getattr(ln.linalg, name).__module__].append(f"{name} as {name}")
    imports = [
        "from typing import Any, Literal, overload",
        "from numpy.typing import ArrayLike, NDArray",
        "from linnet.arrays.array import Array",
        "from linnet.engines.engine import Engine",
        "from linnet.events import Sink",
        *(f"from {home} import {', '.join(names)}" for home, names in sorted(homes.items())),
        *exported,
    ]
    head = HEAD.format(what="linear algebra") + "# pyright: reportOverlappingOverload=false\n"
    return head + "\n".join([*imports, "", *lines]) + "\n"


def _overloads(name: str, signature: inspect.Signature) -> list[str]:
    operands = [
        p.name for p in signature.parameters.values() if p.name in ("a", "b", "x", "x1", "x2", "t", "data")
    ]
    if name in LAZY_ONLY or not operands:
        kind = f"{RESULTS[name]}[Array]" if name in RESULTS else "Array" if name in LAZY_ONLY else "Any"
        made = [_definition(name, signature, {}, kind, eager=False)]
        if name in VARIANTS:
            option, literal, other = VARIANTS[name]
            made = [
                _definition(name, signature, {option: literal}, other.format(array="Array"), False),
                *made,
            ]
            return [line for each in made for line in ("@overload", each)]
        return made
    required = [each for each in operands if signature.parameters[each].default is inspect.Parameter.empty]
    cases = [dict.fromkeys(required, "ArrayLike") | {lazy: "Array"} for lazy in required]
    made = []
    for types, array in [
        *((case, "Array") for case in cases),
        (dict.fromkeys(required, "ArrayLike"), "NDArray[Any]"),
    ]:
        eager = array != "Array"
        if name in VARIANTS:
            option, literal, other = VARIANTS[name]
            made.append(
                _definition(name, signature, types | {option: literal}, other.format(array=array), eager)
            )
        kind = f"{RESULTS[name]}[{array}]" if name in RESULTS else EAGER.get(name, array) if eager else array
        made.append(_definition(name, signature, types, kind, eager))
    return [line for each in made for line in ("@overload", each)]


def _definition(
    name: str, signature: inspect.Signature, types: dict[str, str], kind: str, eager: bool
) -> str:
    parts, previous = [], None
    literal = next((each for each, text in types.items() if text.startswith("Literal")), None)
    parameters = list(signature.parameters.values())
    for each in parameters:
        if previous is inspect.Parameter.POSITIONAL_ONLY and each.kind is not previous:
            parts.append("/")
        if each.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        previous = each.kind
        if each.name in ("engine", "events"):
            continue
        text = f"{each.name}: {types.get(each.name, each.annotation)}"
        if each.default is not inspect.Parameter.empty and each.name != literal:
            text += " = ..."
        elif each.name == literal and any(" = ..." in part for part in parts) and "*" not in parts:
            parts.append("*")  # an option without a default comes by name after others that have one
        parts.append(text)
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    if "tile" in signature.parameters and eager:
        parts += ["engine: Engine | None = ...", "events: Sink | None = ..."]
    return f"def {name}({', '.join(parts)}) -> {kind}: ..."


# ---- all of them


def formatted(text: str) -> str:
    """In the house style."""
    command = [sys.executable, "-m", "ruff"]
    options = {"input": text, "capture_output": True, "text": True, "check": True}
    sorted_ = subprocess.run(
        [*command, "check", "--fix-only", "--quiet", "--stdin-filename=x.pyi", "-"], **options
    )  # type: ignore[call-overload]
    options["input"] = sorted_.stdout
    return subprocess.run([*command, "format", "--stdin-filename=x.pyi", "-"], **options).stdout  # type: ignore[call-overload]


def stubs() -> dict[Path, str]:
    """The text of every stub, by its file."""
    import_module("linnet.linalg")
    return {
        SOURCE / "__init__.pyi": formatted(root()),
        SOURCE / "arrays/methods.pyi": formatted(methods()),
        SOURCE / "linalg.pyi": formatted(linalg()),
    }


def main(arguments: list[str]) -> int:
    differ = 0
    for path, text in stubs().items():
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if there == text:
            continue
        differ += 1
        if "--check" in arguments:
            print(
                "".join(
                    difflib.unified_diff(there.splitlines(True), text.splitlines(True), str(path), "made now")
                )
            )
        else:
            path.write_text(text, encoding="utf-8")
            print(path)
    return differ if "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
