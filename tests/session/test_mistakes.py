"""The thirty likeliest mistakes, and the message that each gets: what was given, what was expected, what to do."""

from __future__ import annotations

import builtins
import re
import time

import numpy as np
import pytest

import linnet as ln

SQUARE = np.arange(16.0).reshape(4, 4)


def small():
    return ln.asarray(SQUARE, chunks=2)


def two_with_bad_function(x):
    return np.ones((3, 3)) @ x


def csv(folder):
    (folder / "a.csv").write_text("a,b\n1,2\n")
    return folder / "a.csv"


def written_twice(folder):
    ln.to_zarr(small(), folder / "z.zarr")
    ln.to_zarr(small(), folder / "z.zarr")


def closed():
    with ln.init(workers=1) as session:
        engine = session.engine
    with ln.init(engine):
        (small() @ small()).persist()


def missing_module(name):
    """As if a package were not installed."""
    real = builtins.__import__

    def without(module, *args, **options):
        if module == name or module.startswith(name + "."):
            raise ImportError(f"No module named {module!r}")
        return real(module, *args, **options)

    return without


MISTAKES = [
    # memory
    (lambda _: ln.zeros((10**7, 10**7)).compute(), MemoryError,
     r"a result of 800.0 TB \(shape \(10000000, 10000000\), float64\) does not fit .*ln.to_zarr.*memory=.*persist"),
    (lambda _: (ln.random.default_rng(0).random((10**7, 10**7)) + 1).persist(), MemoryError, r"800.0 TB .*ln.to_zarr"),
    (lambda _: ln.init(memory="2 gigs"), ValueError, r"memory='2 gigs': give bytes as a number, or as text such as \"2 GB\""),
    # init
    (lambda _: ln.init(worker=2), ValueError, r"no option 'worker'; did you mean 'workers'\?"),
    (lambda _: ln.init(progres=True), ValueError, r"no option 'progres'; did you mean 'progress'\?"),
    (lambda _: ln.init(checkpoint="x"), ValueError, r"engine 'threads' has no option 'checkpoint'; engine 'mpi' has it"),
    (lambda _: ln.init("thread"), ValueError, r"no engine named 'thread'; did you mean 'threads'\?"),
    (lambda _: ln.init(workers=0), ValueError, "workers=0: give at least 1"),
    (lambda _: ln.init(workers="two"), ValueError, "workers='two': give at least 1, a whole number"),
    (lambda _: ln.init(progress="yes"), ValueError, r"progress='yes': give True"),
    (lambda _: closed(), RuntimeError, "was closed"),
    # names
    (lambda _: ln.choleski, AttributeError, r"no attribute 'choleski'; did you mean ln.linalg.cholesky\?"),
    (lambda _: ln.concatinate, AttributeError, r"did you mean ln.concatenate\?"),
    # files
    (lambda path: ln.from_zarr(csv(path)), OSError, "a.csv is a file, and a Zarr array is a folder; files are read by ln.read_csv"),
    (lambda path: ln.from_zarr(path / "no.zarr"), FileNotFoundError, "there is no such file or folder; there is"),
    (lambda path: ln.read_csv(path / "no.csv"), FileNotFoundError, "no.csv: there is no such file or folder"),
    (lambda path: ln.from_npy(csv(path)), OSError, "a.csv is no .npy file"),
    (written_twice, OSError, "exists; give overwrite=True to replace it"),
    (lambda path: ln.report(path / "a.docx"), ValueError, "a report is written as .html, .json, .svg, .png or .pdf"),
    # shapes, dtypes
    (lambda _: small() @ ln.ones((3, 3)), ValueError, r"matmul: \(4, 4\) and \(3, 3\) do not fit: 4 columns against 3 rows"),
    (lambda _: ln.ones((4, 4), chunks=(3, 3, 3)), ValueError, r"chunks=\(3, 3, 3\) has 3 entries for an array of shape \(4, 4\)"),
    (lambda _: ln.ones((4, 4), chunks="big"), ValueError, "chunks='big': give bytes as a number, or as text"),
    (lambda _: small().reshape(5, 5), ValueError, r"cannot reshape array of size 16 \(shape \(4, 4\)\) into shape \(5, 5\)"),
    (lambda _: bool(small() > 1), ValueError, r"is ambiguous; use any\(\) or all\(\)"),
    (lambda _: ln.asarray(np.array([object()])), TypeError, "arrays of objects .* are not supported; use booleans"),
    (lambda _: ln.linalg.cholesky(ln.ones((3, 4))), np.linalg.LinAlgError, "Cholesky takes a square matrix; got 3×4"),
    (lambda _: ln.linalg.cholesky(ln.asarray(-np.eye(4), chunks=2)).compute(), np.linalg.LinAlgError,
     "the matrix is not positive definite"),
    # what users write for tiles
    (lambda _: ln.map_blocks(two_with_bad_function, small(), dtype=float).persist(), ValueError,
     r"^kernel 'two_with_bad_function' raised ValueError: matmul.*\n  while it made the tile \[0, 0\] of its result"),
    # jobs
    (lambda path: ln.submit(small() @ small(), store=path, ledger="redis://127.0.0.1:1/0"), ConnectionError,
     r"nobody answers at redis://127.0.0.1:1 \(Connection refused\); start the server there"),
    (lambda _: ln.attach("/nowhere/at/all#job=1"), ValueError, "there is no job '1' in .*; was it deleted"),
    (lambda _: ln.submit(SQUARE), ValueError, "submit was given a ndarray; give it an array, several arrays"),
    (lambda _: ln.plan(SQUARE), ValueError, "plan was given a ndarray; give it an array"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "words"), MISTAKES, ids=lambda each: None)
def test_a_mistake_gets_the_message_one_would_want(mistake, kind, words, tmp_path):
    begun = time.monotonic()
    with pytest.raises(kind) as caught:
        mistake(tmp_path)
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)
    assert not re.search(r"R\d+\[i\d+|<expression>|numbers\[", str(caught.value)), "nothing of how it is made"
    assert time.monotonic() - begun < 30, "nobody waits a minute to hear it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "action", "extra"),
    [
        ("zarr", lambda path: ln.from_zarr(path / "x.zarr"), "io"),
        ("h5py", lambda path: ln.from_hdf5(path / "x.h5", "a"), "io"),
        ("uvicorn", lambda path: ln.dashboard(), "dashboard"),
        ("matplotlib", lambda path: ln.report(path / "x.png"), "plot"),
        ("ray", lambda path: ln.init("ray"), "ray"),
    ],
)
def test_a_missing_extra_comes_with_the_command(module, action, extra, tmp_path, monkeypatch):
    import sys

    for name in [each for each in sys.modules if each == module or each.startswith(module + ".")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing_module(module))
    with pytest.raises(ImportError) as caught:
        action(tmp_path)
    assert f'pip install "linnet-array[{extra}]"' in str(caught.value)


def test_a_wrong_password(start_redis, tmp_path):
    server = start_redis(password="right")
    url = re.sub(r"//.*@", "//:wrong@", server.url)
    with pytest.raises(OSError, match=r"(?i)password|login|denied|auth"):
        ln.submit(small() @ small(), store=tmp_path, ledger=url)


@pytest.mark.slow
def test_arrays_of_a_session_that_has_ended():
    with ln.init("stateless", launcher="threads", workers=1):
        kept = (small() @ small()).persist()
    with pytest.raises((RuntimeError, OSError), match="closed"):
        (kept + 1).persist()
