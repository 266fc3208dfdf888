"""Finds which GPU of a node a BMC means by its own name, such as `GPU_SXM_4`: by the serial number that both read.

A BMC that names a GPU by its UUID means the one that has it.

No public document maps the names of HGX boards to PCI addresses. A lost GPU, or a dead host, tells no serial number:
then the GPU is where its serial number was last seen. If that is not known and it is the only one left on both sides,
it is that one. Otherwise, its position stays unknown, and it keeps the BMC's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.model.evidence import EvidenceDocument
from assay.model.faults.fault_record import FaultRecord
from assay.model.faults.sightings import FaultSighting
from assay.model.outcome import read_part

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
    own = {one: part for one, part in (last_seen or {}).items() if part in known - now_told} | own
    by_bmc = {name: serial for serial, name in _list_told(evidence, "serial", *BMC_GPUS)}
    found = {name: own[serial] for name, serial in by_bmc.items() if serial in own}
    left_names = _list_names(evidence, *BMC_GPUS) - found.keys()
    left_gpus = {part for part in parts.values() if part.startswith("gpu")} - set(found.values())
    if found and len(left_names) == len(left_gpus) == 1 and not (left_names & by_bmc.keys() and left_gpus & now_told):
        found[left_names.pop()] = left_gpus.pop()
    by_uuid = {
        uuid.removeprefix(UUID_PREFIX).lower(): parts[address.lower()]
        for uuid, address in _list_told(evidence, "uuid", *HOST_GPUS)
        if address.lower() in parts
    }
    return found | {f"{CHASSIS_PREFIX}{name}": part for name, part in found.items()} | by_uuid


def lacks_host_serials(evidence: EvidenceDocument) -> bool:
    """Whether the BMC tells the serial number of a GPU that the host does not tell."""
    told = {serial for serial, _ in _list_told(evidence, "serial", *HOST_GPUS)}
    return any(serial not in told for serial, _ in _list_told(evidence, "serial", *BMC_GPUS))


def name_own_parts(
    sightings: Iterable[FaultSighting], gpus: Mapping[str, str], faults: Sequence[FaultRecord]
) -> Iterator[FaultSighting]:
    """Yield a BMC's sightings with the node's names of its GPUs, where they can be told.

    What one of the node's `faults` has counted under one name is not counted again under the other: a host that did not
    answer told no serial numbers, and answers later.
    """
    for one in sightings:
        own = gpus.get(one.part) or gpus.get(one.part.lower(), one.part)
        if own != one.part and not _is_counted(one, faults, one.part):
            yield one._replace(part=own)
        elif own != one.part or not one.part or not _is_counted(one, faults, "gpu"):
            yield one


def _is_counted(one: FaultSighting, faults: Sequence[FaultRecord], part: str) -> bool:
    """Whether a fault of this class on a part whose name begins so has seen the BMC's log up to this entry."""
    return any(
        fault.fault_class == one.fault_class
        and find_part(fault).startswith(part)
        and fault.marks.get(one.source, "") >= one.mark
        for fault in faults
    )


def find_part(fault: FaultRecord) -> str:
    """Return the part of a fault, "" for the whole node."""
    return read_part(fault.subject)


def _list_told(evidence: EvidenceDocument, leaf: str, *branch: str) -> list[tuple[str, str]]:
    """Return serial number or UUID, and name, of the parts in a branch that have one of their own."""
    read = {name: evidence.read(*branch, name, leaf) for name in _list_names(evidence, *branch)}
    known = [(str(one.value).strip(), name) for name, one in read.items() if one.kind == "value"]
    times = Counter(told for told, _ in known)
    return [(told, name) for told, name in known if told and times[told] == 1]


def _list_names(evidence: EvidenceDocument, *branch: str) -> set[str]:
    listed = evidence.read(*branch)
    return set(listed.value) if listed.kind == "value" and isinstance(listed.value, Mapping) else set()
