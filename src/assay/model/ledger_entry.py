"""The stored form of one entry of the ledger, and the ids of entries.

`assay.model.entries` has a class for the content of each entry kind: it names and types what `body` holds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

Context = Literal["fleet", "lab"]
IN_LAB = "lab"
"""The key that the ledger of a lab puts into the body of each of its entries."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry. Appending an id that the ledger has already changes nothing.

    `at` is ISO 8601 UTC; `node` is "" for an entry about no single node; `body` is the stored JSON. The ledger gives
    `seq`, counted from 1.
    """

    id: str
    at: str
    kind: str
    node: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    seq: int = 0

    @property
    def context(self) -> Context:
        """Where it was made: on the real fleet, or in a lab."""
        return "lab" if IN_LAB in self.body else "fleet"


def derive_id(*parts: str) -> str:
    """Return the id that follows from `parts`. The same parts give the same id in every process and version."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
