"""Digests of arrays: integer sums, exact in any order, so that the order of a reduction changes nothing."""

from __future__ import annotations

from typing import Any

WEIGHT = 2654435761  # Knuth's multiplicative hash; each word has its own odd weight, so that swapped words are seen


def view_words(xp: Any, array: Any) -> Any:
    """Return the bits of an array of 4-byte or 8-byte numbers as a flat array of uint32."""
    return array.reshape(-1).view(xp.uint32).reshape(-1)


def sum_digest(xp: Any, array: Any) -> Any:
    """Return the sum over i of (u_i ^ u_i >> 15) · (2654435761·i | 1) modulo 2^32, u the words of `array`."""
    words = view_words(xp, array)
    weights = (xp.arange(words.size, dtype=xp.uint32) * xp.uint32(WEIGHT)) | xp.uint32(1)
    return xp.sum((words ^ (words >> 15)) * weights, dtype=xp.uint32)


def format_digest(digest: int) -> str:
    """Return 8 hexadecimal digits."""
    return f"{digest & 0xFFFFFFFF:08x}"
