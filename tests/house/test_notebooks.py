"""The tutorials are notebooks: each runs from beginning to end, in a kernel of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs/notebooks").glob("*.ipynb"))
START = 900
"""Seconds that a kernel may take to answer. nbclient gives up after 60 and ends it; on a busy machine importing
IPython alone can take longer, and then every kernel seemed to die."""
PAGE = NOTEBOOKS[0].parents[1] / "notebooks.md"


def test_every_notebook_is_on_the_page():
    named = {path.name for path in NOTEBOOKS if f"`{path.name}`" in PAGE.read_text(encoding="utf-8")}
    assert named == {path.name for path in NOTEBOOKS}
    assert len(named) >= 6


@pytest.mark.slow
@pytest.mark.needs("nbclient")
@pytest.mark.needs("ipykernel")
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_shows_progress_below_its_cell(tmp_path):
    """HTML that is updated in place: one display, changed, not many."""
    import nbformat
    from nbclient import NotebookClient

    source = (
        "import time, numpy as np, linnet as ln\n"
        "def slow(tile):\n    time.sleep(0.1)\n    return tile\n"
        "r = ln.map_blocks(slow, ln.ones((24, 2), chunks=(2, 2)), dtype=float).persist(progress=True)"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(
        book, timeout=120, startup_timeout=START, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [each for each in book.cells[0].outputs if "text/html" in each.get("data", {})]
    assert len(shown) == 1
    assert "finished in" in shown[0]["data"]["text/html"]
    assert "12/12 tasks" in shown[0]["data"]["text/html"]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.needs("nbclient")
@pytest.mark.needs("ipykernel")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(
        book, timeout=900, startup_timeout=START, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
