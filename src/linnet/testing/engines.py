"""What every engine must do: a suite to subclass::

    from linnet.testing.engines import EngineSuite

    class TestMine(EngineSuite):
        @pytest.fixture
        def engine(self):
            return MyEngine()

Results are compared with plain NumPy, bit by bit where no rounding is involved. A suite that
needs pytest is imported by tests only.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from linnet.engines import Engine
from linnet.errors import InputError, KernelError, LinAlgError
from linnet.events import (
    Event,
    Events,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    TaskFailed,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileWritten,
)
from linnet.programs import BoundProgram
from linnet.session import init
from linnet.testing import kernels as programs
from linnet.testing import odd_tiles
from linnet.tiles import Layout, TiledArray

DTYPES = ["float32", "float64", "complex64", "complex128"]
ALL_DTYPES = [
    *DTYPES,
    *("bool", "int8", "uint8", "int32", "uint64", "float16", ">f8"),
    *("datetime64[D]", "datetime64[ns]", "timedelta64[s]", "S3", "U2"),
]


def numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> NDArray[Any]:
    """Random numbers, complex ones if the dtype is."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else made).astype(dtype)


def recorded(events: Events) -> list[Event]:
    """A list to which every event from now on is added."""
    found: list[Event] = []
    events.subscribe(found.append)
    return found


class EngineSuite:
    """Subclass this with a fixture `engine`."""

    @pytest.fixture
    def engine(self) -> Engine:
        """The engine under test."""
        pytest.fail("a subclass of EngineSuite gives the fixture `engine`")

    # ---- results

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize(("n", "k", "tile"), [(6, 8, 2), (7, 9, 4), (5, 6, 3)])
    def test_affine_loops(self, engine: Engine, dtype: str, n: int, k: int, tile: int) -> None:
        a, b = numbers((n, k), dtype), numbers((k, n), dtype, seed=1)
        inputs = {"A": TiledArray.from_numpy(a, tile), "B": TiledArray.from_numpy(b, tile)}
        bound = programs.affine.bind(N=inputs["A"].grid[0], K=inputs["A"].grid[1])
        c = engine.run(bound, inputs)["C"]
        assert c.dtype == np.dtype(dtype)
        tolerance = 50 * k * float(np.finfo(dtype).eps)
        assert np.allclose(c.to_numpy(), a @ b, rtol=tolerance, atol=tolerance)

    @pytest.mark.parametrize("leaves", [2, 3, 5, 8, 13])
    def test_nonlinear_loops(self, engine: Engine, leaves: int) -> None:
        a = np.arange(float(leaves * 4))
        found = engine.run(programs.tree.bind(N=leaves), {"A": TiledArray.from_numpy(a, 4)})["R"]
        assert np.array_equal(found.to_numpy(), a.reshape(leaves, 4).sum(0))

    def test_ranges_in_and_out(self, engine: Engine) -> None:
        a = np.arange(12.0)
        found = engine.run(programs.ranges.bind(N=3, M=4), {"A": TiledArray.from_numpy(a, 4)})["B"]
        assert np.array_equal(found.to_numpy(), a.reshape(3, 4).sum(1))

    def test_ranges_in_place(self, engine: Engine) -> None:
        a = np.arange(12.0)
        found = engine.run(programs.marching.bind(N=6, M=4), {"A": TiledArray.from_numpy(a, 2, copy=False)})
        assert np.array_equal(found["B"].to_numpy(), a + 4)
        assert found["C"].to_numpy().tolist() == [1, 2, 5, 6, 9, 10]
        assert np.array_equal(a, np.arange(12.0))

    def test_several_results_of_one_task(self, engine: Engine) -> None:
        a = numbers((12,))
        found = engine.run(programs.several.bind(N=3), {"A": TiledArray.from_numpy(a, 4)})
        assert set(found) == {"Low", "High"}
        assert np.array_equal(found["Low"].to_numpy(), a.reshape(3, 4).min(1))
        assert np.array_equal(found["High"].to_numpy(), a.reshape(3, 4).max(1))

    def test_tiles_nobody_writes_are_the_fill(self, engine: Engine) -> None:
        a = numbers((6, 6))
        found = engine.run(programs.filled.bind(N=3), {"A": TiledArray.from_numpy(a, 2)})
        expected = 2 * a
        for i in (0, 2, 4):
            expected[i : i + 2, i : i + 2] = 7
        assert np.array_equal(found["B"].to_numpy(), expected)
        assert np.array_equal(found["C"].to_numpy(), expected + 1)

    @pytest.mark.parametrize("n", [6, 5])
    def test_tiles_nobody_writes_may_be_intermediate(self, engine: Engine, n: int) -> None:
        a = numbers((n, n))
        found = engine.run(programs.patched.bind(N=3), {"A": TiledArray.from_numpy(a, 2)})
        between = 2 * a
        for i in (0, 2, 4):
            between[i : i + 2, i : i + 2] = 7
        assert set(found) == {"C", "D"}
        assert np.array_equal(found["C"].to_numpy(), between + 1)
        assert np.array_equal(found["D"].to_numpy(), (between + 1) + between)

    def test_a_result_with_a_fill_becomes_intermediate(self, engine: Engine) -> None:
        a = numbers((6, 6))
        both = programs.filled.then(programs.squared, keep=False)
        found = engine.run(both.bind(N=3), {"A": TiledArray.from_numpy(a, 2)})
        between = 2 * a
        for i in (0, 2, 4):
            between[i : i + 2, i : i + 2] = 7
        tiles = between.reshape(3, 2, 3, 2).swapaxes(1, 2)
        expected = (tiles @ tiles.swapaxes(0, 1)).swapaxes(1, 2).reshape(6, 6)
        assert set(found) == {"C", "E"}
        assert np.array_equal(found["C"].to_numpy(), between + 1)
        assert np.allclose(found["E"].to_numpy(), expected, rtol=1e-14)

    def test_tables_scalars_and_attributes(self, engine: Engine) -> None:
        a = numbers((10,))
        order = [3, 0, 4, 4, 1]
        found = engine.run(programs.tabled.bind(N=5, T=order), {"A": TiledArray.from_numpy(a, 2)})["B"]
        expected = a.reshape(5, 2)[order] + np.arange(5.0)[:, None]
        assert np.array_equal(found.to_numpy(), expected.ravel())

    def test_two_programs_as_one(self, engine: Engine) -> None:
        a = np.arange(6.0)
        both = programs.chain.then(programs.doubled)
        found = engine.run(both.bind(N=3, M=4), {"A": TiledArray.from_numpy(a, 2)})
        assert np.array_equal(found["B"].to_numpy(), a + 4)
        assert np.array_equal(found["D"].to_numpy(), 2 * (a + 4))

    @pytest.mark.parametrize("dtype", [*DTYPES, "int64", "bool"])
    def test_dtypes_pass_through(self, engine: Engine, dtype: str) -> None:
        a = (np.arange(6) % 2).astype(dtype)
        found = engine.run(programs.doubled.bind(N=2), {"B": TiledArray.from_numpy(a, 3)})["D"]
        assert found.dtype == (a + a).dtype
        assert np.array_equal(found.to_numpy(), a + a)

    def test_programs_from_bytes(self, engine: Engine) -> None:
        program = type(programs.chain).from_bytes(programs.chain.to_bytes())
        found = engine.run(program.bind(N=2, M=3), {"A": TiledArray.from_numpy(np.arange(4.0), 2)})["B"]
        assert found.to_numpy().tolist() == [3, 4, 5, 6]

    def test_an_empty_program(self, engine: Engine) -> None:
        found = engine.run(programs.doubled.bind(N=0), {"B": TiledArray.from_numpy(np.zeros(2), 1)})
        assert found.tiles("D") == {}

    def test_empty_tiles(self, engine: Engine) -> None:
        found = engine.run(programs.doubled.bind(N=1), {"B": TiledArray.from_numpy(np.zeros(0), 1)})["D"]
        assert found.shape == (0,)

    def test_many_tasks(self, engine: Engine) -> None:
        a = np.arange(40.0)
        found = engine.run(programs.chain.bind(N=20, M=20), {"A": TiledArray.from_numpy(a, 2)})["B"]
        assert np.array_equal(found.to_numpy(), a + 20)

    def test_results_in_a_place_of_their_own(self, engine: Engine) -> None:
        a, whole = np.arange(10.0), engine.zeros((10,), "float64")
        place = TiledArray.over(whole, Layout.regular((10,), 4))
        engine.run(programs.chain.bind(N=3, M=2), {"A": TiledArray.from_numpy(a, 4)}, out={"B": place})
        assert np.array_equal(whole, a + 2)

    # ---- tiles of any kind

    @pytest.mark.parametrize("dtype", ALL_DTYPES)
    @pytest.mark.parametrize("copy", [True, False])
    def test_any_dtype(self, engine: Engine, dtype: str, copy: bool) -> None:
        a = np.arange(7).astype("int64" if "time" in dtype else "int8").astype(dtype)
        given = TiledArray.from_numpy(a, 3, copy=copy)
        found = engine.run(odd_tiles.passed_on.bind(N=3), {"A": given})["B"]
        assert found.dtype == np.result_type(a)  # the machine's byte order
        assert np.array_equal(found.to_numpy(), a)

    def test_special_values_are_kept(self, engine: Engine) -> None:
        a = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
        found = engine.run(odd_tiles.passed_on.bind(N=3), {"A": TiledArray.from_numpy(a, 2)})["B"]
        assert found.to_numpy().tobytes() == a.tobytes()

    @pytest.mark.parametrize("dtype", ["float64", "bool", "datetime64[s]"])
    def test_arrays_without_axes(self, engine: Engine, dtype: str) -> None:
        a = np.array(1).astype(dtype)
        found = engine.run(odd_tiles.single.bind(N=2), {"A": TiledArray.from_numpy(a, ())})
        assert found["B"].shape == ()
        assert found["B"].dtype == a.dtype
        assert found["B"].to_numpy() == a
        assert [tile.shape for tile in found.tiles("C").values()] == [(), ()]

    def test_numbers_as_results(self, engine: Engine) -> None:
        a = np.arange(6.0)
        found = engine.run(odd_tiles.totals.bind(N=3), {"A": TiledArray.from_numpy(a, 2)}).tiles("B")
        assert {index: (tile.shape, float(tile)) for index, tile in found.items()} == {
            (0,): ((), 1.0),
            (1,): ((), 5.0),
            (2,): ((), 9.0),
        }

    @pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (0, 0, 0), (3, 2, 1)])
    def test_tiles_without_elements(self, engine: Engine, shape: tuple[int, ...]) -> None:
        given = TiledArray.from_numpy(np.ones(shape, "float32"), 2)
        n, m, k = given.grid
        found = engine.run(odd_tiles.passed_on_in_planes.bind(N=n, M=m, K=k), {"A": given})["B"]
        assert (found.shape, found.dtype) == (shape, np.dtype("float32"))
        assert found.to_numpy().all()

    def test_a_program_without_tasks(self, engine: Engine) -> None:
        events = Events()
        heard = recorded(events)
        given = {"A": TiledArray.from_numpy(np.zeros(3), 1)}
        found = engine.run(odd_tiles.nothing.bind(N=3), given, events=events)
        assert found.tiles("B") == {}
        kinds = {type(event) for event in heard}
        assert {JobStarted, JobFinished} <= kinds
        assert not kinds & {TaskReady, TaskStarted, TaskFinished}

    def test_a_program_again_and_again_on_other_data(self, engine: Engine) -> None:
        bound = programs.chain.bind(N=4, M=2)
        for size in (1, 1, 3, 60, 2, 60):
            a = numbers((4 * size,), seed=size)
            found = engine.run(bound, {"A": TiledArray.from_numpy(a, size)})["B"].to_numpy()
            assert np.array_equal(found, (a + 1) + 1)

    def test_results_of_one_run_are_inputs_of_the_next(self, engine: Engine) -> None:
        a = numbers((6, 6))
        layout = Layout.regular((6, 6), 2)
        bound = programs.filled.bind(N=3)
        first = engine.run(bound, {"A": TiledArray.from_numpy(a, 2)})
        kept = first.left("B", layout, a.dtype)  # wherever the engine leaves its results
        expected = first["B"].to_numpy()
        del first
        for _ in range(2):
            found = engine.run(bound, {"A": kept})["B"].to_numpy()
            assert np.array_equal(found, np.where(np.kron(np.eye(3), np.ones((2, 2))), 7, 2 * expected))
        assert np.array_equal(kept.to_numpy(), expected)

    # ---- inputs

    @pytest.mark.parametrize("copy", [True, False])
    def test_inputs_are_left_alone(self, engine: Engine, copy: bool) -> None:
        a = np.arange(6.0)
        given = TiledArray.from_numpy(a, 2, copy=copy)
        found = engine.run(programs.chain.bind(N=3, M=5), {"A": given})["B"]
        found.tile((0,))[...] = -1  # results are the caller's
        assert np.array_equal(given.to_numpy(), np.arange(6.0))
        assert np.array_equal(a, np.arange(6.0))

    def test_inputs_are_checked(self, engine: Engine) -> None:
        a = TiledArray.from_numpy(np.zeros(4), 2)
        bound = programs.doubled.bind(N=2)
        with pytest.raises(InputError, match="takes the arrays B; missing: B"):
            engine.run(bound, {})
        with pytest.raises(InputError, match="not known: C"):
            engine.run(bound, {"B": a, "C": a})
        with pytest.raises(InputError, match=r"B\[2\] is read, but B was given as 2 tiles"):
            engine.run(programs.doubled.bind(N=3), {"B": a})

    # ---- errors

    def test_an_error_names_task_tiles_and_line(self, engine: Engine) -> None:
        with pytest.raises(KernelError) as caught:
            engine.run(*self.failing())
        error = caught.value
        assert error.task == (0, (2,))
        assert [repr(key) for key in error.tiles] == ["A[2]", "B[2]"]
        for words in ("testing_quotient", "ZeroDivisionError: a divisor is 0", "kernels.py:", "with i=2"):
            assert words in str(error)
        assert "C[i] = testing_quotient(A[i], B[i])" in error.where

    def test_an_error_of_linear_algebra_keeps_its_kind(self, engine: Engine) -> None:
        a = TiledArray.from_numpy(np.array([1.0, 4.0, -1.0]), 1)
        with pytest.raises(LinAlgError, match="not positive definite") as caught:
            engine.run(programs.rooted.bind(N=3), {"A": a})
        assert isinstance(caught.value, np.linalg.LinAlgError)
        assert caught.value.task == (0, (2,))

    def test_after_an_error_the_engine_is_usable(self, engine: Engine) -> None:
        for _ in range(3):
            with pytest.raises(KernelError):
                engine.run(*self.failing())
        self.test_many_tasks(engine)

    @staticmethod
    def failing() -> tuple[BoundProgram, dict[str, TiledArray]]:
        """A program and inputs on which its third task raises."""
        divisors = np.array([1.0, 2.0, 0.0, 4.0])
        inputs = {"A": TiledArray.from_numpy(np.ones(4), 1), "B": TiledArray.from_numpy(divisors, 1)}
        return programs.divided.bind(N=4), inputs

    # ---- events

    def test_events_tell_what_ran(self, engine: Engine) -> None:
        events = Events()
        found = recorded(events)
        bound = programs.chain.bind(N=3, M=2)
        engine.run(bound, {"A": TiledArray.from_numpy(np.zeros(3), 1)}, events=events)
        count = Counter(type(event) for event in found)
        assert count[JobStarted] == count[JobFinished] == 1
        assert count[TaskReady] == count[TaskStarted] == count[TaskFinished] == bound.count() == 9
        assert len({event.task for event in found if isinstance(event, TaskFinished)}) == 9
        assert len({event.job for event in found}) == 1
        written = [event for event in found if isinstance(event, TileWritten)]
        assert {(event.array, event.index) for event in written if event.array == "B"} == {
            ("B", (i,)) for i in range(3)
        }
        order = {
            (type(event), event.task): place
            for place, event in enumerate(found)
            if isinstance(event, TaskStarted | TaskFinished)
        }
        for task in bound.tasks():
            for parent in bound.parents(task):
                assert order[TaskFinished, parent] < order[TaskStarted, task]

    def test_events_tell_of_failure(self, engine: Engine) -> None:
        events = Events()
        found = recorded(events)
        bound, inputs = self.failing()
        with pytest.raises(KernelError):
            engine.run(bound, inputs, events=events)
        failed = [event for event in found if isinstance(event, TaskFailed)]
        assert [event.task for event in failed] == [(0, (2,))]
        assert "a divisor is 0" in failed[0].error
        assert any(isinstance(event, JobFailed) for event in found)
        assert not any(isinstance(event, JobFinished) for event in found)

    def test_a_listener_that_raises_does_not_end_the_job(self, engine: Engine) -> None:
        events = Events()

        def refuse(event: Event) -> None:
            raise ValueError("no")

        events.subscribe(refuse, TaskFinished)
        bound, a = programs.doubled.bind(N=2), TiledArray.from_numpy(np.ones(2), 1)
        with pytest.warns(RuntimeWarning, match="the job goes on"):
            found = engine.run(bound, {"B": a}, events=events)["D"]
        assert found.to_numpy().tolist() == [2, 2]

    # ---- what callers ask of an engine

    def test_an_engine_says_what_it_is(self, engine: Engine) -> None:
        assert engine.workers >= 1
        assert engine.deterministic in (True, False)
        assert engine.memory is None or engine.memory > 0
        bound = programs.doubled.bind(N=3)
        found = engine.plan(bound, {"B": TiledArray.from_numpy(np.ones(6), 2)})
        assert found is None or found.work.count == bound.count()

    def test_a_task_may_itself_run_programs(self, engine: Engine) -> None:
        a = np.arange(40.0)
        with init(engine):
            found = engine.run(programs.nesting.bind(N=10), {"A": TiledArray.from_numpy(a, 4)})["B"]
        assert np.array_equal(found.to_numpy(), 2 * a)

    # ---- cancellation

    def test_control_c_stops_the_run_and_leaves_the_engine_usable(self, engine: Engine) -> None:
        events = Events()
        found = recorded(events)
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        started = threading.Event()

        def begin(event: Event) -> None:
            if not started.is_set():
                started.set()
                timer.start()

        events.subscribe(begin, TaskStarted)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            engine.run(programs.slow.bind(N=2000), {"A": TiledArray.from_numpy(np.ones(1), 1)}, events=events)
        assert time.monotonic() - begun < 8
        assert any(isinstance(event, JobCancelled) for event in found)
        assert not any(isinstance(event, JobFinished) for event in found)
        self.test_many_tasks(engine)

    # ---- several runs

    def test_runs_may_overlap(self, engine: Engine) -> None:
        results: dict[int, NDArray[Any]] = {}

        def one(number: int) -> None:
            a = np.arange(20.0) * number
            bound = programs.chain.bind(N=10, M=10)
            results[number] = engine.run(bound, {"A": TiledArray.from_numpy(a, 2)})["B"].to_numpy()

        threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            assert np.array_equal(results[number], np.arange(20.0) * number + 10)
