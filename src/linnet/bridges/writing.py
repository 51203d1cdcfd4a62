"""Writing arrays into stores of other libraries, now or when `dask.delayed` asks for it."""

from __future__ import annotations

from typing import Any

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.files.store_into import matched, written
from linnet.arrays.lowering.evaluate import computed
from linnet.errors import missing_extra


def store(
    sources: Any,
    targets: Any,
    *,
    lock: Any = None,
    compute: bool = True,
    regions: Any = None,
    flush: bool = True,
    **_: Any,
) -> Any:
    """Write arrays into objects that take `target[slices] = tile`; what they share is computed once.

    `regions` says where in each target its array goes. With `compute=False` the result is a
    `dask.delayed` that writes when it is computed, which is what xarray makes its own ones of.
    """
    for each in sources if isinstance(sources, tuple | list) else [sources]:
        if not isinstance(each, ArrayBase):
            raise TypeError(f"store takes arrays of linnet's, not {type(each).__name__}")
    each_one = zip(*matched(sources, targets, regions), strict=True)
    nodes = [written(*each, lock or None) for each in each_one]

    def write() -> None:
        computed(nodes)

    if compute:
        return write()
    try:
        from dask.delayed import delayed
    except ImportError as error:
        raise missing_extra("writing later (compute=False)", "dask", "dask") from error
    return delayed(write)()
