"""Slurm's short form of many host names: `gpu[01-03,7],login1`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

_ENTRY = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
MOST = 1_000_000


def hosts(text: str) -> tuple[str, ...]:
    """Return each host name of a list, in its order. ValueError for ranges that nobody can mean."""
    return tuple(name for entry in _ENTRY.findall(text) for name in _names(entry))


def _names(entry: str) -> Iterator[str]:
    parts = [tuple(_numbers(inside)) if inside else (plain,) for inside, plain in _PART.findall(entry)]
    return ("".join(chosen) for chosen in product(*parts))


def _numbers(inside: str) -> Iterator[str]:
    for one in inside.split(","):
        first, dash, last = one.partition("-")
        if not dash:
            yield first
        elif int(last) - int(first) > MOST:
            raise ValueError(f"{one} is no range of hosts")
        else:
            yield from (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
