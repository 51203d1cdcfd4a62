"""What type checkers see of the package: every public name, with types that say something.

Those that run pyright are marked long: it takes both cores, and others would wait. `make types` runs them.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_overloads

import pytest

from linnet.arrays.namespace import names

LEAST = 0.97
"""Part of all names whose types are known; it may rise."""

UNTYPED = {
    "apply_gufunc": "one array, or several as the signature says",
    "atleast_1d": "one array, or a tuple for several",
    "atleast_2d": "one array, or a tuple for several",
    "atleast_3d": "one array, or a tuple for several",
    "compute": "a NumPy array or scalar, or what the arrays were given in",
    "from_npz": "an array, or all of a file in a dict",
    "fromfunction": "what the function gives",
    "gradient": "an array, or a list for several axes",
    "iinfo": "NumPy's own object",
    "indices": "an array, or a tuple with sparse=True",
    "intersect1d": "an array, or a tuple with return_indices=True",
    "frompyfunc": "an object that is called",
    "load": "an array, or all of a file in a dict",
    "persist": "what was given",
    "polyfit": "an array, or a tuple with full=True",
    "read_csv": "an array, or a dict of columns",
    "read_parquet": "an array, or a dict of columns",
}
"""Public functions that return `Any`, each with its reason."""

REVEALED = """
x = ln.asarray(np.ones((4, 4)), chunks=2) -> Array
ln.sum(x) -> Array
x.sum(axis=0) -> Array
x + 1 -> Array
1 + x -> Array
-x -> Array
x < 1 -> Array
x @ x -> Array
x[0] -> Array
x.T -> Array
x.real -> Array
x.shape -> tuple[int, ...]
x.chunks -> tuple[tuple[int, ...], ...]
x.reshape(2, 8) -> Array
x.astype(int) -> Array
x.mean(0).std() -> Array
x.argsort() -> Array
x.tobytes() -> bytes
divmod(x, 2) -> tuple[Array, Array]
ln.sin(x) -> Array
ln.add(x, 1) -> Array
ln.add.outer(x, x) -> Array
ln.modf(x) -> tuple[Array, Array]
ln.where(x > 0, x, 0) -> Array
ln.where(x > 0) -> tuple[Array, ...]
ln.linspace(0, 1) -> Array
ln.unique(x) -> Array
ln.nonzero(x) -> tuple[Array, ...]
ln.split(x, 2) -> list[Array]
ln.histogram(x) -> tuple[Array, Array]
ln.einsum("ij->ji", x) -> Array
ln.concatenate([x, x]) -> Array
ln.from_zarr("a.zarr") -> Array
ln.pi -> float
ln.linalg.cholesky(x) -> Array
ln.linalg.cholesky(np.eye(3)) -> ndarray[tuple[Any, ...], dtype[Any]]
ln.linalg.qr(x) -> QRResult[Array]
ln.linalg.qr(x).Q -> Array
ln.linalg.qr(x, mode="r") -> Array
ln.linalg.solve(np.eye(3), x) -> Array
ln.linalg.svd(np.eye(3)).S -> ndarray[tuple[Any, ...], dtype[Any]]
ln.fft.fft(x) -> Array
ln.stats.skew(x) -> Array
ln.random.default_rng(0).normal(size=3) -> Array
ln.random.default_rng(0).poisson(3.0, size=3) -> Array
ln.plan(x) -> Plan
ln.submit(x) -> Job
"""
"""Lines of users, and the types that pyright shows for them."""


def pyright(*arguments: str, where: Path) -> str:
    """What pyright says: with this Python first on the path, since it looks for packages there."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, "-m", "pyright", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=where, env=environment).stdout


@pytest.mark.slow
def test_the_stubs_are_those_of_the_functions(root: Path):
    made = subprocess.run(
        [sys.executable, root / "tools/stubs.py", "--check"], capture_output=True, text=True, cwd=root
    )
    assert made.returncode == 0, f"run `python tools/stubs.py`:\n{made.stdout}{made.stderr}"


@pytest.mark.long
def test_users_see_the_types_of_what_they_write(tmp_path: Path):
    lines = [line.rsplit(" -> ", 1) for line in REVEALED.strip().splitlines()]
    code = ["import numpy as np", "import linnet as ln"]
    for line, _ in lines:
        name, is_assigned, _ = line.partition(" = ")
        simple = bool(is_assigned) and name.isidentifier()
        code += [line, f"reveal_type({name})"] if simple else [f"reveal_type({line})"]
    code.append("ln.no_such_function")
    (tmp_path / "user.py").write_text("\n".join(code))
    said = json.loads(pyright("--outputjson", "user.py", where=tmp_path))["generalDiagnostics"]
    shown = [re.fullmatch(r'Type of ".*" is "(.*)"', each["message"], re.DOTALL) for each in said]
    assert [match[1] for match in shown if match] == [expected for _, expected in lines]
    (error,) = [each["message"] for each in said if each["severity"] == "error"]
    assert error == '"no_such_function" is not a known attribute of module "linnet"'


@pytest.mark.long
def test_types_of_nearly_all_names_are_known(tmp_path: Path):
    said = json.loads(pyright("--verifytypes", "linnet", "--ignoreexternal", "--outputjson", where=tmp_path))
    known = said["typeCompleteness"]["completenessScore"]
    unknown = [each["name"] for each in said["typeCompleteness"]["symbols"] if not each["isTypeKnown"]]
    assert known >= LEAST, f"{known:.3f}; not known: {unknown[:40]}"


def test_public_functions_say_what_they_return():
    functions = {name: inspect.unwrap(value) for name, value in names().items() if inspect.isfunction(value)}
    untyped = {
        name
        for name, function in functions.items()
        if inspect.signature(function).return_annotation == "Any" and not get_overloads(function)
    }
    assert untyped == set(UNTYPED)
