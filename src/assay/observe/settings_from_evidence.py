"""Derives the settings of the host and of the BMC from a good node's evidence. Pure: evidence in, entries out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.node_spec import HostSpec
from assay.model.specs.spec_document import StrictModel
from assay.observe.evidence_lookup import DraftEntry, ObservedNode, read_typed_value, typed_value

Facts = Mapping[str, Callable[[ObservedNode], Any]]
HOST_REVIEW = "host: keep what all nodes like this one must have, and add the services, modules and sysctls that matter"
BMC_REVIEW = (
    "bmc: keep what all nodes like this one must have; accounts are left out: add those that matter, each with the "
    "place of its password"
)
SYSLOG_SERVER = re.compile(r"\[?([\w.:-]+?)\]?:(\d{1,5})/(\w+)")


def learn_host(seen: ObservedNode) -> DraftEntry:
    """Return the entry `host`: the settings that the present spec has, or without one all that were read."""
    return _learn_settings(seen, "host", HostSpec, HOST_FACTS, HOST_REVIEW)


def learn_bmc(seen: ObservedNode) -> Iterator[DraftEntry]:
    """Yield the entry `bmc` in the same way, unless the present spec leaves the BMC as it is."""
    if seen.present_spec is None or seen.present_spec.bmc.model_dump(exclude_defaults=True):
        yield _learn_settings(seen, "bmc", BmcSpec, BMC_FACTS, BMC_REVIEW)


def _learn_settings(
    seen: ObservedNode, part: str, model: type[StrictModel], readable: Facts, review: str
) -> DraftEntry:
    """Return the settings of one part of the spec. Those that no fact reads are for people to choose."""
    present = _present_settings(seen, part)
    wanted = [name for name in readable if name in present or not seen.present_spec]
    facts = {name: readable[name](seen) for name in wanted}
    merged = {name: present.get(name) if facts.get(name) is None else facts[name] for name in model.model_fields}
    learned = {name: setting for name, setting in merged.items() if setting is not None}
    unread = tuple(f"{part}.{name} was not read" for name in wanted if facts[name] is None and name not in learned)
    copied: dict[str | int, tuple[str, ...]] = {
        name: (f"{part}.{name} was not read; {seen.copy_review}" if name in wanted else seen.copy_review,)
        for name in learned
        if facts.get(name) is None
    }
    return DraftEntry(part, learned or None, (*unread, *(() if seen.present_spec else (review,))), copied)


def _present_settings(seen: ObservedNode, part: str) -> dict[str, Any]:
    """Return what the present spec says of a part, without defaults."""
    if seen.present_spec is None:
        return {}
    said: dict[str, Any] = getattr(seen.present_spec, part).model_dump(mode="json", exclude_defaults=True)
    return said


def _fact(kind: type, *path: str) -> Callable[[ObservedNode], Any]:
    def read(seen: ObservedNode) -> Any:
        return typed_value(seen.read("probe", *path), kind)

    return read


def _dimms(seen: ObservedNode) -> dict[str, int] | None:
    """Return the memory modules if all are alike, else None."""
    dimms, _ = seen.parts("probe", "memory", "firmware", "dimms")
    kinds = {
        (read_typed_value(dimm, "size_bytes", int), read_typed_value(dimm, "configured_mts", int))
        for dimm in dimms.values()
    }
    size, speed = next(iter(kinds)) if len(kinds) == 1 else (None, None)
    return {"count": len(dimms), "size_gib": size >> 30, "speed_mts": speed} if size and speed else None


def _governor(seen: ObservedNode) -> str | None:
    governors = typed_value(seen.read("probe", "host", "cpu", "governors"), list) or []
    return governors[0] if len(governors) == 1 and isinstance(governors[0], str) else None


def _iommu(seen: ObservedNode) -> str | None:
    """Return the IOMMU's mode for the GPUs if all have the same, else None."""
    gpus, _ = seen.parts("probe", "gpu", "devices")
    modes = {typed_value(seen.read("probe", "pci", pci, "iommu"), str) for pci in gpus}
    return modes.pop() if len(modes) == 1 else None


HOST_FACTS: Facts = {
    "dimms": _dimms,
    "numa_nodes": _fact(int, "kernel", "numa_nodes"),
    "kernel": _fact(str, "host", "kernel"),
    "governor": _governor,
    "iommu": _iommu,
    "transparent_hugepages": _fact(str, "kernel", "transparent_hugepages"),
}


def _bmc_fact(name: str, read: Callable[[ObservedNode], Any]) -> Callable[[ObservedNode], Any]:
    """Return what was read if a spec can hold it, else None: BMCs report odd texts too."""

    def read_valid(seen: ObservedNode) -> Any:
        setting = read(seen)
        try:
            BmcSpec.model_validate({name: setting})
        except ValidationError:
            return None
        return setting

    return read_valid


def _power_restore(seen: ObservedNode) -> str | None:
    policy: str | None = typed_value(seen.read("bmc", "settings", "power_restore"), str)
    return policy


def _ntp(seen: ObservedNode) -> dict[str, Any] | None:
    """Return the NTP settings that the present spec has, or without one both; None if one was not read."""
    both = {
        "enabled": seen.read("bmc", "settings", "ntp", "enabled").value,
        "servers": typed_value(seen.read("bmc", "settings", "ntp", "servers"), list),
    }
    wanted = _present_settings(seen, "bmc").get("ntp", both)
    return None if any(both[name] is None for name in wanted) else {name: both[name] for name in wanted}


def _syslog(seen: ObservedNode) -> list[dict[str, Any]] | None:
    """Return the servers that the BMC sends its log to; None if one of them is no server that assay can read."""
    servers = typed_value(seen.read("bmc", "settings", "syslog"), list)
    found = [SYSLOG_SERVER.fullmatch(str(server)) for server in servers or ()]
    parts = [match.groups() for match in found if match]
    if servers is None or len(parts) < len(servers):
        return None
    return [{"server": server, "port": int(port), "protocol": protocol} for server, port, protocol in parts]


BMC_FACTS: Facts = {
    "power_restore": _bmc_fact("power_restore", _power_restore),
    "ntp": _bmc_fact("ntp", _ntp),
    "syslog": _bmc_fact("syslog", _syslog),
}
