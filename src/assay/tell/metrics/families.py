"""The metric families of assay, as `families.yaml` has them, and what their series hold."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import yaml

from assay.act.loop.pass_log import PASS_EDGES
from assay.model.facts import frozen

FamilyType = Literal["gauge", "counter", "histogram"]
UNITS = ("seconds", "bytes")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
EDGES: dict[str, tuple[float, ...]] = {
    "stay": (10 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY, 90 * DAY),
    "effect": (1.0, 5.0, 15.0, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, DAY),
    "delay": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, MINUTE),
    "pass": PASS_EDGES,
}


@frozen
class Family:
    """One family. `labels` maps each label to what it says; all of its values come from the fleet's own lists.

    `edges` are the upper bounds of a histogram's buckets. `zero`: where nothing is to be counted, it is 0.
    """

    name: str
    type: FamilyType
    help: str
    labels: Mapping[str, str]
    edges: tuple[float, ...] = ()
    zero: bool = False

    @classmethod
    def from_row(cls, name: str, row: Mapping[str, Any]) -> Family:
        """Return the family that a row of the table describes."""
        labels = {label: LABELS[label] for label in row.get("labels", ())}
        edges = EDGES.get(row.get("edges", ""), ())
        return cls(name, row["type"], row["help"], labels, edges, row.get("zero", False))

    @property
    def unit(self) -> str:
        """The base unit with which the name ends, "" for a plain number."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in UNITS else ""


@frozen
class Distribution:
    """A histogram's content: how many values each bucket of `Family.edges` has by itself, more than all edges last."""

    counts: tuple[int, ...]
    total: float


@frozen
class Series:
    """One series of the family of this name: the values of its labels, in their order, and its number now."""

    family: str
    values: tuple[str, ...]
    number: float | Distribution


_TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("families.yaml").read_text())
LABELS: dict[str, str] = _TABLE["labels"]
"""What each label says, for every family that has it."""


FAMILIES = {
    subject: [Family.from_row(name, row) for name, row in rows.items()] for subject, rows in _TABLE["subjects"].items()
}
"""Every family, by subject, in the order of docs/metrics.md."""
FAMILIES_BY_NAME = {family.name: family for family in chain.from_iterable(FAMILIES.values())}
