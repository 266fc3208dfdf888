"""Which metrics an expression reads, compared with those that assay has."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain

from assay.tell.metrics.families import FAMILIES

SUFFIXES = {"histogram": ("_bucket", "_count", "_sum")}
NAMES = {
    f"{family.name}{suffix}"
    for family in chain.from_iterable(FAMILIES.values())
    for suffix in SUFFIXES.get(family.type, ("",))
}


def list_unknown_names(expression: str, recorded: Collection[str]) -> list[str]:
    """Return the names in an expression that are neither a metric of assay nor a recorded one."""
    names = re.findall(r"(?:[a-z_0-9]+:)?assay_[a-z_0-9]+(?::[a-z_0-9]+)?", expression)
    return [name for name in names if name not in NAMES and name not in recorded]
