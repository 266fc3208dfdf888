"""What each node may still deliver: batches, bytes and ledger entries. A node that has used it up must wait."""

from __future__ import annotations

import time

from assay.model.specs.intake_limits import NodeDeliveryLimits
from assay.tell.server.tokens_and_rate_limits import RateLimiter

FLOOD_NOTE_S = 3600.0
MIB = 1024 * 1024


class DeliveryBudget:
    """The rates of every node, by the limits of the policy."""

    def __init__(self, limits: NodeDeliveryLimits) -> None:
        self.limits = limits
        self._batches = RateLimiter(limits.batches_at_once, limits.batches_per_second)
        self._bytes = RateLimiter(limits.mib_at_once * MIB, limits.mib_per_minute * MIB / 60)
        self._entries = RateLimiter(limits.entries_at_once, limits.entries_per_minute / 60)
        self._noted: dict[str, float] = {}

    def wait_s(self, node: str) -> float:
        """Count a batch and return 0, or return the seconds until the next one is allowed."""
        return self._batches.wait_s(node)

    def find_flood(self, node: str) -> tuple[float, str]:
        """Return how long a node must wait for what it has delivered, and why; 0 and "" if it need not."""
        if wait := self._bytes.overdrawn_s(node):
            return wait, f"delivers more than {self.limits.mib_per_minute:g} MiB a minute"
        if wait := self._entries.overdrawn_s(node):
            return wait, f"delivers faults for more than {self.limits.entries_per_minute:g} ledger entries a minute"
        return 0.0, ""

    def charge(self, node: str, size: int, entries: int) -> None:
        """Take the bytes and the ledger entries of a batch from what a node may deliver."""
        self._bytes.charge(node, size)
        if entries:
            self._entries.charge(node, entries)

    def is_news(self, node: str) -> bool:
        """Whether a node's flood has not been noted within the last hour; notes it."""
        now = time.monotonic()
        if now - self._noted.get(node, -FLOOD_NOTE_S) < FLOOD_NOTE_S:
            return False
        self._noted[node] = now
        return True
