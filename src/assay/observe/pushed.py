"""Take in the documents that agents push: the same evidence, brought by the node instead of fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.model.errors import Trouble
from assay.model.evidence import Evidence
from assay.model.fleet import Fleet
from assay.observe.store import EvidenceStore


def keep_pushed(store: EvidenceStore, fleet: Fleet, document: Mapping[str, Any]) -> str:
    """Keep a pushed evidence document and return its digest; one older than the last is kept, but is not the last.

    Whoever calls has made sure that it comes from that node. Raises Trouble for what is no evidence of a known node.
    """
    try:
        evidence = Evidence.from_json(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise Trouble(f"not an evidence document: {wrong}") from None
    if evidence.node not in fleet.nodes:
        raise Trouble(f"the inventory has no node {evidence.node}")
    if set(evidence.channels) != {"probe"}:
        raise Trouble("a pushed document has the channel probe alone", where=evidence.node)
    last = store.pushed(evidence.node)
    return store.put_pushed(evidence) if last is None or last.at <= evidence.at else store.keep(evidence)
