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

from assay.model.reading import EvidenceReading, parse_reading

EVIDENCE_SCHEMA = "assay.evidence/1"

EARLIEST_TIME, LATEST_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)
"""Between these, times are believed and can be counted with."""

FABRIC_EVIDENCE_PREFIX = "fabric-"
"""How the name begins under which a fabric's evidence is kept."""


@dataclass(frozen=True, slots=True)
class EvidenceDocument:
    """One document of readings from one node."""

    node: str
    at: datetime
    channels: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the document as plain JSON data."""
        return {"schema": EVIDENCE_SCHEMA, "node": self.node, "at": self.at.isoformat(), "channels": self.channels}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> EvidenceDocument:
        """Read a document back. Raises ValueError for another schema, and for what no document says."""
        if document.get("schema") != EVIDENCE_SCHEMA:
            raise ValueError(
                f"not an evidence document: schema is {document.get('schema')!r}, expected {EVIDENCE_SCHEMA!r}"
            )
        node, at, channels = document["node"], datetime.fromisoformat(document["at"]), document["channels"]
        if not isinstance(node, str) or not isinstance(channels, dict):
            raise ValueError("it does not say whose it is, or holds no channels")
        if at.tzinfo is None or not EARLIEST_TIME <= at <= LATEST_TIME:
            raise ValueError(f"{document['at']} is no time with its zone since 1970")
        return cls(node, at, channels)

    def read(self, *path: str) -> EvidenceReading:
        """Return the reading at `path` (channel first). A branch reads as a value; a missing step is absent."""
        return read_at_path(self.channels, path)

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON, which names the document for ever."""
        return hashlib.sha256(encode_canonical_json(self.as_json())).hexdigest()


def encode_canonical_json(document: Any) -> bytes:
    """Return the one byte form of JSON data: sorted keys, no spaces, UTF-8.

    Raises ValueError for what JSON cannot say: numbers without an end, halves of letters.
    """
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return plain.encode()


def read_at_path(tree: Any, path: Sequence[str]) -> EvidenceReading:
    """Walk `path` down `tree`; the first leaf met on the way answers for everything below it."""
    for depth, step in enumerate(path):
        reading = parse_reading(tree)
        if reading is not None and reading.kind != "value":
            return reading
        branch = reading.value if reading is not None else tree
        if not isinstance(branch, Mapping) or step not in branch:
            return EvidenceReading("absent", reason=f"{'.'.join(path[: depth + 1])} is not in the evidence")
        tree = branch[step]
    return parse_reading(tree) or EvidenceReading("value", value=tree)
