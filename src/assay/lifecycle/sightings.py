"""What evidence and outcomes show of faults, one sighting each: kernel lines, BMC events, failed checks, numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from assay.lifecycle.when import moment, written
from assay.model.evidence import Evidence
from assay.model.faults import FaultCatalog, FaultClass, Sel
from assay.model.nodespec import NodeSpec
from assay.model.outcome import Outcome, Recorded

XID = re.compile(r"NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F:.]+)\): (?P<xid>\d+)\b")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look at one fault. `part` is the part of the node ("" for all of it).

    `source` and `mark` say how far that source has been read: kernel `<boot id>:<seq>`, sel `<time>|<id>`, check
    `<time>`. Each source is read once, in order, whatever is delivered again.
    """

    fault_class: str
    part: str
    at: str
    detail: str
    source: str
    mark: str


def parts_of(spec: NodeSpec) -> dict[str, str]:
    """Return the part that sits at each PCI place of a node, as kernel lines name places: `0000:1b:00.0` → `gpu3`."""
    gpus = {pci.lower(): f"gpu{slot}" for slot, pci in enumerate(spec.gpus.pci)}
    return gpus | {hca.pci.lower(): hca.name for hca in spec.hcas}


def in_kernel_log(catalog: FaultCatalog, evidence: Evidence, parts: Mapping[str, str]) -> Iterator[Sighting]:
    """Yield what the kernel's lines show."""
    lines = evidence.read("probe", "kernel_log", "lines")
    boot = evidence.read("probe", "host", "boot_id")
    if lines.kind != "value":
        return
    booted = _booted(evidence)
    for line in lines.value:
        at = written(booted + timedelta(seconds=line["t_s"]) if booted else evidence.at)
        for name, part in _in_line(catalog, line["text"], parts):
            yield Sighting(name, part, at, line["text"], "kernel", f"{boot.value or ''}:{line['seq']}")


def in_events(catalog: FaultCatalog, evidence: Evidence) -> Iterator[Sighting]:
    """Yield what the BMC's event log shows."""
    events = evidence.read("bmc", "events")
    if events.kind != "value":
        return
    rules = [(name, fault.sel) for name, fault in catalog.classes.items() if fault.sel]
    for event in sorted(events.value, key=_event_mark):
        for name in [name for name, sel in rules if _fits(sel, event)][:1]:
            yield Sighting(name, "", written(event["at"]), event.get("message", ""), "sel", _event_mark(event))


def in_outcomes(catalog: FaultCatalog, outcomes: Iterable[Recorded]) -> Iterator[Sighting]:
    """Yield what failed checks and measurements out of bounds show. Errors and skips show nothing."""
    for one in outcomes:
        outcome, at = one.outcome, written(one.measured_at)
        part = outcome.subject.split("/", 2)[2] if outcome.subject.count("/") > 1 else ""
        if outcome.verdict == "fail" and outcome.fault:
            yield Sighting(outcome.fault, part, at, outcome.reason, "check", at)
        if outcome.verdict in ("pass", "fail"):
            for name, detail in _out_of_bounds(catalog, outcome):
                yield Sighting(name, part, at, detail, "check", at)


def _booted(evidence: Evidence) -> datetime | None:
    uptime = evidence.read("probe", "host", "uptime_s")
    return evidence.at - timedelta(seconds=uptime.value) if uptime.kind == "value" else None


def _in_line(catalog: FaultCatalog, text: str, parts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if found := XID.search(text):
        yield f"gpu.xid.{found['xid']}", _part(found["pci"], parts)
    for name, fault in catalog.classes.items():
        if fault.kernel and (match := re.search(fault.kernel.pattern, text)):
            groups = match.groupdict()
            yield name, groups.get("part") or (_part(groups["pci"], parts) if groups.get("pci") else "")


def _part(pci: str, parts: Mapping[str, str]) -> str:
    """Return the part at a PCI place; an Xid line leaves the function number out. A strange place stands for itself."""
    place = pci.lower().rstrip(":.")
    return parts.get(place) or parts.get(f"{place}.0") or place


def _fits(sel: Sel | None, event: Mapping[str, Any]) -> bool:
    if sel is None or (sel.message_id is not None and not str(event.get("message_id", "")).endswith(sel.message_id)):
        return False
    return sel.message is None or re.search(sel.message, event.get("message", "")) is not None


def _event_mark(event: Mapping[str, Any]) -> str:
    return f"{written(moment(event['at']))}|{str(event['id']).rjust(12, '0')}"


def _out_of_bounds(catalog: FaultCatalog, outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name, fault in catalog.classes.items():
        for number in outcome.measurements:
            if _beyond(fault, number.name, number.value):
                yield name, f"{number.name} is {number.value:g} {number.unit}".rstrip()


def _beyond(fault: FaultClass, name: str, value: float) -> bool:
    bound = fault.measurement
    if bound is None or bound.name != name:
        return False
    return (bound.above is not None and value > bound.above) or (bound.below is not None and value < bound.below)
