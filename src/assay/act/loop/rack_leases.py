"""Which controller looks after which racks, where several controllers share a ledger.

An SQLite ledger has one controller, which a file lock keeps alone. On PostgreSQL each controller holds a lease
`controller/…`, which shows the others that it lives, and one lease for each slice of racks that falls to it. The
racks of a controller that dies fall to the others once its leases end, after `lease_s` seconds.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from threading import Lock

from assay.act.effects.workflow_queues import keep_engine_running
from assay.act.loop.context import ControllerContext
from assay.ledger.leases import LeaseRenewal, current_process, hold_controller_lock
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.node import Node

LEASE_S = 30.0
RACK_SLICES = 64
CONTROLLER_LEASE_PREFIX = "controller/"
DECIDING = "deciding"
"""The section in which controllers decide, and in which what they decide on is withdrawn."""


@contextmanager
def hold_rack_assignment(context: ControllerContext, lease_s: float = LEASE_S) -> Iterator[RackAssignment]:
    """Take part in looking after this fleet while the block lasts; the engine of effects keeps running in it.

    Raises AssayError if another controller works on an SQLite ledger.
    """
    with ExitStack() as stack:
        assignment = WHOLE_FLEET
        if context.ledger.is_shared:
            assignment = leased = LeasedRackAssignment(context.ledger, context.fleet.nodes, lease_s)
            stack.callback(leased.release)
            stack.enter_context(LeaseRenewal(leased.renew, lease_s / 3))
        else:
            stack.enter_context(hold_controller_lock(context.home, context.ledger))
        stack.enter_context(keep_engine_running())
        yield assignment


class RackAssignment:
    """The part of the fleet that this controller looks after: all of it, where it is alone on its ledger."""

    def select_assigned(self, names: Collection[str]) -> list[str]:
        """Return those of the nodes `names` that this controller looks after now."""
        return list(names)

    def replace_nodes(self, nodes: Mapping[str, Node]) -> None:
        """Share these nodes from now on: the fleet was read again."""

    def hold_decision_lock(self) -> AbstractContextManager[None]:
        """Return the section in which one controller at a time reads the newest entries, decides and appends.

        Keep it short: no other controller of this ledger decides meanwhile.
        """
        return nullcontext()


WHOLE_FLEET = RackAssignment()


class LeasedRackAssignment(RackAssignment):
    """The part of one controller among several: the racks whose leases it holds."""

    def __init__(self, ledger: Ledger, nodes: Mapping[str, Node], lease_s: float) -> None:
        self._ledger, self._nodes, self._lease_s = ledger, nodes, lease_s
        self._held: set[str] = set()
        self._renewed_at = 0.0
        self._lock = Lock()
        self.renew()

    def select_assigned(self, names: Collection[str]) -> list[str]:
        """Return the nodes in racks that fall to this controller and whose lease no other controller still holds."""
        if not self._renewed_at or time.monotonic() - self._renewed_at > self._lease_s / 2:
            self.renew()
        held = self._held
        return [name for name in names if name in self._nodes and find_rack_slice(self._nodes[name]) in held]

    def replace_nodes(self, nodes: Mapping[str, Node]) -> None:
        """Share these nodes from now on; the next selection claims the racks that are new."""
        if nodes is not self._nodes:
            self._nodes, self._renewed_at = nodes, 0.0

    def renew(self) -> None:
        """Renew the leases, claim free slices that fall to us, release those that fall to others. Raises AssayError."""
        with self._lock:
            at, us = time.monotonic(), current_process()
            self._ledger.claim_lease(CONTROLLER_LEASE_PREFIX + us, us, self._lease_s)
            slices = {find_rack_slice(node) for node in self._nodes.values()}
            ours = assign_slices(us, list_live_controllers(self._ledger), slices)
            for rack_slice in self._held - ours:
                self._ledger.release(rack_slice, us)
            self._held = {
                rack_slice for rack_slice in sorted(ours) if self._ledger.claim_lease(rack_slice, us, self._lease_s)
            }
            self._renewed_at = at

    def hold_decision_lock(self) -> AbstractContextManager[None]:
        """Return the section that all controllers of this ledger share."""
        return self._ledger.exclusive_section(DECIDING)

    def release(self) -> None:
        """Release every lease at once, so that the other controllers need not wait for its end."""
        with self._lock, suppress(AssayError):  # without a database the leases end by themselves
            for rack_slice in self._held:
                self._ledger.release(rack_slice, current_process())
            self._ledger.release(CONTROLLER_LEASE_PREFIX + current_process(), current_process())


def list_live_controllers(ledger: Ledger) -> set[str]:
    """Return the controllers whose lease has not ended, and this process."""
    return {current_process()} | {
        lease.holder for name, lease in ledger.leases().items() if name.startswith(CONTROLLER_LEASE_PREFIX)
    }


def assign_slices(controller: str, live: Collection[str], slices: Collection[str]) -> set[str]:
    """Return the slices of `controller`, by rendezvous hashing: each slice falls to the live one with the highest hash.

    All get about as many. When a controller comes or goes, only its own slices move.
    """
    return {
        rack_slice
        for rack_slice in slices
        if max(live, key=lambda other: _hash_number(other, rack_slice)) == controller
    }


def find_rack_slice(node: Node) -> str:
    """Return the name of the lease for a node's rack. Racks share one lease where there are more than RACK_SLICES."""
    return f"racks/{_hash_number(node.site, node.rack) % RACK_SLICES}"


@cache
def _hash_number(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8])
