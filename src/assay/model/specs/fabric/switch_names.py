"""The patterns by which switches are named, and ports of nodes labelled: `leaf-su{unit:02}-r{rail+1}`.

A placeholder is a number of the switch, and may have a number added: rails count from 0, so that `{rail+1}` counts from
1. All else counts from 1, and `{unit-1}` from 0. A width (`:02`) writes zeros in front.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

from pydantic import Field

_WIDTH = r"(:0?\d)?"
_RAIL = r"rail(\+\d{1,4})?"
_COUNTED = r"(-1|\+\d{1,4})?"
"""What may be added to a number that counts from 1. No name has a negative number."""
LeafName = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{({_RAIL}|(unit|index){_COUNTED}){_WIDTH}\}})+$")]
SpineName = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{({_RAIL}|(index|pod|number){_COUNTED}){_WIDTH}\}})+$")]
CoreName = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{(index|plane|number){_COUNTED}{_WIDTH}\}})+$")]
HcaLabel = Annotated[str, Field(pattern=rf"^([^{{}}]|\{{{_RAIL}{_WIDTH}\}})*$")]
PLACEHOLDER = re.compile(r"\{(\w+)([+-]\d+)?(?::0?(\d))?\}")
PLACEHOLDER_ORDER = ("index", "unit", "pod", "plane", "rail", "number")


class _Numbers(dict[str, int]):
    """The values of placeholders, also of those with a number added, such as `rail+1`."""

    def __missing__(self, key: str) -> int:
        name, sign, added = re.split("([+-])", key)
        return self[name] + int(sign + added)


def fill_pattern(pattern: str, fields: Mapping[str, int]) -> str:
    """Return the text that a pattern gives. `fields` are the values of its placeholders."""
    return pattern.format_map(_Numbers(fields))


def parse_switch_position(pattern: str, name: str) -> tuple[int, ...] | None:
    """Return the numbers in a name that follows a tier's pattern, as a sort key; None for any other name."""
    found = _compile_name_pattern(pattern).fullmatch(name)
    return tuple(int(found.groupdict().get(number) or 0) for number in PLACEHOLDER_ORDER) if found else None


@lru_cache(64)
def _compile_name_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a tier's name pattern. The first of two equal placeholders is captured.

    Without a text between two numbers, the second one has as many digits as its width says.
    """
    texts = PLACEHOLDER.split(pattern)[::4]
    pieces, known = [re.escape(texts[0])], set[str]()
    for found, text in zip(PLACEHOLDER.finditer(pattern), texts[1:], strict=True):
        digits = rf"\d{{{max(int(found[3] or 1), 1)},}}"
        pieces += [digits if found[1] in known else f"(?P<{found[1]}>{digits})", re.escape(text)]
        known.add(found[1])
    return re.compile("".join(pieces))
