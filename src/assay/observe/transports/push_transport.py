"""The transport `push`: documents that a node's agent brings by itself. They are stored, and the last one is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import failed
from assay.observe.evidence_store import EvidenceStore
from assay.observe.transports.transport_protocol import TransportContext


class PushTransport:
    """Answers with the document that was pushed last, of any age: whoever judges it decides how old it may be."""

    settings_name: ClassVar[str] = ""
    settings_model: ClassVar[type[BaseModel] | None] = None

    def __init__(self, context: TransportContext) -> None:
        self._store = context.store

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return the channels of the last document. On request an agent runs nothing, so `--active` fails."""
        del deadline_s
        if "--active" in arguments:
            return failed(f"{node.name} only pushes: nothing can be started there")
        last = self._store.latest_pushed(node.name) if self._store else None
        return failed(f"the agent of {node.name} has pushed nothing yet") if last is None else dict(last.channels)


def store_pushed_document(store: EvidenceStore, fleet: Fleet, document: Mapping[str, Any]) -> str:
    """Store a pushed evidence document and return its digest. It becomes the last one unless it is older than that.

    The caller has checked that it comes from that node. Raises AssayError where it is no evidence of a known node.
    """
    try:
        evidence = EvidenceDocument.from_json(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AssayError(f"not an evidence document: {error}") from None
    if evidence.node not in fleet.nodes:
        raise AssayError(f"the inventory has no node {evidence.node}")
    if set(evidence.channels) != {"probe"}:
        raise AssayError("a pushed document has the channel probe alone", where=evidence.node)
    last = store.latest_pushed(evidence.node)
    is_late = last is not None and _is_older(evidence, last)
    return store.store_document(evidence) if is_late else store.store_pushed(evidence)


def _is_older(evidence: EvidenceDocument, last: EvidenceDocument) -> bool:
    """Whether a document was read before the last one: the ledger's order says so, and the time where it does not."""
    if evidence.after_entry is not None and last.after_entry is not None and evidence.after_entry != last.after_entry:
        return evidence.after_entry < last.after_entry
    return evidence.at < last.at
