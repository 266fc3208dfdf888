"""Short lists for people: node names folded into ranges, long lists cut, and counts with their noun."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_NUMBERED = re.compile(r"(.*?)(\d+)$")
_DIGITS = re.compile(r"(\d+)")


def sort_naturally(name: str) -> list[tuple[int, str]]:
    """Return a key by which `r2` comes before `r10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name)]


def fold_names(names: Iterable[str]) -> list[str]:
    """Return sorted names with ranges folded: `n0001..n0016`. A range has at least three names of one form."""
    runs: list[list[str]] = []
    for name in sorted(names):
        if runs and _is_successor(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [text for run in runs for text in (run if len(run) < 3 else [f"{run[0]}..{run[-1]}"])]


def format_list(items: Iterable[str], most: int = 8) -> str:
    """Return the items separated by commas, at most `most`, then how many more there are."""
    listed = list(items)
    shown = listed if len(listed) <= most else [*listed[: most - 1], f"and {len(listed) - most + 1} more"]
    return ", ".join(shown)


def suggest_nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean X?` with the known name nearest to an unknown one, "" if none is near."""
    near = _find_nearest(name, tuple(known))
    return f"did you mean {near}?" if near else ""


def escape_surrogates(text: str) -> str:
    r"""Return text that can be stored and printed: an unpaired surrogate is written as `\udc80`."""
    return text.encode(errors="backslashreplace").decode()


def format_percent(share: float) -> str:
    """Return a share as a percentage with two digits; it reads 0 or 100 only where it is exactly that."""
    rounded = min(max(100 * share, 0.01), 99.99) if 0 < share < 1 else 100 * share
    return f"{rounded:.2f}".rstrip("0").rstrip(".") + " %"


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_nodes(names: Iterable[str], most: int = 4) -> str:
    """Return the count and the names, `16 nodes (n0001..n0016)`, or just the name of a single node."""
    nodes = list(names)
    if len(nodes) == 1:
        return nodes[0]
    return f"{format_count(len(nodes), 'node')} ({format_list(fold_names(nodes), most)})"


@lru_cache(maxsize=1024)  # one mistake, such as a state left out, makes many alike
def _find_nearest(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only after a mistake

    return next(iter(get_close_matches(name, known, n=1)), "")


def _is_successor(name: str, next_name: str) -> bool:
    first, second = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(next_name)
    if not first or not second or first[1] != second[1] or len(first[2]) != len(second[2]):
        return False
    return int(second[2]) == int(first[2]) + 1
