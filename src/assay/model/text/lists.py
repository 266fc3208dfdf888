"""Short lists for people, as ClusterShell, pdsh and Slurm print them: `n[01-04,7],login1` is six nodes.

Long lists are cut, and counts have their noun. PCI addresses get one form: drivers, tools and exporters differ in
domain, case and function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import product

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


def suggest_names(name: str, known: Collection[str], otherwise: str = "") -> str:
    """Return a question with the known names near `name`; if none is near, `otherwise` or the known names."""
    from difflib import get_close_matches  # only after a mistake

    if near := get_close_matches(name, known, n=8, cutoff=0.5):
        folded = fold_names(near)
        return f"did you mean {' or '.join(folded if len(folded) < min(4, len(near)) else near[:3])}?"
    return otherwise or (f"known: {format_list(sorted(known))}" if known else "")


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


def format_nodes(names: Iterable[str]) -> str:
    """Return the count and the names, `16 nodes (n0001..n0016)`, or just the name of a single node."""
    nodes = list(names)
    if len(nodes) == 1:
        return nodes[0]
    return f"{format_count(len(nodes), 'node')} ({format_list(fold_names(nodes), 4)})"


@lru_cache(maxsize=1024)  # one mistake, such as a state left out, makes many alike
def _find_nearest(name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # only after a mistake

    return next(iter(get_close_matches(name, known, n=1)), "")


def _is_successor(name: str, next_name: str) -> bool:
    first, second = _NUMBERED.fullmatch(name), _NUMBERED.fullmatch(next_name)
    if not first or not second or first[1] != second[1] or len(first[2]) != len(second[2]):
        return False
    return int(second[2]) == int(first[2]) + 1


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
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part} is no range")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or (last - first) // step > most:
            raise ValueError(f"{part} is no range of at most {most}")
        yield from (f"{number:0{len(match[1])}}" for number in range(first, last + 1, step))


_ADDRESS = re.compile(
    r"(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{2}):(?P<slot>[0-9a-f]{2})(?:\.(?P<function>[0-7]))?"
)


@lru_cache(maxsize=4096)
def normalize_pci_address(text: str) -> str:
    """Return an address as Linux writes it, `0000:1b:00.0`, "" where the text is none.

    A missing domain is 0000, a missing function 0: the driver writes `0000:1b:00` for a GPU.
    """
    match = _ADDRESS.fullmatch(text.lower().rstrip(":."))
    if match is None:
        return ""
    return f"{int(match['domain'] or '0', 16):04x}:{match['bus']}:{match['slot']}.{match['function'] or 0}"
