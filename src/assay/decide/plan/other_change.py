"""A change of something that assay acts by, and that no other section of the plan shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from assay.decide.plan.fleet_revision import FleetRevision

ChangeTopic = Literal[
    "unread", "schedule", "gate", "ticket route", "known issue", "signer", "check", "playbook", "workflow", "suite",
    "setting", "spec",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OtherChange:
    """One change, its `file:line`, and the pools that it touches (all of them, if it is not known which).

    `weakens`: it lets more through than before, or lets somebody do more: a looser gate, a new signer.
    """

    topic: ChangeTopic
    """What it is about."""
    what: str
    """What changes."""
    line: str
    """The file and line."""
    pools: tuple[str, ...]
    """The pools that it touches; all of them if it is not known which."""
    weakens: bool = False


def replace_control_characters(text: str) -> str:
    """Return text that a terminal shows and does not obey."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def list_all_pools(after: FleetRevision) -> tuple[str, ...]:
    """Return every pool of a revision, sorted."""
    return tuple(sorted({node.pool for node in after.fleet.nodes.values()}))


def select_pools(after: FleetRevision, names: Iterable[str]) -> tuple[str, ...]:
    """Return those pools that the revision has; all of them if `names` is empty."""
    every = list_all_pools(after)
    wanted = set(names)
    return tuple(pool for pool in every if pool in wanted) if wanted else every
