"""What evidence and outcomes show of faults, one sighting each: kernel lines, BMC events, failed checks, numbers.

The lines that evidence holds, of the kernel and in its shape, and a BMC's entries. What lacks the shape is none.

What alerts of a site's own monitoring show of faults: the channel `alerts` of evidence.

`alerts.firing` is a list of `{"fault", "part", "at", "detail", "fingerprint"}`; `at` is when the alert began to fire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assay.model.evidence import EARLIEST_TIME, LATEST_TIME, EvidenceDocument
from assay.model.outcome import Outcome, RecordedOutcome
from assay.model.specs.fault_catalog import FaultCatalog, MeasurementThreshold
from assay.model.specs.kernel_log_patterns import FaultMention
from assay.model.specs.node_spec import NodeSpec
from assay.model.specs.nvlink_xid import NvlinkCode, decode_nvlink_xid
from assay.model.timestamps import format_time, parse_time

LOG_BRANCHES = ("kernel_log", "metric_events")
"""Branches of the probe that hold lines."""
MAX_UPTIME_S = 1e10
"""Seconds that any node can have been up, or that have gone by since 1970."""


def read_log_lines(evidence: EvidenceDocument) -> Iterator[Mapping[str, Any]]:
    """Yield every line: `seq`, `t_s` and `text`, perhaps `source` and `at`."""
    for branch in LOG_BRANCHES:
        lines = evidence.read("probe", branch, "lines")
        if lines.kind == "value" and isinstance(lines.value, list):
            yield from filter(_is_line, lines.value)


def read_last_log_lines(evidence: EvidenceDocument, most: int) -> Iterator[Mapping[str, Any]]:
    """Yield the last lines of each branch, `most` at the most."""
    for branch in LOG_BRANCHES:
        lines = evidence.read("probe", branch, "lines")
        if lines.kind == "value" and isinstance(lines.value, list):
            yield from filter(_is_line, lines.value[-most:])


def read_bmc_events(evidence: EvidenceDocument) -> Iterator[Mapping[str, Any]]:
    """Yield every entry of the BMC's event log: `id`, `at` ("" where it says none), `message`, perhaps `message_id`."""
    events = evidence.read("bmc", "events")
    if events.kind == "value" and isinstance(events.value, list):
        yield from filter(_is_event, events.value)


def find_boot_time(evidence: EvidenceDocument) -> datetime | None:
    """Return when the node booted, None where that is not known."""
    uptime = evidence.read("probe", "host", "uptime_s")
    return evidence.at - timedelta(seconds=uptime.value) if _is_number(uptime.value) else None


def _is_line(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and isinstance(line.get("text"), str)
        and type(line.get("seq")) is int
        and _is_number(line.get("t_s"))
        and isinstance(line.get("source", ""), str)
        and (line.get("at") is None or is_plausible_time(line["at"]))
    )


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and isinstance(event.get("id"), str)
        and isinstance(event.get("message", ""), str)
        and (event.get("at") == "" or is_plausible_time(event.get("at")))
    )


def _is_number(number: Any) -> bool:
    return type(number) in (int, float) and -MAX_UPTIME_S < number < MAX_UPTIME_S


def is_plausible_time(at: Any) -> bool:
    """Say whether this is a time as evidence writes it, of a day that can be believed."""
    try:
        return EARLIEST_TIME <= parse_time(at) <= LATEST_TIME
    except (TypeError, ValueError, OverflowError):
        return False


class FaultSighting(NamedTuple):
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


def map_parts_by_pci(spec: NodeSpec) -> dict[str, str]:
    """Return the part that sits at each PCI place of a node, as kernel lines name places: `0000:1b:00.0` → `gpu3`."""
    gpus = {pci.lower(): f"gpu{slot}" for slot, pci in enumerate(spec.gpus.pci)}
    return gpus | {hca.pci.lower(): hca.name for hca in spec.hcas}


def find_kernel_sightings(
    catalog: FaultCatalog, evidence: EvidenceDocument, parts: Mapping[str, str]
) -> Iterator[FaultSighting]:
    """Yield what the kernel's lines show, and what comes in their shape from NVML and from metrics (`"source"`)."""
    boot = evidence.read("probe", "host", "boot_id").value or ""
    start = find_boot_time(evidence)
    for line in read_log_lines(evidence):
        text = line["text"]
        for found in catalog.kernel_log_matcher.find_faults(text):
            at = line.get("at") or (start + timedelta(seconds=line["t_s"]) if start else evidence.at)
            code = find_nvlink_code(catalog, found, text)
            detail, counts = (f"{text} [{code}]", code.needs_action) if code else (text, True)
            mark = f"{boot}:{line['seq']}"
            source = line.get("source", "kernel")
            yield FaultSighting(
                found.name, _resolve_part(found, parts), format_time(at), detail, source, mark, line["t_s"], counts
            )


def find_nvlink_code(catalog: FaultCatalog, found: FaultMention, text: str) -> NvlinkCode | None:
    """Return the sub-code of NVLink that a message carries, None where it carries none."""
    fault = catalog.find_class(found.name)
    return decode_nvlink_xid(text, fault.units) if fault and fault.units else None


def find_sel_sightings(catalog: FaultCatalog, evidence: EvidenceDocument) -> Iterator[FaultSighting]:
    """Yield what the BMC's event log shows: of the first class that fits an entry."""
    for event in sorted(read_bmc_events(evidence), key=_event_mark):
        text = event.get("message", "")
        if name := match_sel_event(catalog, str(event.get("message_id", "")), text):
            yield FaultSighting(name, "", format_time(event["at"]), text, "sel", _event_mark(event))


def match_sel_event(catalog: FaultCatalog, message_id: str, message: str) -> str:
    """Return the first class that an entry of a BMC's event log fits, "" where none does."""
    fitting = (name for name, fault in catalog.classes.items() if fault.sel and fault.sel.matches(message_id, message))
    return next(fitting, "")


def find_check_sightings(catalog: FaultCatalog, outcomes: Iterable[RecordedOutcome]) -> Iterator[FaultSighting]:
    """Yield what failed checks and measurements out of bounds show. Errors and skips show nothing."""
    bounds = [(name, fault.measurement) for name, fault in catalog.classes.items() if fault.measurement]
    for one in outcomes:
        outcome, at = one.outcome, format_time(one.measured_at)
        part = outcome.subject.split("/", 2)[2] if outcome.subject.count("/") > 1 else ""
        if outcome.verdict == "fail" and outcome.fault:
            yield FaultSighting(outcome.fault, part, at, outcome.reason, "check", at)
        if outcome.verdict in ("pass", "fail"):
            for name, detail in _out_of_bounds(bounds, outcome):
                yield FaultSighting(name, part, at, detail, "check", at)


def _resolve_part(found: FaultMention, parts: Mapping[str, str]) -> str:
    """Return the part at a PCI place; an Xid line leaves the function number out. A strange place stands for itself."""
    if found.part:
        return parts.get(found.part.lower(), found.part)
    place = found.pci.lower().rstrip(":.")
    return parts.get(place) or parts.get(f"{place}.0") or place


def _event_mark(event: Mapping[str, Any]) -> str:
    return f"{format_time(parse_time(event['at']))}|{str(event['id']).rjust(12, '0')}"


def _out_of_bounds(bounds: Iterable[tuple[str, MeasurementThreshold]], outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name, bound in bounds:
        for number in outcome.measurements:
            if bound.is_exceeded(number.name, number.value):
                yield name, f"{number.name} is {number.value:g} {number.unit}".rstrip()


ALERT_SOURCE = "alert"


def find_alert_sightings(evidence: EvidenceDocument, parts: Mapping[str, str]) -> Iterator[FaultSighting]:
    """Yield the alerts that fire. One that is sent again has the mark that it had."""
    firing = evidence.read("alerts", "firing")
    listed = firing.value if firing.kind == "value" and isinstance(firing.value, list) else []
    for alert in filter(_is_alert, listed):
        at = format_time(alert["at"])
        part = parts.get(alert["part"].lower(), alert["part"])
        yield FaultSighting(alert["fault"], part, at, alert["detail"], ALERT_SOURCE, f"{at}|{alert['fingerprint']}")


def _is_alert(alert: Any) -> bool:
    texts = ("fault", "part", "at", "detail", "fingerprint")
    return (
        isinstance(alert, dict)
        and all(isinstance(alert.get(name), str) for name in texts)
        and is_plausible_time(alert["at"])
    )
