"""Finds faults in the entries of a BMC's event logs: by the classes' patterns, and XIDs that the BMC heard of.

The BMC of an HGX board repeats what the GPU's driver last said, also when the host is dead:

    … GPU_SXM_4 Driver Event Message has detected errors of type '[Wed Dec 6 17:31:51 UTC 2023][1][00] XID 79 …'

Newer firmware may name the GPU by its UUID (NVIDIA/nsmd, nsmXIDEvent): `GPU UUID 6463b098-… Driver Event Message`.

Finds which GPU of a node a BMC means by its own name, such as `GPU_SXM_4`: by the serial number that both read.

A BMC that names a GPU by its UUID means the one that has it.

No public document maps the names of HGX boards to PCI addresses. A lost GPU, or a dead host, tells no serial number:
then the GPU is where its serial number was last seen. If that is not known and it is the only one left on both sides,
it is that one. Otherwise, its position stays unknown, and it keeps the BMC's name.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from assay.model.evidence import EvidenceDocument
from assay.model.faults.fault_record import FaultRecord
from assay.model.faults.sightings import MAX_PART_LENGTH, FaultSighting, is_plausible_time, read_bmc_events, shorten
from assay.model.outcome import read_part
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import format_time, parse_time

HOST_GPUS, BMC_GPUS = ("probe", "gpu", "devices"), ("bmc", "processor", "gpu")
UUID_PREFIX = "GPU-"
CHASSIS_PREFIX = "HGX_"
"""The chassis `HGX_GPU_SXM_4` holds the processor `GPU_SXM_4` (recorded Redfish tree of a DGX H100)."""


def map_bmc_gpus(
    evidence: EvidenceDocument, parts: Mapping[str, str], last_seen: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the GPU of the node for each of the BMC's names that can be told.

    `parts` are the parts by PCI address. `last_seen` says in which GPU of the node a serial number was seen last: it
    counts where the host does not tell that number now, nor another one for that GPU.
    """
    own = {
        serial: parts[address.lower()]
        for serial, address in _list_told(evidence, "serial", *HOST_GPUS)
        if address.lower() in parts
    }
    now_told, known = set(own.values()), set(parts.values())
    own = {serial: part for serial, part in (last_seen or {}).items() if part in known - now_told} | own
    by_bmc = {name: serial for serial, name in _list_told(evidence, "serial", *BMC_GPUS)}
    by_name = {name: own[serial] for name, serial in by_bmc.items() if serial in own}
    left_names = _list_names(evidence, *BMC_GPUS) - by_name.keys()
    left_gpus = {part for part in parts.values() if part.startswith("gpu")} - set(by_name.values())
    if by_name and len(left_names) == len(left_gpus) == 1 and not (left_names & by_bmc.keys() and left_gpus & now_told):
        by_name[left_names.pop()] = left_gpus.pop()
    by_uuid = {
        uuid.removeprefix(UUID_PREFIX).lower(): parts[address.lower()]
        for uuid, address in _list_told(evidence, "uuid", *HOST_GPUS)
        if address.lower() in parts
    }
    return by_name | {f"{CHASSIS_PREFIX}{name}": part for name, part in by_name.items()} | by_uuid


def lacks_host_serials(evidence: EvidenceDocument) -> bool:
    """Whether the BMC tells the serial number of a GPU that the host does not tell."""
    host_serials = {serial for serial, _ in _list_told(evidence, "serial", *HOST_GPUS)}
    return any(serial not in host_serials for serial, _ in _list_told(evidence, "serial", *BMC_GPUS))


def find_own_part(text: str, gpus: Mapping[str, str]) -> str:
    """Return the one GPU of the node that a text of its BMC names, "" if it names none or several.

    Sensors have the name of their part as a prefix: `HGX_GPU_SXM_3_TEMP_0`.
    """
    spoken = ((name, part) for name, part in gpus.items() if name in text)  # nearly always none, and much cheaper
    named = {part for name, part in spoken if re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![0-9])", text)}
    return named.pop() if len(named) == 1 else ""


def name_own_parts(
    sightings: Iterable[FaultSighting], gpus: Mapping[str, str], faults: Sequence[FaultRecord]
) -> Iterator[FaultSighting]:
    """Yield a BMC's sightings with the node's names of its GPUs, where they can be told.

    What one of the node's `faults` has counted under one name is not counted again under the other: a host that did not
    answer told no serial numbers, and answers later.
    """
    of_nodes = [fault for fault in faults if not read_part(fault.subject)]
    for sighting in sightings:
        own = gpus.get(sighting.part) or gpus.get(sighting.part.lower(), sighting.part)
        own = own or find_own_part(sighting.detail, gpus)
        if own != sighting.part and not _is_counted(sighting, faults if sighting.part else of_nodes, sighting.part):
            yield sighting._replace(part=own)
        elif own != sighting.part or not sighting.part or not _is_counted(sighting, faults, "gpu"):
            yield sighting


def _is_counted(sighting: FaultSighting, faults: Sequence[FaultRecord], part: str) -> bool:
    """Whether a fault of this class on a part whose name begins so has seen the BMC's log up to this entry."""
    return any(
        fault.fault_class == sighting.fault_class
        and read_part(fault.subject).startswith(part)
        and fault.marks.get(sighting.source, "") >= sighting.mark
        for fault in faults
    )


def _list_told(evidence: EvidenceDocument, leaf: str, *branch: str) -> list[tuple[str, str]]:
    """Return serial number or UUID, and name, of the parts in a branch that have one of their own."""
    read = {name: evidence.read(*branch, name, leaf) for name in _list_names(evidence, *branch)}
    known = [(str(reading.value).strip(), name) for name, reading in read.items() if reading.kind == "value"]
    times = Counter(ident for ident, _ in known)
    return [(ident, name) for ident, name in known if ident and times[ident] == 1]


def _list_names(evidence: EvidenceDocument, *branch: str) -> set[str]:
    listed = evidence.read(*branch)
    return set(listed.value) if listed.kind == "value" and isinstance(listed.value, Mapping) else set()


HOST_SOURCES = {"kernel", "nvml"}
EARLIEST_CLOCK = "2015-01-01T00:00:00+00:00"
"""No BMC that is set right says an earlier time: HMCs without a clock begin in 1970."""
DRIVER_MESSAGE = re.compile(
    r"(?:(?<!\w)|\bGPU UUID )(?P<part>[\w-]{1,64}) Driver Event Message\b.*?"
    r"'\[(?P<at>[^\]]{8,40})\]\[\d+\]\[(?P<flags>[0-9a-f]+)\] "
    r"(?P<kind>S?XID) (?P<number>\d{1,6})\b(?P<text>[^']*)"
)
DRIVER_LINE = re.compile(r"(?:NVRM: Xid|nvidia-nvswitch\d+: SXid) \(")
"""A whole line of the driver in an entry: `… has detected errors of type 'NVRM: Xid (PCI:0000:3d:00): 79, …'`."""
LOOSE_XID = re.compile(
    r"(?<![\w/])(?P<kind>S?XID)(?: (?:error|event|code|number|fault)){0,2}[ :#=(\[]{1,3}(?P<number>\d{1,6})(?![\w.])",
    re.IGNORECASE,
)
LOOSE_PART = re.compile(
    r"(?<![A-Za-z0-9])(?:HGX_)?(?P<part>(?:GPU|NVSwitch)(?:[_ ]?SXM)?[_ #-]?\d{1,3})(?!\d)", re.IGNORECASE
)
"""How BMCs of other makers, and older firmware, say it: `XID error 79 detected on GPU_SXM_4`."""
MAX_READ_LENGTH = 1500
"""Characters of a message that are read."""
_DRIVER_TIME = "%a %b %d %H:%M:%S UTC %Y"


def find_sel_sightings(catalog: FaultCatalog, evidence: EvidenceDocument) -> Iterator[FaultSighting]:
    """Yield the sightings in the BMC's event logs: of each entry, its XID, or the first class that matches it.

    Each log has a source of its own, since it has a clock of its own. An entry whose time is nonsense has the time when
    it was first seen, `seen`; without that, it is as old as the log, and no sighting.
    """
    for event in sorted(read_bmc_events(evidence), key=_sort_key):
        message, severity = event.get("message", "")[:MAX_READ_LENGTH], str(event.get("severity", ""))
        named = find_event_fault(catalog, str(event.get("message_id", "")), message, severity)
        at = _find_time(event)
        if named is not None and at is not None:
            (name, part), log = named, str(event.get("log", ""))
            mark = f"{format_time(at)}|{event['id'].rjust(12, '0')}"
            yield FaultSighting(name, part, format_time(at), shorten(message), f"sel {log}" if log else "sel", mark)


def find_event_fault(catalog: FaultCatalog, message_id: str, message: str, severity: str) -> tuple[str, str] | None:
    """Return the fault that an entry names, and the part ("" if not given): its XID, or the first class that matches.

    An entry that reports OK names none. Only the beginning of a message counts: regular expressions take long over a
    megabyte of it.
    """
    message = message[:MAX_READ_LENGTH]
    # a whole line of the driver, as the kernel's log has it, names the part too
    line = DRIVER_LINE.search(message)
    mentions = catalog.kernel_log_matcher.find_faults(message[line.start() :].rstrip(" '\".")) if line else ()
    if mentions:
        return mentions[0].name, mentions[0].pci[:MAX_PART_LENGTH]
    if named := _find_driver_message(message):
        return named
    if severity != "OK" and not DRIVER_MESSAGE.search(message) and (named := _find_loose_xid(message)):
        return named
    name = "" if severity == "OK" else match_sel_event(catalog, message_id, message, severity)
    return (name, "") if name else None


def match_sel_event(catalog: FaultCatalog, message_id: str, message: str, severity: str = "") -> str:
    """Return the first class that matches an entry of a BMC's event log, "" if none does.

    The registry and key of its MessageId decide first, then what it says. A class that only names a severity is last.
    """
    rules = [(name, rule.sel) for name, rule in catalog.classes.items() if rule.sel]
    if named := next((name for name, sel in rules if sel.names(message_id)), ""):
        return named
    matching = (name for name, sel in rules if sel.severity is None and sel.matches(message_id, message, severity))
    return next(matching, "") or next((name for name, sel in rules if sel.severity and sel.severity == severity), "")


def drop_told_by_host(
    sightings: Iterable[FaultSighting],
    by_host: Iterable[FaultSighting],
    faults: Iterable[FaultRecord],
    places: Collection[str],
) -> Iterator[FaultSighting]:
    """Yield the sightings without XIDs that the host reports too, now (`by_host`) or in its open `faults`.

    Of a part in `places`, the node's own names, they are XIDs of that part; of one whose place is unknown, of any part.
    """
    host_faults = {(sighting.fault_class, sighting.part) for sighting in by_host}
    seen_by_host = [fault for fault in faults if fault.is_open and set(fault.marks) & HOST_SOURCES]
    host_faults |= {(fault.fault_class, read_part(fault.subject)) for fault in seen_by_host}
    anywhere = {name for name, _ in host_faults}
    unplaced = {name for name, part in host_faults if part not in places}
    for sighting in sightings:
        known = unplaced if sighting.part in places else anywhere
        if not sighting.part or (
            sighting.fault_class not in known and (sighting.fault_class, sighting.part) not in host_faults
        ):
            yield sighting


def _find_driver_message(message: str) -> tuple[str, str] | None:
    """Return the XID or SXID in an entry, and the part; None in an entry without one.

    Number 0 is no error. Flags mark lines that continue the one before.
    """
    match = DRIVER_MESSAGE.search(message)
    if match is None or int(match["flags"], 16) or not int(match["number"]):
        return None
    kind = "gpu.xid" if match["kind"] == "XID" else "nvswitch.sxid"
    return f"{kind}.{int(match['number'])}", match["part"][:MAX_PART_LENGTH]


def _find_loose_xid(message: str) -> tuple[str, str] | None:
    """Return the XID or SXID that a message names in words of its own, and the part; None without a part or number."""
    match, part = LOOSE_XID.search(message), LOOSE_PART.search(message)
    if match is None or part is None or not int(match["number"]):
        return None
    kind = "gpu.xid" if match["kind"].upper() == "XID" else "nvswitch.sxid"
    return f"{kind}.{int(match['number'])}", part["part"]


def _find_time(event: Mapping[str, Any]) -> datetime | None:
    """Return when an entry was made: by the driver, by the BMC's clock if that is set, else when it was first seen."""
    if match := DRIVER_MESSAGE.search(event.get("message", "")[:MAX_READ_LENGTH]):
        with contextlib.suppress(ValueError):
            at = datetime.strptime(" ".join(match["at"].split()), _DRIVER_TIME).replace(tzinfo=UTC)
            if at > parse_time(EARLIEST_CLOCK):
                return at
    for text in (event.get("at"), event.get("seen")):
        if is_plausible_time(text) and parse_time(EARLIEST_CLOCK) < parse_time(str(text)):
            return parse_time(str(text))
    return None


def _sort_key(event: Mapping[str, Any]) -> tuple[str, str]:
    at = _find_time(event)
    return format_time(at) if at else "", str(event["id"]).rjust(12, "0")
