"""Folded names of hosts, as ClusterShell, pdsh and Slurm print them: `n[01-04,7],login1` is six hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

NODE_SET = r"[A-Za-z0-9][\w.-]*(?:\[[\d,/-]+\][\w.-]*)*(?:,[A-Za-z0-9][\w.-]*(?:\[[\d,/-]+\][\w.-]*)*)*"
"""A regular expression for a set of hosts."""
MAX_HOSTS = 10_000
_NAME = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18})(?:/(\d{1,9}))?)?")


def expand_node_set(text: str) -> tuple[str, ...]:
    """Return the hosts of a set, in order. A text that is no set, or one of more than `MAX_HOSTS`, is one host."""
    hosts: list[str] = []
    if not re.fullmatch(NODE_SET, text):
        return (text,)
    try:
        for name in _NAME.findall(text):
            parts = re.split(r"\[([^\]]*)\]", name)
            numbers = [list(_expand_ranges(ranges)) for ranges in parts[1::2]]
            for mix in product(*numbers):
                hosts.append("".join(a + b for a, b in zip(parts[::2], (*mix, ""), strict=True)))
                if len(hosts) > MAX_HOSTS:
                    return (text,)
    except ValueError:
        return (text,)
    return tuple(hosts)


def _expand_ranges(text: str) -> Iterator[str]:
    """Yield the numbers of `01-04,7`, each as wide as its range's first. Raises ValueError."""
    for one in text.split(","):
        found = _RANGE.fullmatch(one)
        if found is None:
            raise ValueError(f"no range: {one}")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or step < 1 or (last - first) // step > MAX_HOSTS:
            raise ValueError(f"no range: {one}")
        yield from (f"{number:0{len(found[1])}}" for number in range(first, last + 1, step))
