"""The context of the controller: what every pass, worker and route works with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from assay.act.actions.action import ActionContext
from assay.adapters.bmc.session import BmcSessionPool
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@dataclass(frozen=True)
class ControllerContext(ActionContext):
    """One fleet, its ledger, evidence, clock, folders and schedulers, with what a controller derives from them.

    `tellers` are called in each round after the tickets were updated: they deliver them, and tell others what is new.
    `bmc_sessions` keeps sessions with BMCs between passes, in a controller that goes on.
    """

    tellers: tuple[Callable[[ControllerContext], object], ...] = ()
    bmc_sessions: BmcSessionPool | None = None

    @property
    def now(self) -> str:
        """The fleet's time in ISO 8601, as the ledger writes it."""
        return self.clock.now().isoformat()

    def hold_fault_lock(self) -> AbstractContextManager[None]:
        """Return the section in which one process, on any host, reads node states and appends faults to them.

        Faults count their sightings: two processes that start from the same count would lose one. Keep it short.
        """
        return self.ledger.exclusive_section("faults")

    @property
    def policy(self) -> LifecyclePolicy:
        """The fleet's lifecycle policy. Raises AssayError unless there is exactly one."""
        return self.fleet.policy
