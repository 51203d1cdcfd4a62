"""Sessions: which engine runs what the user asks for."""

from linnet.session.finding import engine_names, make_engine
from linnet.session.session import Session, current_engine, init

__all__ = ["Session", "current_engine", "engine_names", "init", "make_engine"]
