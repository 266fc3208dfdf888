"""What a pass works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    progress: Callable[[str], None] = lambda _: None

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
