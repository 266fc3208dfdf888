"""Counts over a week how many discoveries of the cables were whole."""

from __future__ import annotations

import re

from assay.fabric.scan import list_discovery_problems
from assay.model.evidence import EvidenceDocument

HEAD = re.compile(r"(?:\s*#[^\n]*(?:\n|$))*")
"""The comments with which ibnetdiscover begins: they name the time."""


class DiscoveryCount:
    """How many `discoveries` of the cables there were, how many were `whole`, and why the newest other was not.

    A fabric at rest gives the same text again and again, which is read once. Scans come newest first.
    """

    def __init__(self) -> None:
        self.discoveries, self.whole, self.failure = 0, 0, ""
        self._known: dict[int, str] = {}

    def add(self, document: EvidenceDocument) -> None:
        """Add one scan. One without a discovery does not count."""
        text = document.read("discovery", "text")
        if text.kind not in ("value", "failed"):
            return
        problem = self._find_problem(document, str(text.value or "")) if text.kind == "value" else text.reason
        self.discoveries += 1
        self.whole += not problem
        self.failure = self.failure or problem

    def _find_problem(self, document: EvidenceDocument, text: str) -> str:
        head = HEAD.match(text)
        same = hash((text[head.end() if head else 0 :], document.read("discovery", "stderr").value))
        if same not in self._known:
            self._known[same] = next(iter(list_discovery_problems(document)), "").partition("\n")[0]
        return self._known[same]
