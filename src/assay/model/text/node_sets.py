"""Folded names of nodes, as ClusterShell, pdsh and Slurm print them: `n[01-04,7],login1` is six nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

NODE_SET = r"[A-Za-z0-9][\w.-]*(?:\[[\d,/-]+\][\w.-]*)*(?:,[A-Za-z0-9][\w.-]*(?:\[[\d,/-]+\][\w.-]*)*)*"
"""A regular expression for a set of nodes."""
MAX_NODES = 10_000
_NAME = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18})(?:/(\d{1,9}))?)?")


def expand_node_set(text: str, most: int = MAX_NODES) -> tuple[str, ...]:
    """Return the nodes of a set, in order. Raises ValueError for a text that is no set, or one of more than `most`."""
    nodes: list[str] = []
    if text and not re.fullmatch(NODE_SET, text):
        raise ValueError(f"{text} is no set of nodes")
    for name in _NAME.findall(text):
        parts = re.split(r"\[([^\]]*)\]", name)
        numbers = [list(_expand_ranges(ranges, most)) for ranges in parts[1::2]]
        for mix in product(*numbers):
            nodes.append("".join(a + b for a, b in zip(parts[::2], (*mix, ""), strict=True)))
            if len(nodes) > most:
                raise ValueError(f"{text} is more than {most} nodes")
    return tuple(nodes)


def expand_names(text: str) -> tuple[str, ...]:
    """Return the nodes of a set, in order. What is no set, or one of more than `MAX_NODES`, is one name."""
    try:
        return expand_node_set(text) or (text,)
    except ValueError:
        return (text,)


def _expand_ranges(text: str, most: int) -> Iterator[str]:
    """Yield the numbers of `01-04,7`, each as wide as its range's first. Raises ValueError."""
    for one in text.split(","):
        found = _RANGE.fullmatch(one)
        if found is None:
            raise ValueError(f"{one} is no range")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or step < 1 or (last - first) // step > most:
            raise ValueError(f"{one} is no range of at most {most}")
        yield from (f"{number:0{len(found[1])}}" for number in range(first, last + 1, step))
