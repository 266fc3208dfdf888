"""The partitions that a port is a member of, against those that the design gives it."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.partitions import FULL


def differing(designed: Iterable[int], found: Iterable[int]) -> list[str]:
    """Return in words which P_Keys (of 16 bits) are lacking, and which are there beside the design."""
    want, have = set(designed), set(found)
    lacking = [f"lacks {called(key)}" for key in sorted(want - have)]
    return lacking + [f"has {called(key)}, which is not designed" for key in sorted(have - want)]


def called(key: int) -> str:
    """Return a P_Key as people write it: `0x0012 (full)`."""
    return f"0x{key % FULL:04x} ({'full' if key & FULL else 'limited'})"
