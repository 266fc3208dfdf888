"""The partitions that a port is a member of, against those that the design gives it."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.partitions import FULL


def differing(designed: Iterable[int], found: Iterable[int]) -> list[str]:
    """Return in words how the P_Keys of a port (of 16 bits) differ from the designed ones, a partition each."""
    want, have = set(designed), set(found)
    lacking, beyond = want - have, have - want
    return [_said(base, lacking, beyond) for base in sorted({key % FULL for key in lacking | beyond})]


def _said(base: int, lacking: set[int], beyond: set[int]) -> str:
    wanted, there = ([key for key in (base, base | FULL) if key in keys] for keys in (lacking, beyond))
    if wanted and there:
        return f"is a {_membership(there[0])} member of 0x{base:04x}, designed as a {_membership(wanted[0])} one"
    if wanted:
        return f"is no {' or '.join(map(_membership, wanted))} member of 0x{base:04x}"
    return f"is a {' and '.join(map(_membership, there))} member of 0x{base:04x}, which is not designed"


def _membership(key: int) -> str:
    return "full" if key & FULL else "limited"
