"""What an agent delivers, as evidence: kernel lines and NVML events as a probe would have read them, and whole looks.

Times are the controller's: a node's clock may be wrong, but it tells how long ago something was when it was sent.

Take in the documents that agents push: the same evidence, brought by the node instead of fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Literal, NamedTuple

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.reading import value
from assay.observe.evidence_store import EvidenceStore

DeliveredKind = Literal["kernel", "nvml", "probe"]


class DeliveredItem(NamedTuple):
    """One thing that an agent saw at `at` (seconds since 1970, its own clock).

    `body` of a line: boot, seq, t_s (seconds since that boot), text; of a probe: its tree.
    """

    seq: int
    kind: DeliveredKind
    at: float
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What the node's clock said when it sent, and ours when it came."""

    node_time: float
    controller_time: datetime

    def to_controller_time(self, at: float) -> datetime:
        """Return one of the node's times by our clock; nothing was seen in the future."""
        return self.controller_time - timedelta(seconds=min(max(0.0, self.node_time - at), 10 * 366 * 86400.0))


def build_delivered_evidence(
    node: str, delivered: Iterable[DeliveredItem], clocks: ClockOffset
) -> Iterator[EvidenceDocument]:
    """Yield the evidence that these things are, in their order; lines of one source and boot are one document."""
    for (whole, boot), some in groupby(delivered, key=lambda one: (one.kind == "probe", one.body.get("boot", ""))):
        things = list(some)
        if whole:
            yield from (
                EvidenceDocument(node, clocks.to_controller_time(one.at), {"probe": one.body}) for one in things
            )
            continue
        for kind in ("kernel", "nvml"):
            if lines := [one for one in things if one.kind == kind]:
                yield _lines(node, str(boot), lines, clocks)


def _lines(node: str, boot: str, things: list[DeliveredItem], clocks: ClockOffset) -> EvidenceDocument:
    """Return lines as a look at them: `uptime_s` is such that each line falls on the time at which it was seen."""
    last = things[-1]
    booted = clocks.to_controller_time(last.at) - timedelta(seconds=last.body["t_s"])
    host = {"boot_id": value(boot), "uptime_s": value((clocks.controller_time - booted).total_seconds())}
    lines = [_line(one.body, one.kind) for one in things]
    return EvidenceDocument(
        node, clocks.controller_time, {"probe": {"host": host, "kernel_log": {"lines": value(lines)}}}
    )


def _line(body: Mapping[str, Any], source: DeliveredKind) -> dict[str, Any]:
    return {"seq": body["seq"], "t_s": body["t_s"], "text": body["text"], "source": source}


def store_pushed_document(store: EvidenceStore, fleet: Fleet, document: Mapping[str, Any]) -> str:
    """Keep a pushed evidence document and return its digest; one older than the last is kept, but is not the last.

    Whoever calls has made sure that it comes from that node. Raises Trouble for what is no evidence of a known node.
    """
    try:
        evidence = EvidenceDocument.from_json(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise AssayError(f"not an evidence document: {wrong}") from None
    if evidence.node not in fleet.nodes:
        raise AssayError(f"the inventory has no node {evidence.node}")
    if set(evidence.channels) != {"probe"}:
        raise AssayError("a pushed document has the channel probe alone", where=evidence.node)
    last = store.latest_pushed(evidence.node)
    return store.store_pushed(evidence) if last is None or last.at <= evidence.at else store.store_document(evidence)
