"""The example fleet with a history on paper: nodes leave service and come back, and customers are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler import NoScheduler, SchedulerAdapter
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.customers import NoticeRules
from assay.observe.evidence_store import EvidenceStore
from assay.observe.last_seen import CONTACTS_FILE, LastSeen
from assay.tell.messages.customer_teller import CustomerTeller
from tests.decide.conftest import Paper

SERVING = tuple(f"n{number:04}" for number in range(3, 21))


@dataclass
class Hall:
    """`rules` is the policy's `notices`; `scheduler` places jobs on all nodes."""

    fleet: Fleet
    home: Path
    rules: Mapping[str, Any] = field(default_factory=dict)
    scheduler: SchedulerAdapter = field(default_factory=lambda: NoScheduler(None))  # type: ignore[arg-type]
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home.mkdir()
        self.ledger = Ledger.open(self.home / "ledger.sqlite")
        self.paper = Paper(self.fleet.policy, self.fleet.fault_catalog, dict(self.fleet.profiles))
        self.teller = CustomerTeller()
        for name in SERVING:
            node = self.fleet.nodes[name]
            self.paper.add(name, pool=node.pool, rack=node.rack, serial=node.serial, profile=node.profile)
        self.paper.later(hours=1)
        LastSeen(self.home / CONTACTS_FILE).record_polls({(name, "probe"): True for name in SERVING}, self.now())

    def now(self) -> datetime:
        """Return the time of the paper: the hall is its own clock."""
        return self.paper.now

    def sleep(self, seconds: float) -> None:
        self.paper.later(seconds=seconds)

    @property
    def context(self) -> ControllerContext:
        policy = self.fleet.policy.model_copy(update={"notices": NoticeRules.model_validate(self.rules)})
        fleet = replace(self.fleet, policies={policy.name: policy})
        evidence = EvidenceStore(self.home / "evidence")
        return ControllerContext(
            fleet, self.ledger, evidence, self, self.home, self.home, lambda _: self.scheduler, self.said.append
        )

    def leaves(self, *names: str) -> None:
        """Let nodes leave service: a GPU is off the bus."""
        for name in names:
            self.paper.fault(name, "gpu.xid.79", "gpu3")
            self.paper.step()
            self.paper.settle(name)

    def returns(self, name: str) -> None:
        """Let a node pass its tests, and come back."""
        self.paper.later(minutes=20)
        self.paper.pass_all(name)
        self.paper.step()
        self.paper.settle(name)

    def tell(self) -> None:
        """Write the history into the ledger, and tell customers once, a minute later."""
        self.ledger.append(*self.paper.log.values())
        self.paper.later(minutes=1)
        self.teller(self.context)

    def crash(self) -> None:
        """Go on as a new process, which knows what the ledger knows."""
        self.teller = CustomerTeller()

    def notes(self, *kinds: str) -> list[LedgerEntry]:
        """Return the ledger's entries about notices."""
        found = self.ledger.entries(kinds=[*kinds] or None)
        return [one for one in found if one.kind.startswith("notice")]
