"""What the role of an array asks of the rest of the program: the part of `check` about parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from linnet.programs.diagnostics import Findings
from linnet.programs.grammar import ArrayRole, At, Out, Temp, fill_of

Ranks = dict[str, tuple[int, At | None]]
"""How many indices each array has that is used, and where it was first seen."""


def check_roles(
    arrays: Mapping[str, ArrayRole], ranks: Ranks, written: Collection[str] | None, findings: Findings
) -> None:
    """Add what is wrong with the roles; `written` is None where a part of the program could not be read."""
    for name, role in arrays.items():
        if isinstance(role, Out) and written is not None and name not in written:
            findings.add(f"output {name!r} is never written", "write its tiles, or remove the parameter")
        _check_fill(name, role, name in ranks and written is not None and name not in written, findings)
        if isinstance(role, Temp) and role.of is not None:
            _check_versions(name, role.of, arrays, ranks, findings)


def _check_fill(name: str, role: ArrayRole, only_read: bool, findings: Findings) -> None:
    fill = fill_of(role)
    if fill is None:
        return
    if isinstance(fill, int) and not -(2**63) <= fill < 2**64:
        findings.add(f"the fill {fill} of {name!r} is too large", "a fill fits 64 bits; write a float")
    if not isinstance(role, Temp):
        return
    if role.of is not None:
        findings.add(
            f"{name!r} is Temp({role.of!r}, fill={fill!r}): an array with versions has no fill",
            f"write ln.Temp({role.of!r}), or ln.Temp(fill={fill!r})",
        )
    elif only_read:
        findings.add(
            f"{name!r} is read and has a fill, but is never written, so that its tiles have no shape",
            "write some of its tiles, or remove the parameter",
        )


def _check_versions(
    name: str, base: str, arrays: Mapping[str, ArrayRole], ranks: Ranks, findings: Findings
) -> None:
    if base not in arrays:
        findings.add(
            f"{name!r} is Temp({base!r}), but there is no array {base!r}", "name one of the program's arrays"
        )
    elif name in ranks:
        rank, at = ranks[name]
        expected = ranks.setdefault(base, (rank - 1, at))[0]
        if rank != expected + 1:
            findings.add(
                f"{name!r} has {rank} indices, but its version 0 is {base!r}, which has {expected}",
                f"{name}[0, ...] is {base}[...]: give {name} {expected + 1} indices",
                at,
            )
