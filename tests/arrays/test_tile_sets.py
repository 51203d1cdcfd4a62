"""Sets of tiles against sets of their indices, one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.arrays.expression import tile_sets
from linnet.arrays.expression.tile_sets import (
    Box,
    Tiles,
    common,
    count,
    covered,
    listed,
    numbers,
    of_points,
    union,
)

lines = st.lists(st.integers(0, 6), min_size=1, max_size=4).map(numbers)


def boxes(axes: int) -> st.SearchStrategy[Box]:
    return st.tuples(*[lines] * axes)


def points(tiles: Tiles) -> set[tuple[int, ...]]:
    found = [point for box in tiles for point in itertools.product(*box)]
    assert len(found) == len({*found}) == count(tiles)  # each once
    return {*found}


@pytest.mark.parametrize("most", [256, 0])
@pytest.mark.parametrize("axes", [0, 1, 2, 3])
@settings(max_examples=30)
@given(data=st.data())
def test_a_union_has_the_tiles_of_both_each_once(axes: int, most: int, data: st.DataObject) -> None:
    several = data.draw(st.lists(boxes(axes), min_size=1, max_size=6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_sets, "_MOST_PAIRS", most)
        found: Tiles = ()
        for box in several:
            found = union(found, (box,))
    assert points(found) == {point for box in several for point in itertools.product(*box)}


@given(boxes(2), boxes(2))
def test_what_two_boxes_share(one: Box, other: Box) -> None:
    shared = common(one, other)
    assert {*itertools.product(*(shared or ((), ())))} == {*itertools.product(*one)} & {
        *itertools.product(*other)
    }


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 1)), min_size=1))
def test_single_tiles_become_boxes_and_a_list_again(wanted: set[tuple[int, ...]]) -> None:
    tiles = of_points(wanted)
    assert points(tiles) == wanted
    found = listed(tiles)
    if found is not None:
        columns, rest = found
        several = []
        for place in range(len(next(iter(columns.values())))):
            alike = iter(rest)
            several.append(
                tuple(
                    range(columns[a][place], columns[a][place] + 1) if a in columns else next(alike)
                    for a in range(3)
                )
            )
        assert points(tuple(several)) == wanted


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5))
def test_ranges_that_overlap_are_counted_once(spans: list[tuple[int, int]]) -> None:
    assert list(covered(spans)) == sorted({each for a, b in spans for each in range(a, b)})


def test_too_many_tiles_are_the_box_around_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_sets, "_MOST_PAIRS", 0)
    monkeypatch.setattr(tile_sets, "MOST_LISTED", 3)
    one, other = ((range(2), range(1)),), ((range(5, 6), range(3, 5)),)
    assert union(one, other) == ((range(6), range(5)),)
    assert listed((*one, *other)) is None
