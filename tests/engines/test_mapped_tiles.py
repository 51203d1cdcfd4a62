"""Tiles in files: what is stored is what is loaded, compiled or not, in any shape, order and dtype."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linnet.engines import compiled, mapped_tiles
from linnet.engines.mapped_tiles import loaded, mapped_zeros, place_of, stored


@pytest.fixture(params=["compiled", "Python"])
def way(request, monkeypatch):
    if request.param == "Python":
        monkeypatch.setattr(compiled, "library", lambda: None)
    elif compiled.library() is None:
        pytest.skip("no C compiler was there when the package was built")


SLICES = st.tuples(st.integers(0, 40), st.integers(0, 200), st.sampled_from([1, 1, 1, 2, -1]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    shape=st.lists(st.integers(1, 90), min_size=1, max_size=3),
    cuts=st.tuples(SLICES, SLICES, SLICES),
    turned=st.booleans(),
    order=st.sampled_from("CF"),
    codes=st.sampled_from(["dd", "ff", "DD", "df", "fd", "bb"]),
)
def test_there_and_back(way, shape, cuts, turned, order, codes):
    there, here = codes
    array = mapped_zeros(tuple(shape), there)
    model = np.zeros(shape, there)
    key = tuple(slice(start, start + size, abs(step)) for start, size, step in cuts[: len(shape)])
    part, same = array[key], model[key]
    for axis, (_, _, step) in enumerate(cuts[: len(shape)]):
        if step < 0:
            part, same = np.flip(part, axis), np.flip(same, axis)
    if turned:
        part, same = part.T, same.T
    given_tile = np.array(np.arange(part.size).reshape(part.shape) % 100, here, order=order)
    stored(given_tile, part)
    same[...] = given_tile
    assert np.array_equal(array, model)
    found = loaded(part)
    assert found.dtype == part.dtype
    assert np.array_equal(found, same)


def test_rows_of_a_large_matrix(way):
    whole = mapped_zeros((600, 2000), np.float64)
    a = np.random.default_rng(0).standard_normal((300, 512))
    stored(a, whole[100:400, 256:768])
    assert np.array_equal(whole[100:400, 256:768], a)
    assert not whole[:100].any()
    assert not whole[100:400, :256].any()
    assert not whole[100:400, 768:].any()
    assert np.array_equal(loaded(whole[100:400, 256:768]), a)


def test_a_file_that_ends_is_told(way):
    whole = mapped_zeros((64, 2048), np.float64)
    place = place_of(whole)
    assert place is not None
    assert isinstance(place.owner, mapped_tiles.OpenMapping)
    os.ftruncate(place.owner.descriptor, 20 * 2048 * 8)
    with pytest.raises(OSError, match="scratch file ends"):
        loaded(whole[:, :1024])


def test_an_error_of_the_system_has_its_number(way, tmp_path):
    whole = mapped_zeros((64, 2048), np.float64)
    place = place_of(whole)
    assert isinstance(place.owner, mapped_tiles.OpenMapping)
    (tmp_path / "file").write_bytes(bytes(64 * 2048 * 8))
    with open(tmp_path / "file", "rb") as readable:  # which cannot be written to
        os.dup2(readable.fileno(), place.owner.descriptor)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        stored(np.ones((64, 1024)), whole[:, :1024])
    assert caught.value.errno == 9
