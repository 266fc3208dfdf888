"""What evidence and outcomes show of faults, one sighting each: kernel lines, BMC events, failed checks, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from assay.lifecycle.lines import booted, events_in, lines_in
from assay.lifecycle.when import moment, written
from assay.model.evidence import Evidence
from assay.model.faults import FaultCatalog, Threshold
from assay.model.nodespec import NodeSpec
from assay.model.nvlink import NvlinkCode, decoded
from assay.model.outcome import Outcome, Recorded
from assay.model.recognise import Found


class Sighting(NamedTuple):
    """One look at one fault. `part` is the part of the node ("" for all of it).

    `source` and `mark` say how far that source has been read: kernel and nvml `<boot id>:<seq>`, sel `<time>|<id>`,
    check `<time>`, alert `<time>|<fingerprint>`, metrics `<boot id>:<time>`. Each source is read once, in order,
    whatever is delivered again. `uptime_s` is known of what the kernel tells. One that does not
    `count` is noted and asks for nothing.
    """

    fault_class: str
    part: str
    at: str
    detail: str
    source: str
    mark: str
    uptime_s: float | None = None
    counts: bool = True


def parts_of(spec: NodeSpec) -> dict[str, str]:
    """Return the part that sits at each PCI place of a node, as kernel lines name places: `0000:1b:00.0` → `gpu3`."""
    gpus = {pci.lower(): f"gpu{slot}" for slot, pci in enumerate(spec.gpus.pci)}
    return gpus | {hca.pci.lower(): hca.name for hca in spec.hcas}


def in_kernel_log(catalog: FaultCatalog, evidence: Evidence, parts: Mapping[str, str]) -> Iterator[Sighting]:
    """Yield what the kernel's lines show, and what comes in their shape from NVML and from metrics (`"source"`)."""
    boot = evidence.read("probe", "host", "boot_id").value or ""
    start = booted(evidence)
    for line in lines_in(evidence):
        text = line["text"]
        for found in catalog.recogniser.in_message(text):
            at = line.get("at") or (start + timedelta(seconds=line["t_s"]) if start else evidence.at)
            code = sub_code(catalog, found, text)
            detail, counts = (f"{text} [{code}]", code.counts) if code else (text, True)
            mark = f"{boot}:{line['seq']}"
            source = line.get("source", "kernel")
            yield Sighting(found.name, _part(found, parts), written(at), detail, source, mark, line["t_s"], counts)


def sub_code(catalog: FaultCatalog, found: Found, text: str) -> NvlinkCode | None:
    """Return the sub-code of NVLink that a message carries, None where it carries none."""
    fault = catalog.class_of(found.name)
    return decoded(text, fault.units) if fault and fault.units else None


def in_events(catalog: FaultCatalog, evidence: Evidence) -> Iterator[Sighting]:
    """Yield what the BMC's event log shows: of the first class that fits an entry."""
    for event in sorted(events_in(evidence), key=_event_mark):
        text = event.get("message", "")
        if name := in_event(catalog, str(event.get("message_id", "")), text):
            yield Sighting(name, "", written(event["at"]), text, "sel", _event_mark(event))


def in_event(catalog: FaultCatalog, message_id: str, message: str) -> str:
    """Return the first class that an entry of a BMC's event log fits, "" where none does."""
    fitting = (name for name, fault in catalog.classes.items() if fault.sel and fault.sel.fits(message_id, message))
    return next(fitting, "")


def in_outcomes(catalog: FaultCatalog, outcomes: Iterable[Recorded]) -> Iterator[Sighting]:
    """Yield what failed checks and measurements out of bounds show. Errors and skips show nothing."""
    bounds = [(name, fault.measurement) for name, fault in catalog.classes.items() if fault.measurement]
    for one in outcomes:
        outcome, at = one.outcome, written(one.measured_at)
        part = outcome.subject.split("/", 2)[2] if outcome.subject.count("/") > 1 else ""
        if outcome.verdict == "fail" and outcome.fault:
            yield Sighting(outcome.fault, part, at, outcome.reason, "check", at)
        if outcome.verdict in ("pass", "fail"):
            for name, detail in _out_of_bounds(bounds, outcome):
                yield Sighting(name, part, at, detail, "check", at)


def _part(found: Found, parts: Mapping[str, str]) -> str:
    """Return the part at a PCI place; an Xid line leaves the function number out. A strange place stands for itself."""
    if found.part:
        return parts.get(found.part.lower(), found.part)
    place = found.pci.lower().rstrip(":.")
    return parts.get(place) or parts.get(f"{place}.0") or place


def _event_mark(event: Mapping[str, Any]) -> str:
    return f"{written(moment(event['at']))}|{str(event['id']).rjust(12, '0')}"


def _out_of_bounds(bounds: Iterable[tuple[str, Threshold]], outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name, bound in bounds:
        for number in outcome.measurements:
            if bound.beyond(number.name, number.value):
                yield name, f"{number.name} is {number.value:g} {number.unit}".rstrip()
