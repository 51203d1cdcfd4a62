"""Engines driven from one process: a run that follows a plan on a cluster of Ray or Dask."""
