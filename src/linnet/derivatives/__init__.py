"""Derivatives of array programs: rules for the functions of users, and the modes that put them together.

A function is run once on arrays that record what is done with them (`tracing`); every function of users has a
rule (`*_rules`) or is refused by name; `modes` goes through the record forward or back.
"""

from importlib import import_module

from linnet.derivatives.custom import checkpoint, custom_vjp
from linnet.derivatives.modes import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp

CHAPTERS = ("elementwise", "reduction", "shape", "indexing", "product", "linalg", "fft", "further")
"""Of rules, which make themselves known when they are imported."""

for _chapter in CHAPTERS:
    import_module(f"linnet.derivatives.{_chapter}_rules")

__all__ = [
    "CHAPTERS",
    "checkpoint",
    "custom_vjp",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
]
