"""The shipped suites catch engines that are wrong."""

from __future__ import annotations

import pytest

from linnet.engines import Threads
from linnet.testing.engines import EngineSuite


class Forgetful:
    """An engine that drops a constant into every result."""

    def run(self, bound, inputs, *, out=None, events=None):
        made = Threads(1).run(bound, inputs, out=out)
        for name in made:
            for tile in made.tiles(name).values():
                tile[...] = 0
        return made

    def zeros(self, shape, dtype):
        return Threads(1).zeros(shape, dtype)


@pytest.mark.parametrize(
    "name",
    [
        "test_ranges_in_and_out",
        "test_several_results_of_one_task",
        "test_tiles_nobody_writes_are_the_fill",
        "test_tables_scalars_and_attributes",
        "test_two_programs_as_one",
        "test_many_tasks",
        "test_results_in_a_place_of_their_own",
        "test_events_tell_what_ran",
        "test_events_tell_of_failure",
        "test_runs_may_overlap",
    ],
)
def test_a_wrong_engine_fails(name):
    with pytest.raises(AssertionError):
        getattr(EngineSuite(), name)(Forgetful())
