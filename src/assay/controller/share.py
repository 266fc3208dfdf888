"""Several controllers on one ledger: who looks after which racks, and who decides when.

On SQLite there is one controller, kept alone by a file lock. On PostgreSQL each holds the lease `controller/…`, by
which the others know that it lives, and a lease for each slice of racks that falls to it. A controller that ends
without a word loses them after `lease_s`, and the racks fall to those who are left.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache

from assay.controller.desk import Desk
from assay.controller.effects.keep import keeping
from assay.controller.lock import only_controller
from assay.ledger.store import Ledger
from assay.ledger.url import is_shared
from assay.model.errors import Trouble
from assay.model.fleet import Node

LEASE_S = 30.0
SLICES = 64
CONTROLLER = "controller/"


class Share:
    """This controller's part of the fleet. Alone on its ledger, that is all of it."""

    def mine(self, names: Collection[str]) -> list[str]:
        """Return those of `names` that this controller looks after now."""
        return list(names)

    def renew(self) -> None:
        """Say that this controller lives. A thread does so as well; it does no harm to do it often."""

    def deciding(self) -> AbstractContextManager[None]:
        """Return the section in which one controller at a time reads what is newest, decides, and writes it down."""
        return nullcontext()


class PartOf(Share):
    """One controller's part among several."""

    def __init__(self, ledger: Ledger, nodes: Mapping[str, Node], lease_s: float) -> None:
        self._ledger, self._nodes, self._lease_s = ledger, nodes, lease_s
        self._held: set[str] = set()
        self._renewed_at = 0.0
        self._lock = threading.Lock()
        self.renew()

    def mine(self, names: Collection[str]) -> list[str]:
        """Return the nodes in racks that fall to this controller and that nobody else still holds."""
        if time.monotonic() - self._renewed_at > self._lease_s / 2:
            self.renew()
        held = self._held
        return [name for name in names if name in self._nodes and slice_of(self._nodes[name]) in held]

    def renew(self) -> None:
        """Renew the leases, take what falls to us and is free, give up what falls to others. Raises Trouble."""
        with self._lock:
            at = time.monotonic()
            self._ledger.claim(CONTROLLER + me(), me(), self._lease_s)
            ours = falling_to(me(), living(self._ledger), {slice_of(node) for node in self._nodes.values()})
            for slice_ in self._held - ours:
                self._ledger.let_go(slice_, me())
            self._held = {slice_ for slice_ in sorted(ours) if self._ledger.claim(slice_, me(), self._lease_s)}
            self._renewed_at = at

    def deciding(self) -> AbstractContextManager[None]:
        """Return the section that all controllers of this ledger share."""
        return self._ledger.exclusively("deciding")

    def leave(self) -> None:
        """Give up everything at once, for those who are left."""
        with self._lock, suppress(Trouble):  # a database that is gone ends the leases in time
            for slice_ in self._held:
                self._ledger.let_go(slice_, me())
            self._ledger.let_go(CONTROLLER + me(), me())


@contextmanager
def shared(desk: Desk, lease_s: float = LEASE_S) -> Iterator[Share]:
    """Take part in looking after this fleet while the block lasts; the engine of its effects runs on in it.

    Raises Trouble when another controller works on an SQLite ledger.
    """
    with ExitStack() as stack:
        if is_shared(desk.ledger):
            share: Share = stack.enter_context(_part(desk, lease_s))
        else:
            stack.enter_context(only_controller(desk.home, desk.ledger))
            share = Share()
        stack.enter_context(keeping())
        yield share


@contextmanager
def _part(desk: Desk, lease_s: float) -> Iterator[PartOf]:
    part, over = PartOf(desk.ledger, desk.fleet.nodes, lease_s), threading.Event()

    def beat() -> None:
        while not over.wait(lease_s / 3):
            with suppress(Trouble):  # said by whoever needs the ledger next; without it the leases end
                part.renew()

    thread = threading.Thread(target=beat, name="leases", daemon=True)
    thread.start()
    try:
        yield part
    finally:
        over.set()
        thread.join()
        part.leave()


@cache
def me() -> str:
    """Return this process's name among controllers, which no other process ever has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def living(ledger: Ledger) -> set[str]:
    """Return the controllers whose lease runs, this one always among them."""
    return {me()} | {lease.holder for name, lease in ledger.holders().items() if name.startswith(CONTROLLER)}


def falling_to(who: str, living: Collection[str], slices: Collection[str]) -> set[str]:
    """Return the slices that fall to `who`: each to the one of the living that has the highest number with it.

    So each gets about as many, and when one comes or goes only its own move.
    """
    return {one for one in slices if max(living, key=lambda other: _number(other, one)) == who}


def slice_of(node: Node) -> str:
    """Return the lease that a node's rack belongs to: racks are told apart up to some number of them."""
    return f"racks/{_number(node.site, node.rack) % SLICES}"


@cache
def _number(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8])
