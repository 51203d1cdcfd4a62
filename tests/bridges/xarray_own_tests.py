"""xarray's own tests, on arrays of ours: how many of those that make such arrays pass, and which do not.

    python tests/bridges/xarray_own_tests.py [test_dask test_groupby ...] [-k words and other options of pytest]

Linnet is xarray's chunk manager, and where tests ask whether an array is Dask's, ours counts as one. Tests whose
text says nothing of chunks or Dask are left out, since they make no such array; so are those that run on arrays
of Dask's or NumPy's after all. Those of Dask's graphs fail, and count as failed. `test_variable` needs pytz.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

FILES = (
    *("accessor_dt", "accessor_str", "assertions", "backends", "backends_api", "backends_chunks"),
    *("backends_datatree", "coarsen", "coding", "coding_strings", "coding_times", "computation", "concat"),
    *("conventions", "dask", "dataarray", "dataset", "datatree", "dtypes", "duck_array_ops", "eval"),
    *("formatting", "formatting_html", "groupby", "indexing", "interp", "missing", "namedarray", "rolling"),
    *("sparse", "ufuncs", "utils", "variable", "weighted"),
)
"""Those of xarray's files of tests that speak of chunks, without those that test Dask's own protocol and plots."""


class OnOurArrays:
    """A plugin of pytest: sets the stage, sees which tests make arrays of ours, and counts."""

    def __init__(self) -> None:
        self.made = False
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def pytest_configure(self) -> None:
        import dask.array as da
        import xarray
        import xarray.tests as common

        import linnet as ln
        from linnet.arrays.elements.core import ArrayBase

        xarray.set_options(chunk_manager="linnet")
        either: Any = (da.Array, ln.Array)
        common.dask_array_type = either
        begin = ArrayBase.__init__

        def counted(array: Any, node: Any) -> None:
            self.made = True
            begin(array, node)

        ArrayBase.__init__ = counted  # pyright: ignore[reportAttributeAccessIssue]

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if _speaks_of_chunks(item)]
        for module in {item.module for item in items}:
            if hasattr(module, "is_duck_dask_array"):
                module.is_duck_dask_array = _is_in_chunks

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.made = False
        return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not self.made or report.skipped or hasattr(report, "wasxfail"):
            return
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failed[report.nodeid] = str(crash.message if crash else report.longrepr).splitlines()[0][
                :200
            ]
        elif report.when == "call":
            self.passed.append(report.nodeid)


def _is_in_chunks(array: Any) -> bool:
    from xarray.namedarray.utils import is_duck_dask_array

    import linnet as ln

    return isinstance(array, ln.Array) or is_duck_dask_array(array)


def _speaks_of_chunks(item: Any) -> bool:
    fixtures = item._request._arg2fixturedefs if hasattr(item, "_request") else {}
    if "use_dask" in item.fixturenames or "use_dask" in fixtures:
        return True
    try:
        text = inspect.getsource(item.function)
    except (OSError, TypeError):
        return True
    return (
        "chunk" in text
        or "dask" in text.lower()
        or "open_" in text
        or "roundtrip" in text
        or "assertLazy" in text
    )


def main(arguments: list[str]) -> int:
    """Run them, and print what fails with the reason, and the share that passes."""
    names = [each for each in arguments if each.startswith("test_")]
    options = [each for each in arguments if each not in names]
    ours = OnOurArrays()
    files = [f"xarray.tests.{name}" for name in names or [f"test_{each}" for each in FILES]]
    quiet = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--no-header", "-W", "ignore"]
    pytest.main(["--pyargs", *files, *quiet, *options], plugins=[ours])
    for test, reason in ours.failed.items():
        print(f"FAILED {test.split('tests/')[-1]}: {reason}")
    passed = [each for each in ours.passed if each not in ours.failed]
    count = len(passed) + len(ours.failed)
    print(f"{len(passed)} of {count} tests that make arrays of ours pass ({len(passed) / max(count, 1):.1%})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
