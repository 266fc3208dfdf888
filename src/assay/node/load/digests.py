"""Inputs and digests of arrays, from integers only: the same test and seed give the same bits on every device.

Digests are sums, exact in any order, so that the order of a reduction changes nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any

GOLDEN_RATIO = 0x9E3779B1
STREAM_STEP = 0x85EBCA77
WORD = 0xFFFFFFFF
PLACE = 2654435761  # odd, so that each place counts differently: swapped words are seen


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


def view_words(xp: Any, array: Any) -> Any:
    """Return the bits of an array of 4-byte or 8-byte numbers as a flat array of uint32."""
    return array.reshape(-1).view(xp.uint32).reshape(-1)


def sum_digest(xp: Any, array: Any) -> Any:
    """Return the sum over i of mix(u_i ^ PLACE·i) modulo 2^32, u the words of `array`.

    Words are mixed before they are added. With weights in place of mixing, flips of one bit in words at equal distances
    (which GPU faults make) cancel in about 3 of 100 cases.
    """
    words = view_words(xp, array)
    places = xp.arange(words.size, dtype=xp.uint32) * xp.uint32(PLACE)
    return xp.sum(mix_words(xp, words ^ places), dtype=xp.uint32)


def format_digest(digest: int) -> str:
    """Return 8 hexadecimal digits."""
    return f"{digest & 0xFFFFFFFF:08x}"
