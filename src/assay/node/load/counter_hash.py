"""Inputs from integers only: the same test and seed give the same bits on every device and in every engine."""

from __future__ import annotations

import hashlib
from typing import Any

GOLDEN_RATIO = 0x9E3779B1
STREAM_STEP = 0x85EBCA77
WORD = 0xFFFFFFFF


def make_key(test: str, seed: int) -> int:
    """Return the 32-bit key of a unit."""
    return int.from_bytes(hashlib.sha256(f"{test}/{seed}".encode()).digest()[:4], "little")


def hash_counters(xp: Any, key: Any, size: int, stream: int = 0) -> Any:
    """Return `size` hashed words (uint32). `key`: a uint32 array of one element. Each `stream` gives other words."""
    word = xp.arange(size, dtype=xp.uint32) * xp.uint32(GOLDEN_RATIO)
    return mix_words(xp, word + key + xp.uint32(stream * STREAM_STEP & WORD))


def mix_words(xp: Any, word: Any) -> Any:
    """Return each word (uint32) mixed, so that any changed bit changes about half of its bits.

    This is MurmurHash3's finalizer (Austin Appleby, public domain).
    """
    word = (word ^ (word >> 16)) * xp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * xp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)
