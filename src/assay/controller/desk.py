"""What a pass works with, and what it tells while it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from assay.actions.action import Context
from assay.actions.workloads import Workloads, workloads_of
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node
from assay.model.policy import LifecyclePolicy
from assay.observe.store import EvidenceStore


@dataclass(frozen=True)
class Desk:
    """One fleet, its history and its evidence. `home` is `.assay/`; `progress` shows one line to whoever waits."""

    fleet: Fleet
    ledger: Ledger
    evidence: EvidenceStore
    clock: Clock
    home: Path
    reports: Path
    workloads: Callable[[Node], Workloads] = workloads_of
    progress: Callable[[str], None] = lambda line: None  # noqa: E731, ARG005

    @property
    def now(self) -> str:
        """The fleet's time as the ledger writes it."""
        return self.clock.now().isoformat()

    @property
    def policy(self) -> LifecyclePolicy:
        """The lifecycle policy of this fleet. Raises Trouble unless there is exactly one."""
        if len(self.fleet.policies) != 1:
            raise Trouble(
                f"a fleet has one lifecycle policy, this one has {len(self.fleet.policies)}",
                where=str(self.fleet.root / "specs" / "lifecycle"),
            )
        return next(iter(self.fleet.policies.values()))

    def context(self) -> Context:
        """Return what actions work with."""
        return Context(
            self.fleet,
            self.ledger,
            self.clock,
            self.home,
            self.reports,
            self.workloads,
            self.evidence,
            self.progress,
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a pass changed, and why. `kind` is the ledger entry's."""

    node: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.node or 'fleet'}: {self.text}"


@dataclass
class PassReport:
    """What one pass did: `changes` in order, the runs it recorded, and what it could not see."""

    at: str
    changes: list[Change] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    silent: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Whether nothing changed."""
        return not self.changes
