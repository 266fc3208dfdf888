"""Documents that the node's agent brings by itself: nothing is asked, the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.fleet import Node
from assay.model.reading import failed
from assay.observe.store import EvidenceStore


@dataclass(frozen=True)
class Pushed:
    """Answers with the document that was pushed last. How old it may be is for those who judge it."""

    store: EvidenceStore | None

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return the channels of the last document; an agent that only pushes runs nothing on request."""
        del deadline_s
        if "--active" in arguments:
            return failed(f"{node.name} only pushes: nothing can be started there")
        last = self.store.pushed(node.name) if self.store else None
        return failed(f"the agent of {node.name} has pushed nothing yet") if last is None else dict(last.channels)
