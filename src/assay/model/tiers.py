"""The tiers of a fat tree: leaves, spines, cores; and how their switches are named."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from assay.model.explicit import LinkRate
from assay.model.span import Ports
from assay.model.spec import Strict
from assay.model.switches import Places

Tier = Literal["leaves", "spines", "cores"]
LeafName = Annotated[str, Field(pattern=r"^([^{}]|\{(unit|rail)(:0?\d)?\})+$")]
SpineName = Annotated[str, Field(pattern=r"^([^{}]|\{(index|pod|rail|number)(:0?\d)?\})+$")]
CoreName = Annotated[str, Field(pattern=r"^([^{}]|\{(index|plane|number)(:0?\d)?\})+$")]
PLACEHOLDER = re.compile(r"\{(\w+)(?::0?\d)?\}")
ORDER = ("index", "unit", "pod", "plane", "rail", "number")


class Leaves(Strict):
    """The first tier. `name` may use `{unit}` and `{rail}`; `at` lists unit 1's rails in order, then unit 2's."""

    name: LeafName
    down: Ports
    up: Ports
    at: Places


class Spines(Strict):
    """The second tier; `per_pair` cables join a spine and each leaf of its group.

    All spines are one group, with all leaves; or, where `group` is `rail`, each rail has a group of its own in each
    pod of `pod` units (0: all units). `down` and `up` are told where there are cores. `name` may use `{index}`, or
    `{pod}`, `{rail}` and `{number}` within the group; all but the rail count from 1. `at` lists group by group, pods
    first, then rails. `oversubscription` is a spine's bandwidth down divided by that up, where down is more.
    """

    name: SpineName
    per_pair: int = Field(gt=0)
    group: Literal["all", "rail"] = "all"
    pod: int = Field(default=0, ge=0)
    down: Ports | None = None
    up: Ports | None = None
    oversubscription: float = Field(default=1.0, ge=1)
    at: Places


class Cores(Strict):
    """The third tier; `per_pair` cables join a core and each spine of its plane.

    Plane 1 has the first spine of each group, plane 2 the second, and so on; where `plane` is `all`, there is one
    plane, with all spines. `name` may use `{index}`, or `{plane}` and `{number}` within the plane, all counted from 1.
    `at` lists plane by plane.
    """

    name: CoreName
    per_pair: int = Field(gt=0)
    plane: Literal["number", "all"] = "number"
    at: Places


class Lengths(Strict):
    """Cable lengths in metres, where the design fixes them."""

    node_leaf: float = Field(default=0, ge=0)
    leaf_spine: float = Field(default=0, ge=0)
    spine_core: float = Field(default=0, ge=0)


class Rates(Strict):
    """The rate of one tier's cables, where it is not the design's."""

    node_leaf: LinkRate | None = None
    leaf_spine: LinkRate | None = None
    spine_core: LinkRate | None = None


def place_in(pattern: str, name: str) -> tuple[int, ...] | None:
    """Return what orders a name that follows a tier's pattern among its like; None for any other name."""
    found = _following(pattern).fullmatch(name)
    return tuple(int(found.groupdict().get(one) or 0) for one in ORDER) if found else None


@lru_cache(64)
def _following(pattern: str) -> re.Pattern[str]:
    """Return what the names match that follow a pattern. One that stands twice is read the first time."""
    steps = PLACEHOLDER.split(pattern)
    pieces = [re.escape(step) if number % 2 == 0 else r"\d+" for number, step in enumerate(steps)]
    for number in range(1, len(steps), 2):
        if steps.index(steps[number]) == number:
            pieces[number] = rf"(?P<{steps[number]}>\d+)"
    return re.compile("".join(pieces))
