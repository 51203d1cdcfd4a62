"""The threads engine with a memory budget: what it takes, what it spills, what it refuses."""

from __future__ import annotations

import gc
import mmap
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from linnet import linalg
from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.gemm import gemm
from linnet.engines import Threads
from linnet.engines.mapped_tiles import Scratch, loaded, mapped_zeros, place_of, stored
from linnet.errors import BudgetError, InputError, KernelDeclarationError
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray


@kernel("m_next", shape=lambda x: x)
def following(x):
    return x + 1


@kernel("m_add", shape=lambda x, y: x)
def add_up(x, y):
    return x + y


@kernel("m_secret")
def secret(x):
    return np.concatenate([x] * 8)


@tile_program
def there_and_back(A: In, B: Out, S: Temp, N: int):
    """Every S is made before the first is read again."""
    for i in range(N):
        S[i] = m_next(A[i])
    for i in range(N):
        B[i] = m_add(S[N - 1 - i], S[i])


def rss():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


class Peak:
    """Resident memory above what it was, sampled."""

    def __enter__(self):
        gc.collect()
        self.base = self.top = rss()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        while not self.over.wait(0.002):
            self.top = max(self.top, rss())

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()

    @property
    def bytes(self):
        return self.top - self.base


def spd(n, dtype="f8"):
    a = np.random.default_rng(n).standard_normal((n, n)).astype(dtype)
    return a @ a.T + n * np.eye(n, dtype=dtype)


@settings(max_examples=25)
@given(st.integers(1, 40), st.integers(3, 60), st.integers(1, 3))
def test_any_budget_that_holds_a_task_gives_the_same_result(tiles, budget, workers):
    a = np.arange(tiles * 16.0)
    given_tiles = TiledArray.from_numpy(a, 16)
    engine = Threads(workers, memory=budget * 128)
    out = engine.run(there_and_back.bind(N=tiles), {"A": given_tiles})["B"].to_numpy()
    whole = (a + 1).reshape(tiles, 16)
    assert np.array_equal(out, (whole + whole[::-1]).ravel())


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(1, 50), st.integers(2, 13), st.sampled_from(["f4", "f8"]), st.booleans(), st.booleans())
def test_cholesky_in_little_memory(n, tile, dtype, mapped, right_looking):
    a = spd(n, dtype)
    if mapped:
        source = mapped_zeros(a.shape, a.dtype)
        source[...] = a
    else:
        source = a
    # one task of the left-looking program reads two rows of tiles
    tiles = -(-n // tile)
    engine = Threads(2, memory=(2 * tiles + 3) * tile * tile * a.itemsize)
    expected = linalg.cholesky(a, tile=tile, engine=Threads(1))
    if right_looking:
        inputs = {"A": TiledArray.from_numpy(source, tile, copy=False)}
        found = engine.run(cholesky.bind(N=tiles), inputs)["O"].to_numpy()
        assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)
    else:
        assert np.array_equal(linalg.cholesky(source, tile=tile, engine=engine), expected)
    assert np.array_equal(source, a)


@pytest.mark.slow
def test_resident_memory_stays_within_the_budget():
    n, tile = 2048, 128
    a = mapped_zeros((n, n), "f8")
    a[...] = spd(n)
    expected = linalg.cholesky(np.asarray(a), tile=tile, engine=Threads(2))
    place_of(a).owner.madvise(mmap.MADV_DONTNEED)
    budget = a.nbytes // 4
    with Peak() as peak:
        found = linalg.cholesky(a, tile=tile, engine=Threads(2, memory=budget))
    assert peak.bytes <= 1.1 * budget + 2 * 4e6  # the stated slack, for two workers
    assert np.array_equal(found, expected)
    assert place_of(found) is not None


@kernel("m_rows", shape=lambda tiles: (tiles[0][0],))
def sum_of_rows(tiles):
    return sum(tile.sum(axis=1) for tile in tiles)


@tile_program
def rows_of_fills(A: In, B: Out, D: Out, S: Temp(fill=3), N: int):
    """Fills are read again and again, one by one and in rows, between tiles that are spilled."""
    for i in range(N):
        S[i, i] = m_next(A[i, i])
    for i in range(N):
        for j in range(N):
            B[i, j] = m_add(S[i, j], S[N - 1 - i, j])
        D[i] = m_rows(S[i, 0:N])


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(0, 40), st.integers(1, 3))
def test_any_budget_that_holds_a_task_holds_its_fills(tiles, more, workers):
    a = np.arange(float((4 * tiles) ** 2)).reshape(4 * tiles, 4 * tiles)
    engine = Threads(workers, memory=(max(tiles, 2) + 1 + more) * 128)
    out = engine.run(rows_of_fills.bind(N=tiles), {"A": TiledArray.from_numpy(a, 4)})
    between = np.full_like(a, 3)
    for i in range(0, 4 * tiles, 4):
        between[i : i + 4, i : i + 4] = a[i : i + 4, i : i + 4] + 1
    flipped = between.reshape(tiles, 4, -1)[::-1].reshape(between.shape)
    assert np.array_equal(out["B"].to_numpy(), between + flipped)
    assert np.array_equal(out["D"].to_numpy(), between.sum(axis=1))


def test_fills_are_counted_with_the_task_that_reads_them():
    a = TiledArray.from_numpy(np.zeros((40, 40)), 4)
    with pytest.raises(BudgetError, match=r"(?s)one task needs 1.3 kB in 11 tiles at once.*D\[i\] = m_rows"):
        Threads(memory=1000).run(rows_of_fills.bind(N=10), {"A": a})


@pytest.mark.slow
def test_resident_memory_stays_within_the_budget_with_fills():
    tiles, tile = 24, 160
    a = TiledArray.from_numpy(np.zeros((tiles * tile, tiles * tile), "f4"), tile)
    budget = 8 * (tiles + 2) * tile * tile * 4
    engine = Threads(2, memory=budget)
    with Peak() as peak:
        out = engine.run(rows_of_fills.bind(N=tiles), {"A": a})
    assert peak.bytes <= 1.1 * budget + 2 * 4e6
    assert np.array_equal(out["D"].to_numpy()[:tile], np.full(tile, tile * (1 + 3 * (tiles - 1)), "f4"))


def test_a_plan_that_cannot_fit_is_refused_before_it_starts():
    a = TiledArray.from_numpy(np.zeros(80_000), 10_000)
    started = time.perf_counter()
    with pytest.raises(
        BudgetError,
        match=r"(?s)one task needs 160.0 kB in 2 tiles at once, and the budget is "
        r"100.0 kB; give memory='160.0 kB' or more, or cut into smaller tiles.*S\[i\] = m_next",
    ):
        Threads(memory="100 kB").run(there_and_back.bind(N=8), {"A": a})
    assert time.perf_counter() - started < 5
    with pytest.raises(MemoryError):
        linalg.cholesky(np.eye(64), tile=32, engine=Threads(memory=100))


def test_a_result_of_undeclared_shape_is_refused_when_it_is_read():
    @tile_program
    def swell(A: In, B: Out, S: Temp, N: int):
        for i in range(N):
            S[i] = m_secret(A[i])
            B[i] = m_next(S[i])

    a = TiledArray.from_numpy(np.zeros(2000), 1000)
    engine = Threads(memory=20_000)
    with pytest.raises(BudgetError, match="one task needs 128.0 kB in 2 tiles"):
        engine.run(swell.bind(N=2), {"A": a})
    out = Threads(memory="1 MB").run(swell.bind(N=2), {"A": a})["B"]
    assert out.shape == (16_000,)


def test_results_may_go_to_a_mapped_file(tmp_path):
    a, b = np.random.default_rng(0).standard_normal((2, 90, 90))
    out = np.memmap(tmp_path / "c.bin", "f8", "w+", shape=(90, 90))
    inputs = {"A": TiledArray.from_numpy(a, 20), "B": TiledArray.from_numpy(b, 20)}
    place = {"C": TiledArray.over(out, inputs["A"].layout)}
    Threads(2, memory=20 * 20 * 8 * 12).run(gemm.bind(M=5, N=5, K=5), inputs, out=place)
    out.flush()
    assert np.allclose(np.fromfile(tmp_path / "c.bin").reshape(90, 90), a @ b)


def test_places_for_results_are_checked():
    a = TiledArray.from_numpy(np.zeros(4), 2)
    engine = Threads(1)
    wrong = TiledArray.over(np.zeros(6), TiledArray.from_numpy(np.zeros(6), 3).layout)
    with pytest.raises(
        InputError, match=r"B\[\d\] was written with shape \(2,\), but in the array given for B"
    ):
        engine.run(there_and_back.bind(N=2), {"A": a}, out={"B": wrong})
    with pytest.raises(InputError, match="there_and_back has no Out array 'S'; it has B"):
        engine.run(there_and_back.bind(N=2), {"A": a}, out={"S": wrong})
    locked = TiledArray.from_numpy(np.zeros(4), 2, copy=False)
    with pytest.raises(InputError, match=r"B\[0\] was given as a place for a result, but is read-only"):
        engine.run(there_and_back.bind(N=2), {"A": a}, out={"B": locked})
    with pytest.raises(
        InputError, match=r'memory=\'much\': give bytes as a number, or as text such as "2 GB"'
    ):
        Threads(memory="much")


@given(st.integers(0, 30), st.integers(0, 30), st.booleans(), st.booleans())
def test_mapped_tiles_are_copied_exactly(rows, columns, turned, flipped):
    whole = mapped_zeros((64, 700), "f8")
    whole[...] = np.arange(64 * 700.0).reshape(64, 700)
    tile = whole[3 : 3 + rows, 5 : 5 + columns]
    tile = tile.T if turned else tile
    tile = tile[::-1] if flipped else tile
    copy = loaded(tile)
    assert np.array_equal(copy, tile)
    assert copy.strides == np.empty_like(tile, order="K").strides
    stored(copy + 1, tile)
    assert np.array_equal(tile, copy + 1)
    if rows and columns:
        assert place_of(tile).offset >= 0


def test_private_mappings_are_left_alone(tmp_path):
    np.zeros(4096).tofile(tmp_path / "x.bin")
    private = np.memmap(tmp_path / "x.bin", "f8", "c")
    private[:] = 7
    assert place_of(private) is None
    out = Threads(memory="1 MB").run(
        there_and_back.bind(N=4), {"A": TiledArray.from_numpy(private, 1024, copy=False)}
    )
    assert (out["B"].to_numpy() == 16).all()
    assert (private == 7).all()


def test_places_on_disk_are_used_again():
    scratch = Scratch(None)
    tile = np.arange(12.0).reshape(3, 4)
    copy, slot = scratch.store(tile.T)
    assert np.array_equal(copy, tile.T)
    scratch.give_back(slot, tile.nbytes)
    again, same = scratch.store(tile + 1)
    assert same is slot
    assert np.array_equal(again, tile + 1)


@pytest.mark.slow
def test_results_without_a_place_go_to_files_and_vanish_with_them():
    a = TiledArray.from_numpy(np.arange(80_000.0), 2000)
    engine = Threads(2, memory=64_000)
    made = engine.run(there_and_back.bind(N=40), {"A": a})["B"]
    places = [place_of(tile) for tile in made.tiles.values()]
    in_memory = sum(tile.nbytes for tile, place in zip(made.tiles.values(), places, strict=True) if not place)
    assert in_memory <= 64_000 // 16
    assert all(tile.flags.writeable for tile in made.tiles.values())
    whole = np.arange(80_000.0).reshape(40, 2000) + 1
    assert np.array_equal(made.to_numpy(), (whole + whole[::-1]).ravel())
    again = engine.run(there_and_back.bind(N=40), {"A": made})["B"]
    assert np.array_equal(again.to_numpy(), np.tile((whole + whole[::-1] + 1)[:1] * 2, (40, 1)).ravel())
    owner = weakref.ref(next(place.owner for place in places if place))
    del made, again, places
    gc.collect()
    assert owner() is None


def test_what_a_kernel_needs_while_it_runs_is_counted():
    @kernel("m_greedy", shape=lambda x: x, scratch=3.0)
    def greedy(x):
        return x + 1

    @tile_program
    def grow(A: In, B: Out):
        B[0] = m_greedy(A[0])

    a = {"A": TiledArray.from_numpy(np.zeros(1000), 1000)}
    with pytest.raises(BudgetError, match="one task needs 40.0 kB in 2 tiles"):
        Threads(memory=39_000).run(grow.bind(), a)
    assert Threads(memory=41_000).run(grow.bind(), a)["B"].shape == (1000,)


@given(
    hnp.arrays(st.sampled_from(["f8", "i2", "?", "M8[s]"]), hnp.array_shapes(max_dims=4, max_side=6)),
    st.data(),
)
def test_any_tile_comes_back_from_a_file_as_it_was(tile, data):
    turned = tile.transpose(data.draw(st.permutations(range(tile.ndim))))
    copy, _ = Scratch(None).store(turned)
    np.testing.assert_array_equal(loaded(copy), turned)
    place = mapped_zeros(turned.shape, turned.dtype)
    stored(turned, place)
    np.testing.assert_array_equal(place, turned)
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in range(tile.ndim))
    np.testing.assert_array_equal(loaded(place[steps]), turned[steps])


def test_a_wrong_declaration_is_named():
    kernel("m_wrong", shape=lambda: ())(lambda x: x + 1)

    @tile_program
    def wrong(A: In, B: Out):
        B[0] = m_wrong(A[0])

    with pytest.raises(
        KernelDeclarationError, match=r"what kernel 'm_wrong' declares .* fails on \(A\[0\],\)"
    ):
        Threads(memory="1 MB").run(wrong.bind(), {"A": TiledArray.from_numpy(np.zeros(1), 1)})
