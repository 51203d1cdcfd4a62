"""Engines: what runs bound programs."""

from linnet.engines.engine import Engine, Outputs
from linnet.engines.threads import Threads, available_cores

__all__ = ["Engine", "Outputs", "Threads", "available_cores"]
