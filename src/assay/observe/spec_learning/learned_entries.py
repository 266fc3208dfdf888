"""What a good node's evidence says about the spec that it fits, entry by entry. Pure: evidence in, entries out.

What a good node's evidence says of its host: modules of memory, kernel and its settings. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.node_spec import HostSpec
from assay.observe.spec_learning.observed_node import DraftEntry, ObservedNode, read_typed_value, typed_value

CHOSEN_BY_PEOPLE = ("services", "modules", "sysctls")  # a node has hundreds; which of them matter is for people to say
HOST_REVIEW = "host: keep what all nodes like this one must have, and add the services, modules and sysctls that matter"


def learn_host(seen: ObservedNode) -> DraftEntry:
    """Return the entry of the host: what the present spec asks for, else all that is read."""
    standing = seen.present_spec.host.model_dump(mode="json", exclude_defaults=True) if seen.present_spec else {}
    wanted = [name for name in standing if name not in CHOSEN_BY_PEOPLE] if seen.present_spec else list(HOST_FACTS)
    said = {name: HOST_FACTS[name](seen) for name in wanted}
    unread = tuple(f"host.{name} was not read" for name in wanted if said[name] is None)
    kept = {name: standing.get(name) if said.get(name) is None else said[name] for name in HostSpec.model_fields}
    learned = {name: one for name, one in kept.items() if one not in (None, [], {})}
    return DraftEntry("host", learned or None, (*unread, *(() if seen.present_spec else (HOST_REVIEW,))))


def _fact(kind: type, *path: str) -> Callable[[ObservedNode], Any]:
    def read(seen: ObservedNode) -> Any:
        return typed_value(seen.read("probe", *path), kind)

    return read


def _dimms(seen: ObservedNode) -> dict[str, int] | None:
    """Return the modules, where all are alike."""
    found, _ = seen.parts("probe", "memory", "firmware", "dimms")
    kinds = {
        (read_typed_value(one, "size_bytes", int), read_typed_value(one, "configured_mts", int))
        for one in found.values()
    }
    size, speed = next(iter(kinds)) if len(kinds) == 1 else (None, None)
    return {"count": len(found), "size_gib": size >> 30, "speed_mts": speed} if size and speed else None


def _governor(seen: ObservedNode) -> str | None:
    found = typed_value(seen.read("probe", "host", "cpu", "governors"), list) or []
    return found[0] if len(found) == 1 and isinstance(found[0], str) else None


def _iommu(seen: ObservedNode) -> str | None:
    """Return what the IOMMU does with the GPUs, where that is the same for all."""
    gpus, _ = seen.parts("probe", "gpu", "devices")
    found = {typed_value(seen.read("probe", "pci", pci, "iommu"), str) for pci in gpus}
    return found.pop() if len(found) == 1 else None


HOST_FACTS: dict[str, Callable[[ObservedNode], Any]] = {
    "dimms": _dimms,
    "numa_nodes": _fact(int, "kernel", "numa_nodes"),
    "kernel": _fact(str, "host", "kernel"),
    "governor": _governor,
    "iommu": _iommu,
    "transparent_hugepages": _fact(str, "kernel", "transparent_hugepages"),
}


BOOT_ONLY_PARAMETERS = (
    "BOOT_IMAGE",
    "root",
    "rootflags",
    "rootfstype",
    "initrd",
    "ro",
    "rw",
    "quiet",
    "splash",
    "console",
)


def learn_entries(seen: ObservedNode) -> Iterator[DraftEntry]:
    """Yield every entry of the spec but its name and its limits, in the order in which specs have them."""
    yield seen.make_read_entry("product", seen.read("probe", "host", "product"), str)
    yield seen.make_unread_entry("height_u", "nothing reads how many rack units a node fills")
    if seen.present_spec and seen.present_spec.rack:
        yield seen.make_unread_entry("rack", "nothing reads what the whole rack holds")
    yield _firmware(seen)
    yield seen.make_read_entry("driver", seen.read("probe", "gpu", "driver"), str)
    yield _gpus(seen)
    yield _hcas(seen)
    yield _nics(seen)
    yield _nvme(seen)
    yield _psus(seen)
    yield _counted(seen, "fans", ("bmc", "fan"))
    yield seen.make_read_entry("cpu_sockets", seen.read("probe", "host", "cpu_sockets"), int)
    yield seen.make_read_entry("cpu_threads", seen.read("probe", "host", "cpu_threads"), int)
    yield _memory(seen)
    yield learn_host(seen)
    yield seen.make_unread_entry("bios", "nothing reads the BIOS settings: list those that matter")
    yield _kernel_cmdline(seen)
    if seen.present_spec:
        yield seen.make_unread_entry("boot", "how a node should start is for people to say")
        yield _counted(seen, "leak_detectors", ("bmc", "leak"))


def _firmware(seen: ObservedNode) -> DraftEntry:
    """Return the one bundle that the node carries, version by version."""
    fits = [name for name, bundle in seen.bundles.items() if _carries(seen, bundle)]
    if len(fits) == 1:
        return DraftEntry("firmware", fits[0])
    found = f"{' and '.join(fits)} both fit" if fits else "the node carries no bundle of specs/firmware as a whole"
    return seen.make_unread_entry("firmware", found)


def _carries(seen: ObservedNode, bundle: FirmwareBundle) -> bool:
    wanted = [(part, component.version) for component in bundle.components for part in component.inventory]
    return all(seen.read("bmc", "firmware", part).value == version for part, version in wanted)


def _gpus(seen: ObservedNode) -> DraftEntry:
    found, silent = seen.parts("probe", "gpu", "devices")
    if not found:
        return seen.make_unread_entry("gpus", *(silent or ("no GPU answered",)))
    in_order = sorted(found, key=lambda pci: (read_typed_value(found[pci], "index", int) or 0, pci))
    models = Counter(read_typed_value(gpu, "name", str) or "unknown" for gpu in found.values())
    mixed = () if len(models) == 1 else (f"the GPUs differ: {', '.join(models)}",)
    lost = tuple(f"a GPU did not answer, and is left out: {reason}" for reason in silent)
    return DraftEntry("gpus", {"model": models.most_common(1)[0][0], "pci": in_order}, (*mixed, *lost))


def _hcas(seen: ObservedNode) -> DraftEntry:
    found, silent = seen.parts("probe", "hca")
    if not found:
        return seen.make_unread_entry("hcas", *(silent or ("no adapter answered",)))
    rails, strange = _rails(seen, found)
    places, guessed = _hca_places(seen, sorted(found, key=lambda name: rails[name]))
    hcas = [{"name": name, "rail": rails[name], "pci": pci} for name, pci in places.items()]
    return DraftEntry("hcas", hcas, (*strange, *guessed, *silent))


def _rails(seen: ObservedNode, found: Mapping[str, Any]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return each adapter's rail: the place of its GUID in the inventory, else one that is free."""
    guids = {guid: rail for rail, guid in enumerate(seen.node.hca_guids)}
    listed = {name: guids.get(read_typed_value(hca, "guid", str) or "") for name, hca in found.items()}
    taken = {rail for rail in listed.values() if rail is not None}
    free = (rail for rail in count() if rail not in taken)
    rails = {name: next(free) if rail is None else rail for name, rail in listed.items()}
    unlisted = [name for name in found if listed[name] is None]
    return rails, tuple(f"{name} has no GUID of the inventory: its rail is a guess" for name in unlisted)


def _hca_places(seen: ObservedNode, names: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the PCI addresses of adapters in rail order; the spec's where one does not tell its own."""
    standing = {hca.name: hca.pci for hca in seen.present_spec.hcas} if seen.present_spec else {}
    read = {name: typed_value(seen.read("probe", "hca", name, "pci"), str) for name in names}
    places = {name: pci for name, pci in read.items() if pci}
    untold = tuple(
        f"{name} does not tell its PCI address{'; taken from the spec' if name in standing else ': fill it in'}"
        for name in names
        if name not in places
    )
    return {name: places.get(name) or standing.get(name, "unknown") for name in names}, untold


def _nics(seen: ObservedNode) -> DraftEntry:
    found, silent = seen.parts("probe", "nic")
    speeds = {name: read_typed_value(nic, "speed_mbps", int) or 0 for name, nic in found.items()}
    if not any(speeds.values()):
        return seen.make_unread_entry("nics", *(silent or ("no interface says its speed: none has a link",)))
    down = tuple(f"{name} has no link, and is left out" for name, speed in speeds.items() if not speed)
    linked = [_nic(name, found[name]) for name in sorted(speeds, key=_as_people_count) if speeds[name]]
    return DraftEntry("nics", linked, (*down, *silent))


def _nic(name: str, nic: Mapping[str, Any]) -> dict[str, Any]:
    mtu = read_typed_value(nic, "mtu_bytes", int)
    return {"name": name, "speed_mbps": read_typed_value(nic, "speed_mbps", int)} | ({"mtu": mtu} if mtu else {})


def _nvme(seen: ObservedNode) -> DraftEntry:
    found, silent = seen.parts("probe", "nvme")
    sizes = Counter(int((read_typed_value(drive, "size_bytes", int) or 0) / 1e9) for drive in found.values())
    if not any(sizes):
        return seen.make_unread_entry("nvme", *(silent or ("no drive says its size",)))
    (size, drives), *others = Counter({gb: many for gb, many in sizes.items() if gb}).most_common()
    apart = tuple(f"left out, since a spec has one size: {many} of {gb} GB" for gb, many in others)
    return DraftEntry("nvme", {"count": drives, "size_gb": size}, (*apart, *silent))


def _psus(seen: ObservedNode) -> DraftEntry:
    found, silent = seen.parts("bmc", "psu")
    if not found and silent:
        return seen.make_unread_entry("psus", *silent)
    standing = seen.present_spec.psus if seen.present_spec else None
    if not found or (standing and standing.count == len(found)):
        said = ("nothing reads how many supplies must carry the load; needed is the present spec's",) if found else ()
        return DraftEntry("psus", {"count": len(found), "needed": standing.needed if standing else 0}, (*silent, *said))
    guess = "needed is a guess, one less than there are: nothing reads how many supplies must carry the load"
    return DraftEntry("psus", {"count": len(found), "needed": max(1, len(found) - 1)}, (*silent, guess))


def _counted(seen: ObservedNode, key: str, path: tuple[str, ...]) -> DraftEntry:
    found, silent = seen.parts(*path)
    return (
        DraftEntry(key, len(found), silent) if found else seen.make_unread_entry(key, *(silent or ("none answered",)))
    )


def _memory(seen: ObservedNode) -> DraftEntry:
    """Return the memory in GiB; what the kernel has is a little less than the DIMMs hold, which come in 32s."""
    read = seen.make_read_entry("memory_gib", seen.read("probe", "host", "memory_bytes"), int)
    if read.reviews or not read.value:
        return read if read.reviews else seen.make_unread_entry("memory_gib", "memory_gib reads 0")
    gib, rest = divmod(read.value, 2**30)
    if not rest:
        return DraftEntry("memory_gib", gib)
    said = f"memory_gib is a guess: the kernel has {read.value / 2**30:.1f} GiB, rounded up to what DIMMs hold"
    return DraftEntry("memory_gib", -(-(gib + 1) // 32) * 32, (said,))


def _kernel_cmdline(seen: ObservedNode) -> DraftEntry:
    read = seen.make_read_entry("kernel_cmdline", seen.read("probe", "host", "cmdline"), str)
    if read.reviews:
        return read
    said = "every setting of this node but how it boots: keep those that all its like must have"
    settings = [word for word in str(read.value).split() if word.partition("=")[0] not in BOOT_ONLY_PARAMETERS]
    return DraftEntry("kernel_cmdline", settings, (said,)) if settings else DraftEntry("kernel_cmdline", [])


def _as_people_count(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts eth10 after eth9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", name)]
