"""Host patterns of Ansible inventories: `n[0001:0016]`, `rack[a:d]`, `n[01:16:2]`, `n1:2222`."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from math import prod

MAX_HOSTS = 1_000_000
_RANGE = re.compile(r"\[([0-9A-Za-z]*):([0-9A-Za-z]+)(?::([0-9]+))?\]")
_PORT = re.compile(r"^((?:[^:\[\]]|\[[^\[\]]*\])+):(\d+)$")


def expand_host_pattern(pattern: str) -> tuple[list[str], int | None]:
    """Return the host names of a pattern, and its port (None without one).

    Raises ValueError for a malformed range, or more than MAX_HOSTS names.
    """
    port = _PORT.match(pattern)
    if port:
        pattern = port[1]
    pieces = _RANGE.split(pattern)
    literals, bounds = pieces[::4], list(zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True))
    if any("[" in text or "]" in text for text in literals):
        raise ValueError(f"{pattern!r} holds a bracket that is no range; write ranges as n[0001:0016]")
    steps = [_expand_range(*bound) for bound in bounds]
    if prod(len(step) for step in steps) > MAX_HOSTS:
        raise ValueError(f"{pattern!r} stands for more than {MAX_HOSTS} hosts")
    names = [literals[0]]
    for step, literal in zip(steps, literals[1:], strict=True):
        names = [name + text + literal for name in names for text in step]
    return names, int(port[2]) if port else None


class _NumberRange(Sequence[str]):
    """The numbers of a range as text, created on access, so that refusing a huge range costs nothing."""

    def __init__(self, numbers: range, width: int) -> None:
        self.numbers, self.width = numbers, width

    def __len__(self) -> int:
        return min(len(self.numbers), MAX_HOSTS + 1)

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # nobody slices a range of names
        return str(self.numbers[index]).zfill(self.width)


def _expand_range(first: str, last: str, step: str | None) -> Sequence[str]:
    width = int(step or 1)
    if not width:
        raise ValueError("the step of a range cannot be 0")
    if len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
        letters = string.ascii_letters
        found: Sequence[str] = letters[letters.index(first) : letters.index(last) + 1 : width]
    else:
        found = _expand_numbers(first or "0", last, width)
    if not found:
        raise ValueError(f"the range [{first}:{last}] ends before it begins")
    return found


def _expand_numbers(first: str, last: str, step: int) -> Sequence[str]:
    if not (first.isdecimal() and last.isdecimal()) or max(len(first), len(last)) > 12:
        raise ValueError(f"the range [{first}:{last}] needs two numbers, or two letters")
    padded = first.startswith("0") and len(first) > 1
    if padded and len(first) != len(last):
        raise ValueError(f"the range [{first}:{last}] needs ends of the same length, as in [0001:0016]")
    return _NumberRange(range(int(first), int(last) + 1, step), len(first) if padded else 0)
