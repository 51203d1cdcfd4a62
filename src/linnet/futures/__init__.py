"""Plain Python functions run as futures."""

from linnet.futures.function import ParallelFunction, parallel
from linnet.futures.future import Future, as_completed, map_calls, submit_call
from linnet.futures.purity import pure

__all__ = ["Future", "ParallelFunction", "as_completed", "map_calls", "parallel", "pure", "submit_call"]
