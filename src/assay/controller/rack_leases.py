"""Several controllers on one ledger: who looks after which racks, and who decides when.

On SQLite there is one controller, kept alone by a file lock. On PostgreSQL each holds the lease `controller/…`, by
which the others know that it lives, and a lease for each slice of racks that falls to it. A controller that ends
without a word loses them after `lease_s`, and the racks fall to those who are left.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache

from assay.controller.context import ControllerContext
from assay.controller.controller_locks import hold_controller_lock
from assay.controller.effects.workflow_queues import keep_engine_running
from assay.ledger.leases_and_locks import current_process
from assay.ledger.store import Ledger, is_shared
from assay.model.errors import AssayError
from assay.model.fleet import Node

LEASE_S = 30.0
RACK_SLICES = 64
CONTROLLER_LEASE_PREFIX = "controller/"


class RackAssignment:
    """This controller's part of the fleet. Alone on its ledger, that is all of it."""

    def select_assigned(self, names: Collection[str]) -> list[str]:
        """Return those of `names` that this controller looks after now."""
        return list(names)

    def renew(self) -> None:
        """Say that this controller lives. A thread does so as well; it does no harm to do it often."""

    def hold_decision_lock(self) -> AbstractContextManager[None]:
        """Return the section in which one controller at a time reads what is newest, decides, and writes it down."""
        return nullcontext()


class LeasedRackAssignment(RackAssignment):
    """One controller's part among several."""

    def __init__(self, ledger: Ledger, nodes: Mapping[str, Node], lease_s: float) -> None:
        self._ledger, self._nodes, self._lease_s = ledger, nodes, lease_s
        self._held: set[str] = set()
        self._renewed_at = 0.0
        self._lock = threading.Lock()
        self.renew()

    def select_assigned(self, names: Collection[str]) -> list[str]:
        """Return the nodes in racks that fall to this controller and that nobody else still holds."""
        if time.monotonic() - self._renewed_at > self._lease_s / 2:
            self.renew()
        held = self._held
        return [name for name in names if name in self._nodes and find_rack_slice(self._nodes[name]) in held]

    def renew(self) -> None:
        """Renew the leases, take what falls to us and is free, give up what falls to others. Raises Trouble."""
        with self._lock:
            at = time.monotonic()
            self._ledger.claim_lease(CONTROLLER_LEASE_PREFIX + current_process(), current_process(), self._lease_s)
            ours = assign_slices(
                current_process(),
                list_live_controllers(self._ledger),
                {find_rack_slice(node) for node in self._nodes.values()},
            )
            for slice_ in self._held - ours:
                self._ledger.release(slice_, current_process())
            self._held = {
                slice_ for slice_ in sorted(ours) if self._ledger.claim_lease(slice_, current_process(), self._lease_s)
            }
            self._renewed_at = at

    def hold_decision_lock(self) -> AbstractContextManager[None]:
        """Return the section that all controllers of this ledger share."""
        return self._ledger.exclusive_section("deciding")

    def release(self) -> None:
        """Give up everything at once, for those who are left."""
        with self._lock, suppress(AssayError):  # a database that is gone ends the leases in time
            for slice_ in self._held:
                self._ledger.release(slice_, current_process())
            self._ledger.release(CONTROLLER_LEASE_PREFIX + current_process(), current_process())


@contextmanager
def hold_rack_assignment(desk: ControllerContext, lease_s: float = LEASE_S) -> Iterator[RackAssignment]:
    """Take part in looking after this fleet while the block lasts; the engine of its effects runs on in it.

    Raises Trouble when another controller works on an SQLite ledger.
    """
    with ExitStack() as stack:
        if is_shared(desk.ledger):
            share: RackAssignment = stack.enter_context(_hold_leases(desk, lease_s))
        else:
            stack.enter_context(hold_controller_lock(desk.home, desk.ledger))
            share = RackAssignment()
        stack.enter_context(keep_engine_running())
        yield share


@contextmanager
def _hold_leases(desk: ControllerContext, lease_s: float) -> Iterator[LeasedRackAssignment]:
    part, over = LeasedRackAssignment(desk.ledger, desk.fleet.nodes, lease_s), threading.Event()

    def beat() -> None:
        while not over.wait(lease_s / 3):
            with suppress(AssayError):  # said by whoever needs the ledger next; without it the leases end
                part.renew()

    thread = threading.Thread(target=beat, name="leases", daemon=True)
    thread.start()
    try:
        yield part
    finally:
        over.set()
        thread.join()
        part.release()


def list_live_controllers(ledger: Ledger) -> set[str]:
    """Return the controllers whose lease runs, this one always among them."""
    return {current_process()} | {
        lease.holder for name, lease in ledger.leases().items() if name.startswith(CONTROLLER_LEASE_PREFIX)
    }


def assign_slices(who: str, living: Collection[str], slices: Collection[str]) -> set[str]:
    """Return the slices that fall to `who`: each to the one of the living that has the highest number with it.

    So each gets about as many, and when one comes or goes only its own move.
    """
    return {one for one in slices if max(living, key=lambda other: _hash_number(other, one)) == who}


def find_rack_slice(node: Node) -> str:
    """Return the lease that a node's rack belongs to: racks are told apart up to some number of them."""
    return f"racks/{_hash_number(node.site, node.rack) % RACK_SLICES}"


@cache
def _hash_number(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8])
