"""Runs the blocks of gallery.md and draws what each calls `picture`: `python docs/gallery_pictures.py`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).with_name("gallery.md")
FOLDER = PAGE.parent / "figures/gallery"


def main() -> None:
    """Draw every picture."""
    from matplotlib.figure import Figure

    names: dict[str, Any] = {"__name__": "gallery"}
    text = PAGE.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```\n(?:!\[\]\((.*?)\))?", text, re.MULTILINE | re.DOTALL):
        source, target = block.groups()
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + source, str(PAGE), "exec"), names)
        if target is None:
            continue
        values = np.asarray(names["picture"])
        figure: Any = Figure(figsize=(3.2, 2.2), layout="constrained")
        axes = figure.subplots()
        if values.ndim == 2 and min(values.shape) > 8:
            axes.imshow(values, cmap="viridis", aspect="auto")
            axes.set_axis_off()
        else:
            axes.plot(values, linewidth=1)
            axes.tick_params(labelsize=6)
        FOLDER.mkdir(parents=True, exist_ok=True)
        figure.savefig(PAGE.parent / target, dpi=110)


if __name__ == "__main__":
    main()
