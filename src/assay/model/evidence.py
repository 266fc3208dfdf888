"""Evidence: every reading of one node at one time, by channel, stored whole and addressed by its hash.

Document: `{"schema": "assay.evidence/1", "node": "n0007", "at": ISO 8601 UTC,
"channels": {"probe": TREE, "bmc": TREE, "active": TREE}}` where TREE is a nested object whose leaves are
readings (`{"value": 16}`, `{"failed": "…"}`). A leaf may stand for a whole branch: a probe that timed out
leaves `"probe": {"failed": "no answer within 5 s"}`, and everything below it reads failed for that reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from assay.model.reading import Reading, as_reading

SCHEMA = "assay.evidence/1"

EPOCH, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)
"""Between these, times are believed and can be counted with."""

OF_FABRIC = "fabric-"
"""How the name begins under which a fabric's evidence is kept."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One document of readings from one node."""

    node: str
    at: datetime
    channels: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the document as plain JSON data."""
        return {"schema": SCHEMA, "node": self.node, "at": self.at.isoformat(), "channels": self.channels}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Evidence:
        """Read a document back. Raises ValueError for another schema, and for what no document says."""
        if document.get("schema") != SCHEMA:
            raise ValueError(f"not an evidence document: schema is {document.get('schema')!r}, expected {SCHEMA!r}")
        node, at, channels = document["node"], datetime.fromisoformat(document["at"]), document["channels"]
        if not isinstance(node, str) or not isinstance(channels, dict):
            raise ValueError("it does not say whose it is, or holds no channels")
        if at.tzinfo is None or not EPOCH <= at <= LAST:
            raise ValueError(f"{document['at']} is no time with its zone since 1970")
        return cls(node, at, channels)

    def read(self, *path: str) -> Reading:
        """Return the reading at `path` (channel first). A branch reads as a value; a missing step is absent."""
        return read(self.channels, path)

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON, which names the document for ever."""
        return hashlib.sha256(canonical(self.as_json())).hexdigest()


def canonical(document: Any) -> bytes:
    """Return the one byte form of JSON data: sorted keys, no spaces, UTF-8.

    Raises ValueError for what JSON cannot say: numbers without an end, halves of letters.
    """
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return plain.encode()


def read(tree: Any, path: Sequence[str]) -> Reading:
    """Walk `path` down `tree`; the first leaf met on the way answers for everything below it."""
    for depth, step in enumerate(path):
        reading = as_reading(tree)
        if reading is not None and reading.kind != "value":
            return reading
        branch = reading.value if reading is not None else tree
        if not isinstance(branch, Mapping) or step not in branch:
            return Reading("absent", reason=f"{'.'.join(path[: depth + 1])} is not in the evidence")
        tree = branch[step]
    return as_reading(tree) or Reading("value", value=tree)
