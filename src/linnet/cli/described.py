"""Files that describe something in names and values: JSON, or YAML without its surprises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linnet.errors import FileMissingError, FormatError, missing_extra

MOST = 1_000_000
"""Values in a file, at most, each counted as often as aliases repeat it."""


def read_described(path: Path) -> dict[str, Any]:
    """The names and values of a file; a name given twice, or a value that holds itself, is refused."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileMissingError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} cannot be read: {error}") from error
    try:
        data = json.loads(text, object_pairs_hook=_once) if path.suffix == ".json" else _from_yaml(text)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{path} cannot be read: {error}") from error
    except RecursionError:
        raise FormatError(f"{path} cannot be read: it is nested too deeply") from None
    if not isinstance(data, dict):
        raise FormatError(f"{path} must have names with values, `command` among them")
    return data


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(each for each in names if names.count(each) > 1)!r} is given twice")
    return found


def _from_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise missing_extra("reading YAML (JSON needs nothing)", "PyYAML", "yaml") from error
    try:
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            _count(node, {})
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _count(node: Any, known: dict[int, int | None]) -> int:
    """Values in a node of YAML, with all that its aliases repeat."""
    if id(node) in known:
        found = known[id(node)]
        if found is None:
            raise ValueError(f"a value holds itself{node.start_mark}")
        return found
    known[id(node)] = None
    found = 1
    if node.id == "mapping":
        names: set[tuple[str, str]] = set()
        for name, value in node.value:
            found += _count(name, known) + _count(value, known)
            if name.id == "scalar":
                if (name.tag, name.value) in names:
                    raise ValueError(f"{name.value!r} is given twice{name.start_mark}")
                names.add((name.tag, name.value))
    elif node.id == "sequence":
        found += sum(_count(each, known) for each in node.value)
    if found > MOST:
        raise ValueError(f"aliases make more than {MOST:,} values of it; write them out, or fewer")
    known[id(node)] = found
    return found
