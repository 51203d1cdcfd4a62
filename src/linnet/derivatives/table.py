"""The table of rules in `docs/derivatives.md`: written by `python -m linnet.derivatives.table`."""

from __future__ import annotations

from linnet.derivatives.names import fft, la, ln
from linnet.derivatives.rules import RULES, root, ufunc_named

_LABELS = {
    "picked": "x[...]",
    "replaced": "x[...] = v",
    "setitem": "x[...] = v",
    "in_place": "x += v",
    "method_of": "methods of ufuncs",
    "numpy_clip": "clip",
    "numpy_sort": "sort",
    "numpy_argsort": "argsort",
}
_INSIDE = {"spread", "put_into_zeros", "wait"}
"""Linear maps of our own, which users do not call."""

_HEAD = ["| function | derivative |", "|---|---|"]


def rows() -> dict[str, str]:
    """Of every function with linear maps or a composition, its rule in a line."""
    found: dict[str, str] = {}
    for rule in RULES.values():
        if rule.kind != "zero" and rule.name not in _INSIDE:
            text = rule.text if rule.kind == "maps" else f"as {rule.text}"
            found.setdefault(_LABELS.get(rule.name, rule.name), text)
    return dict(sorted(found.items(), key=lambda row: (row[0].partition(".")[2] != "", row[0])))


def zeros() -> list[str]:
    """The functions whose derivative is zero wherever it exists."""
    return sorted({_LABELS.get(rule.name, rule.name) for rule in RULES.values() if rule.kind == "zero"})


def without() -> list[str]:
    """Functions on arrays of the three namespaces that have no rule."""
    known = {rule.name for rule in RULES.values()}
    found: list[str] = []
    for place, names in (("", ln), ("linalg.", la), ("fft.", fft)):
        for name, function in vars(names).items():
            if callable(function) and not isinstance(function, type) and not name.startswith("_"):
                ufunc = hasattr(function, "nin") and ufunc_named(function.__name__) in RULES
                if not (ufunc or root(function) in RULES or place + name in known):
                    found.append(place + name)
    return sorted(found)


def table() -> str:
    """The table, as Markdown."""
    lines = [*_HEAD, *(f"| `{name}` | {text.replace('|', '∣')} |" for name, text in rows().items())]
    lines += ["", "Zero wherever it exists: " + ", ".join(f"`{name}`" for name in zeros()) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
