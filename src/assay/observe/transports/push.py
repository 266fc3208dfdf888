"""The transport `push`: documents that a node's agent brings by itself. They are stored, and the last one is read.

Kernel lines and NVML events that an agent delivers become evidence in the probe's form. Times are converted to the
controller's clock: a node's clock may be wrong, but it shows how long before the delivery something happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, read_at_path
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import failed, value
from assay.observe.evidence_store import EvidenceStore
from assay.observe.transports.transport_protocol import TransportContext

DeliveredKind = Literal["kernel", "nvml", "probe"]


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
    is_late = last is not None and evidence.at < last.at
    if last is not None and evidence.after_entry is not None and last.after_entry is not None:
        is_late = (evidence.after_entry, evidence.at) < (last.after_entry, last.at)  # the ledger's order comes first
    return store.store_document(evidence) if is_late else store.store_pushed(evidence)


class DeliveredItem(NamedTuple):
    """One item of an agent's delivery, from `at` (seconds since 1970, the node's clock).

    `body` of a line has boot, seq, t_s (seconds since that boot), text and level; of a probe it is the tree.
    """

    seq: int
    kind: DeliveredKind
    at: float
    body: Mapping[str, Any]


@frozen
class ClockOffset:
    """The node's time when it sent a delivery, and the controller's when that came."""

    node_time: float
    controller_time: datetime

    def to_controller_time(self, at: float) -> datetime:
        """Return a time of the node by the controller's clock, never later than the delivery."""
        return self.controller_time - timedelta(seconds=min(max(0.0, self.node_time - at), 10 * 366 * 86400.0))


def build_delivered_evidence(
    node: str, delivered: Iterable[DeliveredItem], clocks: ClockOffset, serial: str = ""
) -> Iterator[EvidenceDocument]:
    """Yield the items as evidence documents, in order. Lines of one source and boot share a document.

    `serial`: that of the machine that delivers them, "" if it is not known.
    """
    for (is_probe, boot), group in groupby(
        delivered, key=lambda item: (item.kind == "probe", item.body.get("boot", ""))
    ):
        items = list(group)
        if is_probe:
            for item in items:
                known = read_at_path(item.body, ["after_entry"]).value  # the newest entry that the agent knew, if any
                after_entry = known if type(known) is int else None
                yield EvidenceDocument(node, clocks.to_controller_time(item.at), {"probe": item.body}, after_entry)
            continue
        for kind in ("kernel", "nvml"):
            if lines := [item for item in items if item.kind == kind]:
                yield _build_line_document(node, str(boot), lines, clocks, serial)


def _build_line_document(
    node: str, boot: str, items: list[DeliveredItem], clocks: ClockOffset, serial: str
) -> EvidenceDocument:
    """Return lines as a probe document, with the `uptime_s` that puts the last line at its time.

    So a reader computes each line's time from the boot and `t_s`, as it does for a probe's own document.
    """
    last = items[-1]
    booted_at = clocks.to_controller_time(last.at) - timedelta(seconds=last.body["t_s"])
    host = {"boot_id": value(boot), "uptime_s": value((clocks.controller_time - booted_at).total_seconds())}
    host |= {"serial": value(serial)} if serial else {}
    fields = ("seq", "t_s", "text", "level")  # an older agent, and NVML, give no level
    lines = [{**{key: item.body[key] for key in fields if key in item.body}, "source": item.kind} for item in items]
    probe = {"host": host, "kernel_log": {"lines": value(lines)}}
    return EvidenceDocument(node, clocks.controller_time, {"probe": probe})
