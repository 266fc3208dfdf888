"""What evidence rests on: a place in the ledger and a boot of its node. Both say what came first, where clocks lie."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from assay.model.evidence import EvidenceDocument


@dataclass(frozen=True, slots=True)
class EvidenceBasis:
    """What one document of evidence rests on.

    `after_entry` is the number of the ledger's newest entry before the reading began: whatever has a higher number may
    be newer than the evidence. None: nobody noted it. `boot_id` is the boot that the node ran, "" if that was not read.
    `log_gap` says why the kernel log may not be read to its end after the load, "" if it was or if nothing was loaded.
    """

    after_entry: int | None = None
    boot_id: str = ""
    log_gap: str = ""

    @classmethod
    def of_document(cls, evidence: EvidenceDocument) -> EvidenceBasis:
        """Return what a document rests on."""
        boot = evidence.read("probe", "host", "boot_id")
        is_known = boot.kind == "value" and isinstance(boot.value, str)
        return cls(evidence.after_entry, boot.value if is_known else "", _find_log_gap(evidence))

    def encode(self) -> str:
        """Return it as text, "" if nothing is known. `decode` reads it back."""
        return _encode(self) if self != UNKNOWN_BASIS else ""

    @classmethod
    def decode(cls, text: str) -> EvidenceBasis:
        """Return what `encode` gave."""
        return cls(*json.loads(text)) if text else UNKNOWN_BASIS


UNKNOWN_BASIS = EvidenceBasis()


@lru_cache(1024)
def _encode(basis: EvidenceBasis) -> str:
    return json.dumps([basis.after_entry, basis.boot_id, basis.log_gap], ensure_ascii=False)


def _find_log_gap(evidence: EvidenceDocument) -> str:
    """Return why lines of the kernel log since the load may be lacking, "" if none is, or if nothing was loaded."""
    if "active" not in evidence.channels:
        return ""
    if "before" not in evidence.channels:
        return "it does not say how the node was before the load"
    missed: Any = (reading := evidence.read("probe", "kernel_log", "missed")).value
    if reading.kind != "value" or type(missed) is not int:
        return f"the kernel log was not read: {reading.reason or 'nothing says how many lines were missed'}"
    return f"{missed} lines of the kernel log are lost" if missed else ""
