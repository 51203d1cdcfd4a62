"""How an array looks in a notebook: a few facts, and its grid of tiles drawn to scale."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_SIDE = 160
"""Pixels of the longest side."""
_MOST_LINES = 40
"""Cuts drawn along an axis; more would only be grey."""


def html(shape: tuple[int, ...], chunks: Sequence[Sequence[int]], dtype: Any, size: str) -> str:
    """A table of facts beside a drawing of the last two axes.

    >>> html((4, 6), ((2, 2), (3, 3)), "float64", "192 B").count("<line")
    6
    """
    tile = tuple(max(lengths, default=0) for lengths in chunks)
    grid = " × ".join(str(len(lengths)) for lengths in chunks) or "1"
    rows = [
        ("shape", _product(shape)),
        ("dtype", escape(str(dtype))),
        ("size", escape(size)),
        ("tile", _product(tile)),
        ("grid", grid),
    ]
    table = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{text}</td></tr>" for name, text in rows)
    return (
        "<div style='display:flex;gap:1.5em;align-items:center'>"
        f"<table>{table}</table>{_drawing(shape, chunks)}</div>"
    )


def _product(lengths: Sequence[int]) -> str:
    return " × ".join(f"{length:,}" for length in lengths) or "()"


def _drawing(shape: tuple[int, ...], chunks: Sequence[Sequence[int]]) -> str:
    if not shape or 0 in shape:
        return ""
    lengths = (1, *shape)[-2:]
    cuts = ((1,), *chunks)[-2:]
    longest = max(lengths)
    # A long thin array would be a line: no side is drawn shorter than a tenth of the other.
    height, width = (max(_SIDE * length / longest, _SIDE / 10) for length in lengths)
    lines = [f"<line x1='0' y1='{y:g}' x2='{width:g}' y2='{y:g}'/>" for y in _positions(cuts[0], height)]
    lines += [f"<line x1='{x:g}' y1='0' x2='{x:g}' y2='{height:g}'/>" for x in _positions(cuts[1], width)]
    return (
        f"<svg width='{width + 2:g}' height='{height + 2:g}' viewBox='-1 -1 {width + 2:g} {height + 2:g}' "
        f"role='img' aria-label='grid of tiles' stroke='currentColor' stroke-width='1'>"
        f"<rect width='{width:g}' height='{height:g}' fill='#e08e45' fill-opacity='0.45' stroke='none'/>"
        f"{''.join(lines)}</svg>"
    )


def _positions(lengths: Sequence[int], extent: float) -> list[float]:
    """Where the edges of tiles are drawn; some of them, if there are very many."""
    total = sum(lengths)
    edges = [0]
    for length in lengths:
        edges.append(edges[-1] + length)
    step = -(-len(lengths) // _MOST_LINES)
    return [edge * extent / total for edge in [*edges[:-1:step], edges[-1]]]
