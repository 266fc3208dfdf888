"""What a pass works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assay.actions.action import ActionContext
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet, Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.observe.evidence_store import EvidenceStore
from assay.schedulers.scheduler_adapter import SchedulerAdapter, load_scheduler_adapter


@dataclass(frozen=True)
class ControllerContext:
    """One fleet, its history and its evidence. `home` is `.assay/`; `progress` shows one line to whoever waits."""

    fleet: Fleet
    ledger: Ledger
    evidence: EvidenceStore
    clock: Clock
    home: Path
    reports: Path
    workloads: Callable[[Node], SchedulerAdapter] = load_scheduler_adapter
    progress: Callable[[str], None] = lambda _: None

    @property
    def now(self) -> str:
        """The fleet's time as the ledger writes it."""
        return self.clock.now().isoformat()

    @property
    def policy(self) -> LifecyclePolicy:
        """The lifecycle policy of this fleet. Raises Trouble unless there is exactly one."""
        if len(self.fleet.policies) != 1:
            raise AssayError(
                f"a fleet has one lifecycle policy, this one has {len(self.fleet.policies)}",
                where=str(self.fleet.root / "specs" / "lifecycle"),
            )
        return next(iter(self.fleet.policies.values()))

    def make_action_context(self) -> ActionContext:
        """Return what actions work with."""
        return ActionContext(
            self.fleet,
            self.ledger,
            self.clock,
            self.home,
            self.reports,
            self.workloads,
            self.evidence,
            self.progress,
        )
