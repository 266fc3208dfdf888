"""Reads sightings of faults from evidence and outcomes: kernel log, BMC events, failed checks, measurements, alerts.

An entry of a log that does not have the expected shape is skipped. Alerts are in `alerts.firing`, a list of `{"fault",
"part", "at", "detail", "fingerprint"}`, where `at` is when the alert began to fire; signals of other tools have a
`source` of their own, the `weight` with which they count, and perhaps a time `until` which they hold.

Puts together what the driver says of one GPU in several lines: its address in the first, the fault in a later one.

NVRM: The NVIDIA GPU 0000:4b:00.0
NVRM: (PCI ID: 10de:2330) installed in this system has
NVRM: fallen off the bus and is not responding to commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from assay.model.evidence import EARLIEST_TIME, LATEST_TIME, EvidenceDocument
from assay.model.faults.fault_record import NOT_JUDGED
from assay.model.log_message import GPU_INTRODUCTION, LogMessage, name_form
from assay.model.outcome import Outcome, RecordedOutcome, read_part
from assay.model.specs.fault_catalog import FaultCatalog, MeasurementThreshold
from assay.model.specs.log_patterns import FaultMention
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.nvlink_codes import NvlinkCode, decode_nvlink_xid
from assay.model.text.lists import normalize_pci_address
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import format_time, parse_time

BUS_LOST = "fallen off the bus"
MOST_LINES = 3
"""The driver's lines after the first one in which the fault may stand."""


class SplitMessages:
    """Remembers the line that names a GPU, until the fault is said or other lines came."""

    def __init__(self) -> None:
        self._first: LogMessage | None = None
        self._left = 0

    def complete(self, message: LogMessage) -> LogMessage:
        """Return a message with the GPU that an earlier line named, and its time where it has none."""
        text = message.text
        if text.startswith(GPU_INTRODUCTION) and BUS_LOST not in text:
            self._first, self._left = message, MOST_LINES
        elif self._first and self._left and text.startswith("NVRM: ") and "Xid" not in text:
            self._left -= 1
            if BUS_LOST in text and "GPU" not in text:
                first, self._first = self._first, None
                timed = first if message.at is None else message
                return timed._replace(text=f"{first.text} {message.text}")
        return message


LOG_BRANCHES = ("kernel_log", "metric_events")
"""Branches of the probe that hold log lines."""
MAX_UPTIME_S = 1e10
"""No node is up for longer, and since 1970 fewer seconds have passed."""
ALERT_SOURCE = "alert"
PART_NAME = re.compile(r"\b(?:gpu|psu|nvme|fan|mlx5_)\d+\b")
"""Our name of a part in the words of a check."""
UNKNOWN_PART = "unknown part"
"""The part of a fault whose PCI address or drive the node's spec does not have."""
MAX_PART_LENGTH = 64
MAX_DETAIL_LENGTH = 1000
"""The kernel's own lines are shorter."""
_NVME_DRIVE = re.compile(r"nvme(\d{1,6})(?:n\d+(?:p\d+)?|c\d+n\d+)?$")


def read_log_lines(evidence: EvidenceDocument) -> Iterator[Mapping[str, Any]]:
    """Yield every log line: `seq`, `t_s` (seconds since the boot), `text`, and where known `source`, `at`, `level`."""
    for branch in LOG_BRANCHES:
        lines = evidence.read("probe", branch, "lines")
        if lines.kind == "value" and isinstance(lines.value, list):
            yield from filter(_is_line, lines.value)


def read_last_log_lines(evidence: EvidenceDocument, most: int) -> Iterator[Mapping[str, Any]]:
    """Yield the last `most` lines of each branch."""
    for branch in LOG_BRANCHES:
        lines = evidence.read("probe", branch, "lines")
        if lines.kind == "value" and isinstance(lines.value, list):
            yield from filter(_is_line, lines.value[-most:])


def read_bmc_events(evidence: EvidenceDocument) -> Iterator[Mapping[str, Any]]:
    """Yield every entry of the BMC's event log: `id`, `at`, `message`, perhaps `message_id`, `log`, `seen`."""
    events = evidence.read("bmc", "events")
    if events.kind == "value" and isinstance(events.value, list):
        yield from filter(_is_event, events.value)


def find_boot_time(evidence: EvidenceDocument) -> datetime | None:
    """Return when the node booted, None if that is unknown."""
    uptime, read_at = evidence.read("probe", "host", "uptime_s"), evidence.read("probe", "host", "read_at").value
    at = parse_time(read_at) if is_plausible_time(read_at) else evidence.at
    return at - timedelta(seconds=uptime.value) if _is_number(uptime.value) else None


def _is_line(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and isinstance(line.get("text"), str)
        and type(line.get("seq")) is int
        and _is_number(line.get("t_s"))
        and isinstance(line.get("source", ""), str)
        and isinstance(line.get("level"), int | None)
        and (line.get("at") is None or is_plausible_time(line["at"]))
    )


def _is_event(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and isinstance(event.get("id"), str)
        and isinstance(event.get("message", ""), str)
        and isinstance(event.get("at"), str)
    )


def _is_number(number: Any) -> bool:
    return type(number) in (int, float) and -MAX_UPTIME_S < number < MAX_UPTIME_S


def is_plausible_time(at: Any) -> bool:
    """Whether this is a time as evidence writes it, between `EARLIEST_TIME` and `LATEST_TIME`."""
    try:
        return EARLIEST_TIME <= parse_time(at) <= LATEST_TIME
    except (TypeError, ValueError, OverflowError):
        return False


class FaultSighting(NamedTuple):
    """One sighting of one fault. `part` is the part of the node, "" for the whole node.

    `source` and `mark` say how far that source has been read: kernel and nvml `<boot id>:<seq>`, sel `<time>|<id>`,
    check `<time>`,
    alert and signal `<time>|<fingerprint>|<until>`, metrics `<boot id>:<time>`. What is delivered again adds nothing.
    `uptime_s` is known for kernel messages. A sighting without `counts` does not count towards the threshold. `times`:
    so many errors it tells of.
    """

    fault_class: str
    part: str
    at: str
    detail: str
    source: str
    mark: str
    uptime_s: float | None = None
    counts: bool = True
    times: int = 1


def map_parts_by_pci(spec: NodeSpec) -> dict[str, str]:
    """Return the part at each PCI address of a node. Addresses are as in kernel messages: `0000:1b:00.0` → `gpu3`."""
    gpus = {pci.lower(): f"gpu{slot}" for slot, pci in enumerate(spec.gpus.pci)}
    return gpus | {hca.pci.lower(): hca.name for hca in spec.hcas}


def find_kernel_sightings(
    catalog: FaultCatalog, evidence: EvidenceDocument, parts: Mapping[str, str], drives: int | None = None
) -> Iterator[FaultSighting]:
    """Yield the sightings in kernel messages, and in those of NVML and metrics, which have the same shape.

    `parts` by PCI address and the number of NVMe `drives` (None: not known) are what the node has.
    """
    boot = evidence.read("probe", "host", "boot_id").value or ""
    booted_at = find_boot_time(evidence)
    start = booted_at
    if start is None:  # the latest from which the lines may count: the last of them is of now
        newest_s = max((line["t_s"] for line in read_log_lines(evidence)), default=0.0)
        start = evidence.at - timedelta(seconds=newest_s)
    split = SplitMessages()
    for line in read_log_lines(evidence):
        uptime_s = None if booted_at is None and "at" in line else line["t_s"]
        text = split.complete(LogMessage(line["text"])).text
        source, mark = line.get("source", "kernel"), f"{boot}:{line['seq']}"
        mentions = catalog.kernel_log_matcher.find_faults(text)
        if not mentions and catalog.kernel_log_matcher.find_unjudged(text, line.get("level")):
            mentions = [FaultMention(NOT_JUDGED, part=name_form(text))]
        for mention in mentions:
            at = format_time(line.get("at") or start + timedelta(seconds=line["t_s"]))
            code, part = find_nvlink_code(catalog, mention, text), _resolve_part(mention, parts, drives)
            shown = shorten(text)
            detail, counts = (f"{shown} [{code}]", code.needs_action) if code else (shown, True)
            yield FaultSighting(mention.name, part, at, detail, source, mark, uptime_s, counts, mention.errors)


def shorten(text: str) -> str:
    """Return a text as a detail: one printable line, cut where it is too long. The whole stays in the evidence."""
    text = escape_line(text[: MAX_DETAIL_LENGTH + 1])
    return text if len(text) <= MAX_DETAIL_LENGTH else f"{text[:MAX_DETAIL_LENGTH]}…"


def find_nvlink_code(catalog: FaultCatalog, mention: FaultMention, text: str) -> NvlinkCode | None:
    """Return the NVLink sub-code in a message, None if it has none."""
    units = catalog.nvlink_units.get(mention.name)
    return decode_nvlink_xid(text, units) if units else None


def find_check_sightings(catalog: FaultCatalog, outcomes: Iterable[RecordedOutcome]) -> Iterator[FaultSighting]:
    """Yield the sightings in failed checks and in measurements out of bounds. Errors and skips are no sightings."""
    bounds = [(name, fault.measurement) for name, fault in catalog.classes.items() if fault.measurement]
    for recorded in outcomes:
        outcome, at = recorded.outcome, format_time(recorded.measured_at)
        part = read_part(outcome.subject)
        if outcome.verdict == "fail" and outcome.fault:
            yield FaultSighting(outcome.fault, part, at, shorten(outcome.reason), "check", at)
        if outcome.verdict in ("pass", "fail"):
            for name, detail in _out_of_bounds(bounds, outcome):
                yield FaultSighting(name, part, at, detail, "check", at)


def _resolve_part(mention: FaultMention, parts: Mapping[str, str], drives: int | None) -> str:
    """Return the part that a message names, as the spec names it.

    A PCI address or a drive that the spec does not have is UNKNOWN_PART. Parts that no spec lists (a DIMM's label, a
    disk) keep their name.
    """
    named = mention.part or mention.pci
    if not named:
        return ""
    if address := normalize_pci_address(named):
        return parts.get(address, UNKNOWN_PART)
    if drive := _NVME_DRIVE.match(named):
        return named if drives is None or int(drive[1]) < drives else UNKNOWN_PART
    return parts.get(named.lower(), named if mention.part and len(named) <= MAX_PART_LENGTH else UNKNOWN_PART)


def _out_of_bounds(bounds: Iterable[tuple[str, MeasurementThreshold]], outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield class and detail of each measurement that exceeds the threshold of a class."""
    for name, bound in bounds:
        for number in outcome.measurements:
            if bound.is_exceeded(number.name, number.value):
                yield name, f"{number.name} is {number.value:g} {number.unit}".rstrip()


def find_alert_sightings(evidence: EvidenceDocument, parts: Mapping[str, str]) -> Iterator[FaultSighting]:
    """Yield the sightings in firing alerts. An alert that is sent again has the same mark."""
    firing = evidence.read("alerts", "firing")
    listed = firing.value if firing.kind == "value" and isinstance(firing.value, list) else []
    for alert in filter(_is_alert, listed):
        at = format_time(alert["at"])
        part = parts.get(alert["part"].lower(), alert["part"])
        weight, until = alert.get("weight", 1), f"|{alert['until']}" if alert.get("until") else ""
        mark = f"{at}|{alert['fingerprint']}{until}"
        yield FaultSighting(
            alert["fault"],
            part,
            at,
            shorten(alert["detail"]),
            alert.get("source", ALERT_SOURCE),
            mark,
            counts=weight > 0,
            times=max(weight, 1),
        )


def _is_alert(alert: Any) -> bool:
    texts = ("fault", "part", "at", "detail", "fingerprint")
    return (
        isinstance(alert, dict)
        and all(isinstance(alert.get(name), str) for name in texts)
        and is_plausible_time(alert["at"])
        and type(alert.get("weight", 1)) is int
        and all(isinstance(alert.get(name, ""), str) for name in ("source", "until"))
    )
