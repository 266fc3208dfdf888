"""Which nodes the `hosts` of a play select, as far as that can be told without Ansible."""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase

SEPARATOR = re.compile(r"[,:](?![^\[]*\])")
UNTOLD = re.compile(r"\{\{|^~|\[(-?\d+|\d+[:-]\d*)\]$")
"""Templates, regular expressions and positions in a group: who is meant by these is not told from the text."""


def is_selected(pattern: str, host: str, groups: Collection[str]) -> bool | None:
    """Say whether a pattern selects a host that is in these groups, those above included. None: it cannot be told."""
    terms = [term.strip() for term in SEPARATOR.split(pattern) if term.strip()]
    if any(UNTOLD.search(term.lstrip("!&")) for term in terms):
        return None
    names = {host, "all", *groups}
    plain = [term for term in terms if term[0] not in "!&"]
    if plain and not any(_is_one_of(term, names) for term in plain):
        return False
    if any(not _is_one_of(term[1:], names) for term in terms if term[0] == "&"):
        return False
    return not any(_is_one_of(term[1:], names) for term in terms if term[0] == "!")


def _is_one_of(term: str, names: Collection[str]) -> bool:
    return any(fnmatchcase(name, term) for name in names)
