"""The form of a message: what messages have in common that differ in numbers, addresses and serial numbers."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST_PART = 48
_VARIES = re.compile(
    r"[0-9a-f]{4,8}:[0-9a-f]{2}(?::[0-9a-f]{2})?(?:\.\d)?\b|\b0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{3,}\b"
    r"|\b(?-i:(?=\d*[A-Z])(?=[A-Z]*\d)[A-Z0-9]{2,})\b(?!-[a-z])|(?<![a-z])\d+|\d++(?!_|-[a-z]|[a-z]{2})",
    re.IGNORECASE,
)
"""Addresses, serial numbers, and numbers; not those in a driver's name: `mlx5_core`, `EXT4-fs`."""
_SAME = re.compile(r"#(?:[-:.,/ ]?#)+")


@lru_cache(4096)
def find_message_form(text: str) -> str:
    """Return the form of a message: its words, with `#` for what differs."""
    return _SAME.sub("#", _VARIES.sub("#", " ".join(text.split())))


def name_form(text: str) -> str:
    """Return the form of a message as the name of a part: `nvrm-rminitadapter-failed`."""
    return "-".join(re.findall(r"[a-z]+", find_message_form(text).lower()))[:LONGEST_PART].rstrip("-")
