"""What a good node's evidence says of its host: modules of memory, kernel and its settings. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.model.hostspec import Host
from assay.observe.seen import Entry, Seen, told, value_of

CHOSEN = ("services", "modules", "sysctls")  # a node has hundreds; which of them matter is for people to say
REVIEW = "host: keep what all nodes like this one must have, and add the services, modules and sysctls that matter"


def host(seen: Seen) -> Entry:
    """Return the entry of the host: what the present spec asks for, else all that is read."""
    standing = seen.present.host.model_dump(mode="json", exclude_defaults=True) if seen.present else {}
    wanted = [name for name in standing if name not in CHOSEN] if seen.present else list(FACTS)
    said = {name: FACTS[name](seen) for name in wanted}
    unread = tuple(f"host.{name} was not read" for name in wanted if said[name] is None)
    kept = {name: standing.get(name) if said.get(name) is None else said[name] for name in Host.model_fields}
    learned = {name: one for name, one in kept.items() if one not in (None, [], {})}
    return Entry("host", learned or None, (*unread, *(() if seen.present else (REVIEW,))))


def _fact(kind: type, *path: str) -> Callable[[Seen], Any]:
    def read(seen: Seen) -> Any:
        return told(seen.read("probe", *path), kind)

    return read


def _dimms(seen: Seen) -> dict[str, int] | None:
    """Return the modules, where all are alike."""
    found, _ = seen.parts("probe", "memory", "firmware", "dimms")
    kinds = {(value_of(one, "size_bytes", int), value_of(one, "configured_mts", int)) for one in found.values()}
    size, speed = next(iter(kinds)) if len(kinds) == 1 else (None, None)
    return {"count": len(found), "size_gib": size >> 30, "speed_mts": speed} if size and speed else None


def _governor(seen: Seen) -> str | None:
    found = told(seen.read("probe", "host", "cpu", "governors"), list) or []
    return found[0] if len(found) == 1 and isinstance(found[0], str) else None


def _iommu(seen: Seen) -> str | None:
    """Return what the IOMMU does with the GPUs, where that is the same for all."""
    gpus, _ = seen.parts("probe", "gpu", "devices")
    found = {told(seen.read("probe", "pci", pci, "iommu"), str) for pci in gpus}
    return found.pop() if len(found) == 1 else None


FACTS: dict[str, Callable[[Seen], Any]] = {
    "dimms": _dimms,
    "numa_nodes": _fact(int, "kernel", "numa_nodes"),
    "kernel": _fact(str, "host", "kernel"),
    "governor": _governor,
    "iommu": _iommu,
    "transparent_hugepages": _fact(str, "kernel", "transparent_hugepages"),
}
