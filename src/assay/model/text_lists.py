"""How names of nodes are written: short where they follow each other, and never too many."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*?)(\d+)$")


def fold_names(names: Iterable[str]) -> list[str]:
    """Return names with runs folded: `n0001..n0016`. A run is three or more of one prefix and width."""
    runs: list[list[str]] = []
    for name in sorted(names):
        if runs and _is_successor(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [one for run in runs for one in (run if len(run) < 3 else [f"{run[0]}..{run[-1]}"])]


def format_list(items: Iterable[str], most: int = 8) -> str:
    """Return items with commas, at most so many, and how many more there are."""
    every = list(items)
    shown = every if len(every) <= most else [*every[: most - 1], f"and {len(every) - most + 1} more"]
    return ", ".join(shown)


def format_count(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_nodes(names: Iterable[str], most: int = 4) -> str:
    """Return `16 nodes (n0001..n0016)`, or the name of one."""
    every = list(names)
    return (
        every[0] if len(every) == 1 else f"{format_count(len(every), 'node')} ({format_list(fold_names(every), most)})"
    )


def _is_successor(one: str, other: str) -> bool:
    first, second = _NUMBERED.fullmatch(one), _NUMBERED.fullmatch(other)
    if not first or not second or first[1] != second[1] or len(first[2]) != len(second[2]):
        return False
    return int(second[2]) == int(first[2]) + 1
