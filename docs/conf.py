"""Sphinx settings. `make docs` builds with warnings as errors."""

from __future__ import annotations

import importlib.metadata
import re
from typing import Any

from sphinx.ext.napoleon import Config, NumpyDocstring

project = "Linnet"
author = "The Linnet developers"
copyright = "The Linnet developers, Apache-2.0"
release = importlib.metadata.version("linnet-array")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"

# `name` in a docstring is code, as in Markdown.
default_role = "code"
# Events have a field called `bytes`; annotations mean the built-in.
suppress_warnings = ["ref.python"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"Linnet {release}"
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}


def setup(app: Any) -> None:
    """Sphinx calls this first."""
    app.connect("autodoc-process-docstring", _as_prose)
    app.connect("autodoc-process-docstring", _with_sections, priority=600)


def _as_prose(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """In docstrings *, | and _ mean themselves, except in examples and between backticks."""
    example = False
    for place, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = line.split("`")
            parts[::2] = [re.sub(r"([*|]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
            lines[place] = "`".join(parts)


def _with_sections(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sections of docstrings (Parameters, Returns, Examples) are written as NumPy writes them.

    Fields have none, and what stands before a colon there would be taken for a type.
    """
    if what in {"function", "method", "class"}:
        style = Config(napoleon_use_rtype=False)
        lines[:] = NumpyDocstring(list(lines), style, app, what, name, obj, options).lines()
