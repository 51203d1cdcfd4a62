"""The page itself: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def asset(name: str) -> str:
    """A file of the page."""
    return (files("linnet.reports") / "assets" / name).read_text(encoding="utf-8")


def html_page(title: str, data: dict[str, Any] | None, script: str = "", *, below: str = "") -> str:
    """A page with its data in it; without data, with a script that brings them. `below` is more HTML.

    >>> page = html_page("fit.py", {"title": "fit.py", "jobs": []})
    >>> page.startswith("<!doctype html>") and "</html>" in page
    True
    """
    # Inside a script `</` would end it, and `<!--` would begin a comment.
    call = "" if data is None else f"show({_embedded(data)});"
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<link rel='icon' href='data:,'>"
        f"<style>{asset('page.css')}</style></head><body>{asset('body.html').replace('<!--below-->', below)}"
        f"<script>{asset('page.js')}\n{call}{script}</script></body></html>"
    )


def _embedded(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
