"""What a metric family is: its name, type, labels and unit, by Prometheus' rules for names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FamilyType = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `labels` maps each label to what it says; all of its values come from the fleet's own lists.

    Units are base units; `unit` is "" for a plain number. `edges` are the upper bounds of a histogram's buckets.
    """

    name: str
    type: FamilyType
    help: str
    labels: Mapping[str, str]
    unit: str = ""
    edges: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram's content: how many values each bucket of `Family.edges` has by itself, more than all edges last."""

    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a family: the values of its labels, in their order, and its number now."""

    family: Family
    values: tuple[str, ...]
    number: float | Distribution


LABELS = {
    "action": "kind of change, such as `cordon`",
    "blocker": "what a pending decision waits for: `jobs`, `limits`, `breaker`, `rack`, `scheduler` or `turn`",
    "commit": "commit of the fleet repository, `-dirty` if files differ from it",
    "family": "file of the checks, such as `production/test_gpu`",
    "fault": "fault class of the catalogue",
    "from_state": "state before",
    "in_service": "`true` in the states in which customers use nodes, else `false`",
    "node": "node",
    "pool": "pool",
    "phase": "phase",
    "progress": "`waiting`, `out` (ordered out of service) or `proven`",
    "queue": "queue of DBOS, one for each pool",
    "reason": "policy rule that brought the nodes there; `person`, `rollout` or `inventory`",
    "result": "how it ended",
    "rule": "rule that paused it, `person` for a person",
    "schedule": "schedule",
    "severity": "severity of the fault or ticket",
    "source": "`agent`, `probe` or `bmc`",
    "stage": "`once` (all of `assay reconcile --once`), `observe`, `decide`, `act`, `tickets` or `jobs`",
    "state": "state of the policy",
    "status": "how far it is",
    "target": "pool or fabric, `ledger` for seals",
    "to_state": "state after",
    "verdict": "`pass`, `fail`, `error` or `skip`",
    "version": "version of assay",
}
"""What each label says, for every family that has it."""


def gauge(name: str, text: str, *labels: str, unit: str = "") -> Family:
    """Return a family of values that go up and down."""
    return Family(name, "gauge", text, _describe(labels), unit)


def counter(name: str, text: str, *labels: str, unit: str = "") -> Family:
    """Return a family of values that only grow, over all of the ledger's history."""
    return Family(f"{name}_total", "counter", text, _describe(labels), unit)


def histogram(name: str, text: str, *labels: str, edges: tuple[float, ...], unit: str = "seconds") -> Family:
    """Return a family of distributions, over all of the ledger's history."""
    return Family(name, "histogram", text, _describe(labels), unit, edges)


def _describe(labels: tuple[str, ...]) -> dict[str, str]:
    return {label: LABELS[label] for label in labels}
