"""Slurm's short form of many host names, such as `gpu[01-03,7],login1`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
MAX_HOST_RANGE = 1_000_000


def expand_host_list(text: str) -> tuple[str, ...]:
    """Return each host name of a list, in its order. Raises ValueError for ranges of over MAX_HOST_RANGE hosts."""
    return tuple(name for entry in _ENTRY.findall(text) for name in _expand_entry(entry))


def _expand_entry(entry: str) -> Iterator[str]:
    parts = [tuple(_expand_range(inside)) if inside else (plain,) for inside, plain in _PART.findall(entry)]
    return ("".join(chosen) for chosen in product(*parts))


def _expand_range(inside: str) -> Iterator[str]:
    for item in inside.split(","):
        first, dash, last = item.partition("-")
        if not dash:
            yield first
        elif int(last) - int(first) > MAX_HOST_RANGE:
            raise ValueError(f"{item} is no range of hosts")
        else:
            yield from (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
