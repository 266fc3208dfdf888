"""Reads what differs from the reason of a failed check.

Checks and `measure` word a difference in one form, and join several by "; ":

    WHAT SEEN, expected WANTED (FILE:LINE)
    SEEN: WANTED (FILE:LINE), WANTED (FILE:LINE)      for entries of a list that are absent
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_PLACE = r"\((?P<where>[^()\s]+:\d+)\)"
_EXPECTED = re.compile(rf"(?P<what>\S+) (?:is )?(?P<seen>.+), expected (?P<wanted>.+?)(?: {_PLACE})?")
_ABSENT = re.compile(r"(?P<seen>[^:;]+): (?P<entries>.+ \([^()\s]+:\d+\))")
_ENTRY = re.compile(rf"(?P<wanted>.+?) {_PLACE}(?:, |$)")


class ReadDifference(NamedTuple):
    """One difference; `wanted` and `where` are "" where the reason does not name them."""

    what: str
    wanted: str
    seen: str
    where: str = ""


@lru_cache(4096)
def read_differences(check: str, reason: str) -> tuple[ReadDifference, ...]:
    """Return what differs according to a reason. Words in another form are one difference, named by its check."""
    if absent := _ABSENT.fullmatch(reason):
        return tuple(
            ReadDifference(entry["wanted"], entry["wanted"], absent["seen"], entry["where"])
            for entry in _ENTRY.finditer(absent["entries"])
        )
    found = [_EXPECTED.fullmatch(part) for part in reason.split("; ")]
    if not all(found):
        return (ReadDifference(name_of_check(check), "", reason),)
    return tuple(
        ReadDifference(one["what"], one["wanted"], one["seen"], one["where"] or "") for one in found if one is not None
    )


def name_of_check(check: str) -> str:
    """Return a check's name in words: `firmware is the bundles`."""
    return check.rpartition("::test_")[2].replace("_", " ")
