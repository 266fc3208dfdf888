"""Ranges, as a design writes them: ports `1..32`, nodes `n0001..n0020`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from assay.model.errors import Contradiction, Misfit

MOST_NODES = 200_000
"""Nodes of one design: more is a slip of the pen."""


def span(text: str) -> range:
    """Return the numbers of `first..last`, both included."""
    first, last = text.split("..")
    return range(int(first), int(last) + 1)


def _checked(ports: str) -> str:
    if not span(ports) or span(ports)[0] < 1:
        raise Contradiction(Misfit("ASY0084", (), f"{ports!r} holds no ports", "write it as 1..32"))
    return ports


Ports = Annotated[str, Field(pattern=r"^\d{1,5}\.\.\d{1,5}$"), AfterValidator(_checked)]


def spelled_out(entry: str) -> list[str]:
    """Return the names of `n0001..n0020`, or the entry itself. Raises ValueError for ends that do not match."""
    if ".." not in entry:
        return [entry]
    ends = [re.fullmatch(r"(.*?)(\d{1,9})", end) for end in entry.split("..", 1)]
    first, last = ends[0], ends[1]
    if not first or not last or first[1] != last[1] or int(first[2]) > int(last[2]):
        raise ValueError(f"{entry!r} is no range of names; write it as n0001..n0020")
    if int(last[2]) - int(first[2]) >= MOST_NODES:
        raise ValueError(f"{entry!r} is a range of more than {MOST_NODES} names")
    return [f"{first[1]}{number:0{len(first[2])}}" for number in range(int(first[2]), int(last[2]) + 1)]
