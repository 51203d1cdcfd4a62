"""Kernels for programs that are analysed and never run: only their names and outputs matter."""

from __future__ import annotations

from typing import Any

from linnet.kernels import kernel


def _unused(*tiles: Any, **attributes: Any) -> Any:
    raise AssertionError("programs in these tests are analysed, not run")


@kernel("t_one")
def t_one(*tiles: Any, **attributes: Any) -> Any:
    return _unused(*tiles, **attributes)


@kernel("t_uno")
def t_uno(*tiles: Any, **attributes: Any) -> Any:
    return _unused(*tiles, **attributes)


@kernel("t_two", outputs=2)
def t_two(*tiles: Any, **attributes: Any) -> Any:
    return _unused(*tiles, **attributes)


@kernel("t_three", outputs=3)
def t_three(*tiles: Any, **attributes: Any) -> Any:
    return _unused(*tiles, **attributes)


@kernel(
    "t_counted", shape=lambda x, *rest: x, dtype=lambda x, *rest: x, flops=lambda x, *rest: 2 * x[0] * x[1]
)
def t_counted(*tiles: Any, **attributes: Any) -> Any:
    return _unused(*tiles, **attributes)


@kernel("t_listed", flops=lambda tiles, weight: 10 * len(tiles) + weight)
def t_listed(*tiles: Any, **attributes: Any) -> Any:
    return _unused(*tiles, **attributes)
