"""Derives each entry of a node spec, and the settings of host and BMC, from a good node's evidence.

Pure: evidence in, entries out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pydantic import ValidationError

from assay.model.evidence import EvidenceDocument
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.reading import EvidenceReading, parse_reading
from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.image import ATTEMPT, IMAGE
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.node_spec import HostSpec, NodeSpec
from assay.model.specs.spec_document import StrictModel

HOST_REVIEW = "host: keep what all nodes like this one must have, and add the services, modules and sysctls that matter"
BMC_REVIEW = (
    "bmc: keep what all nodes like this one must have; accounts are left out: add those that matter, each with the "
    "place of its password"
)
SYSLOG_SERVER = re.compile(r"\[?([\w.:-]+?)\]?:(\d{1,5})/(\w+)")
BOOT_ONLY_PARAMETERS = (
    ATTEMPT,
    "BOOT_IMAGE",
    IMAGE,
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


@frozen
class DraftEntry:
    """One entry of the draft. `value` is None where it is unknown; `reviews` are the comments for the reviewer.

    `part_reviews` are those for one part of the value, by its key or index.
    """

    key: str
    value: Any = None
    reviews: tuple[str, ...] = ()
    part_reviews: Mapping[str | int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ObservedNode:
    """A node with its evidence, its inventory entry and, where it has one, its present spec."""

    evidence: EvidenceDocument
    node: Node
    present_spec: NodeSpec | None = None
    bundles: Mapping[str, FirmwareBundle] = field(default_factory=dict)

    @property
    def copy_review(self) -> str:
        """The comment for a value of the present spec that was not read on this node."""
        return f"taken from {self.present_spec.name if self.present_spec else 'nowhere'}, not read on this node"

    def read(self, *path: str) -> EvidenceReading:
        """Return the reading at a path, channel first."""
        return self.evidence.read(*path)

    def parts(self, *path: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parts below a branch that have readings, and the reasons why others, or all, have none."""
        branch = self.read(*path)
        if branch.kind != "value" or not isinstance(branch.value, Mapping):
            return {}, (f"{'.'.join(path)} was not read: {branch.kind}: {branch.reason}",)
        leaves = {name: parse_reading(tree) for name, tree in branch.value.items()}
        reasons = tuple(f"{name}: {leaf.kind}: {leaf.reason}" for name, leaf in leaves.items() if leaf is not None)
        return {name: tree for name, tree in branch.value.items() if leaves[name] is None}, reasons

    def make_unread_entry(self, key: str, *reviews: str) -> DraftEntry:
        """Return an entry that evidence does not show: the present spec's value if there is one. Needs a review."""
        present = self.present_spec.model_dump(mode="json").get(key) if self.present_spec else None
        if self.present_spec is None or present in (None, "", [], {}):
            return DraftEntry(key, None, reviews)
        return DraftEntry(key, present, (*reviews[:-1], f"{reviews[-1]}; taken from {self.present_spec.name}"))

    def make_read_entry(self, key: str, reading: EvidenceReading, kind: type) -> DraftEntry:
        """Return the entry for one reading, whose value must have the type `kind`."""
        if reading.kind != "value":
            return self.make_unread_entry(key, f"{key} was not read: {reading.kind}: {reading.reason}")
        if not has_type(kind, reading.value):
            return self.make_unread_entry(key, f"{key} reads {reading.value!r}, which is no {kind.__name__}")
        return DraftEntry(key, reading.value)


def read_typed_value(tree: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return the value of the reading `name` below a part if it has the type `kind`, else None."""
    reading = parse_reading(tree.get(name)) if isinstance(tree, Mapping) else None
    return typed_value(reading, kind) if reading is not None else None


def typed_value(reading: EvidenceReading, kind: type | tuple[type, ...]) -> Any:
    """Return the value of a reading if it has the type `kind`, else None."""
    return reading.value if reading.kind == "value" and has_type(kind, reading.value) else None


def has_type(kind: type | tuple[type, ...], value: Any) -> bool:
    """Return whether a value has the type `kind`. Booleans are no numbers, and numbers have fewer than 64 bits."""
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return not isinstance(value, int | float) or abs(value) < 2**63


Facts = Mapping[str, Callable[[ObservedNode], Any]]


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
    settings: dict[str, Any] = getattr(seen.present_spec, part).model_dump(mode="json", exclude_defaults=True)
    return settings


def _fact(kind: type, *path: str) -> Callable[[ObservedNode], Any]:
    def read(seen: ObservedNode) -> Any:
        return typed_value(seen.read(*path), kind)

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
    "numa_nodes": _fact(int, "probe", "kernel", "numa_nodes"),
    "kernel": _fact(str, "probe", "host", "kernel"),
    "governor": _governor,
    "iommu": _iommu,
    "transparent_hugepages": _fact(str, "probe", "kernel", "transparent_hugepages"),
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
    matches = [SYSLOG_SERVER.fullmatch(str(server)) for server in servers or ()]
    parts = [match.groups() for match in matches if match]
    if servers is None or len(parts) < len(servers):
        return None
    return [{"server": server, "port": int(port), "protocol": protocol} for server, port, protocol in parts]


BMC_FACTS: Facts = {
    "power_restore": _bmc_fact("power_restore", _fact(str, "bmc", "settings", "power_restore")),
    "ntp": _bmc_fact("ntp", _ntp),
    "syslog": _bmc_fact("syslog", _syslog),
    "ipmi_lan": _bmc_fact("ipmi_lan", lambda seen: seen.read("bmc", "settings", "ipmi_lan").value),
}


def learn_entries(seen: ObservedNode) -> Iterator[DraftEntry]:
    """Yield every entry of the spec but its name and its limits, in the order of a spec."""
    yield seen.make_read_entry("product", seen.read("probe", "host", "product"), str)
    yield seen.make_unread_entry("height_u", "nothing reads how many rack units a node fills")
    if seen.present_spec and seen.present_spec.rack:
        yield seen.make_unread_entry("rack", "nothing reads what the whole rack holds")
    yield _firmware(seen)
    yield seen.make_read_entry("driver", seen.read("probe", "gpu", "driver"), str)
    fabric_manager = seen.read("probe", "kernel", "versions", "fabric_manager")
    if seen.present_spec.fabric_manager if seen.present_spec else fabric_manager.kind == "value":
        yield seen.make_read_entry("fabric_manager", fabric_manager, str)
    yield _gpus(seen)
    yield _hcas(seen)
    yield from _roce(seen)
    yield _nics(seen)
    yield _nvme(seen)
    yield from _disks(seen)
    yield _psus(seen)
    yield _count_entry(seen, "fans", ("bmc", "fan"))
    yield seen.make_read_entry("cpu_sockets", seen.read("probe", "host", "cpu_sockets"), int)
    yield seen.make_read_entry("cpu_threads", seen.read("probe", "host", "cpu_threads"), int)
    yield _memory(seen)
    yield learn_host(seen)
    yield seen.make_unread_entry("bios", "nothing reads the BIOS settings: list those that matter")
    yield from learn_bmc(seen)
    yield _kernel_cmdline(seen)
    if seen.present_spec:
        yield seen.make_unread_entry("boot", "how a node should start is for people to say")
        yield seen.make_unread_entry("gpu_settings", "how GPUs should be set up is for people to say")
        yield seen.make_unread_entry("hca_settings", "which firmware settings matter is for people to say")
        yield seen.make_unread_entry("wipe", "how drives should be erased is for people to say")
        yield _count_entry(seen, "leak_detectors", ("bmc", "leak"))


def _firmware(seen: ObservedNode) -> DraftEntry:
    """Return the one bundle whose versions the node runs."""
    matching = []
    for name, bundle in seen.bundles.items():
        wanted = [(part, component.version) for component in bundle.components for part in component.inventory]
        if wanted and all(seen.read("bmc", "firmware", part).value == version for part, version in wanted):
            matching.append(name)
    if len(matching) == 1:
        return DraftEntry("firmware", matching[0])
    review = (
        f"{' and '.join(matching)} both fit" if matching else "the node runs no bundle of specs/firmware as a whole"
    )
    return seen.make_unread_entry("firmware", review)


def _gpus(seen: ObservedNode) -> DraftEntry:
    gpus, reasons = seen.parts("probe", "gpu", "devices")
    if not gpus:
        return seen.make_unread_entry("gpus", *(reasons or ("no GPU answered",)))
    in_order = sorted(gpus, key=lambda pci: (read_typed_value(gpus[pci], "index", int) or 0, pci))
    models = Counter(read_typed_value(gpu, "name", str) or "unknown" for gpu in gpus.values())
    mixed = () if len(models) == 1 else (f"the GPUs differ: {', '.join(models)}",)
    lost = tuple(f"a GPU did not answer, and is left out: {reason}" for reason in reasons)
    return DraftEntry("gpus", {"model": models.most_common(1)[0][0], "pci": in_order}, (*mixed, *lost))


def _hcas(seen: ObservedNode) -> DraftEntry:
    adapters, reasons = seen.parts("probe", "hca")
    if not adapters:
        return seen.make_unread_entry("hcas", *(reasons or ("no adapter answered",)))
    rails, guessed = _rails(seen, adapters)
    names = sorted(adapters, key=lambda name: rails[name])
    addresses, unread = _hca_addresses(seen, names)
    hcas = [{"name": name, "rail": rails[name], "pci": addresses[name]} for name in names]
    reviews: dict[str | int, tuple[str, ...]] = {}
    for index, name in enumerate(names):
        if texts := tuple(filter(None, (guessed.get(name), unread.get(name)))):
            reviews[index] = texts
    return DraftEntry("hcas", hcas, reasons, reviews)


def _rails(seen: ObservedNode, adapters: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, str]]:
    """Return each adapter's rail, the index of its GUID in the inventory or else a free one, and the reviews."""
    guids = {guid: rail for rail, guid in enumerate(seen.node.hca_guids)}
    listed = {name: guids.get(read_typed_value(hca, "guid", str) or "") for name, hca in adapters.items()}
    taken = {rail for rail in listed.values() if rail is not None}
    free = (rail for rail in count() if rail not in taken)
    rails = {name: next(free) if rail is None else rail for name, rail in listed.items()}
    unlisted = [name for name in adapters if listed[name] is None]
    return rails, {name: f"{name} has no GUID of the inventory: its rail is a guess" for name in unlisted}


def _hca_addresses(seen: ObservedNode, names: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the PCI addresses of adapters, from the present spec where they were not read, and the reviews."""
    present = {hca.name: hca.pci for hca in seen.present_spec.hcas} if seen.present_spec else {}
    read = {name: typed_value(seen.read("probe", "hca", name, "pci"), str) for name in names}
    reviews = {
        name: f"{name} does not show its PCI address{'; taken from the spec' if name in present else ': fill it in'}"
        for name in names
        if not read[name]
    }
    return {name: read[name] or present.get(name, "unknown") for name in names}, reviews


def _list_roce(seen: ObservedNode) -> list[dict[str, Any]]:
    """Return what each adapter on Ethernet shows: its `interface`, and the settings that a spec may declare."""
    shown = []
    for name in seen.parts("probe", "hca")[0]:
        at = ("probe", "hca", name, "roce")
        if interface := typed_value(seen.read(*at, "interface"), str):
            dscp = typed_value(seen.read(*at, "qos", "dscp"), list) or []
            settings = {
                "mtu": typed_value(seen.read(*at, "mtu_bytes"), int),
                "trust": typed_value(seen.read(*at, "qos", "trust"), str),
                "pfc": typed_value(seen.read(*at, "qos", "pfc"), list),
                "dscp": {key: int(priority) for key, _, priority in (str(entry).partition(":") for entry in dscp)},
            }
            shown.append({"interface": interface, "settings": settings})
    return shown


def _roce(seen: ObservedNode) -> Iterator[DraftEntry]:
    if shown := _list_roce(seen):
        first, *others = [adapter["settings"] for adapter in shown]
        reasons = ("the adapters differ: this is the first one's",) if any(other != first for other in others) else ()
        yield DraftEntry("roce", {name: read for name, read in first.items() if read not in (None, {})}, reasons)


def _nics(seen: ObservedNode) -> DraftEntry:
    nics, reasons = seen.parts("probe", "nic")
    of_fabric = {adapter["interface"] for adapter in _list_roce(seen)}
    nics = {name: nic for name, nic in nics.items() if name not in of_fabric}
    speeds = {name: read_typed_value(nic, "speed_mbps", int) or 0 for name, nic in nics.items()}
    if not any(speeds.values()):
        return seen.make_unread_entry("nics", *(reasons or ("no interface shows its speed: none has a link",)))
    down = tuple(f"{name} has no link, and is left out" for name, speed in speeds.items() if not speed)
    linked = []
    for name in sorted((name for name, speed in speeds.items() if speed), key=_natural_sort_key):
        mtu = read_typed_value(nics[name], "mtu_bytes", int)
        linked.append({"name": name, "speed_mbps": speeds[name]} | ({"mtu": mtu} if mtu else {}))
    return DraftEntry("nics", linked, (*down, *reasons))


def _nvme(seen: ObservedNode) -> DraftEntry:
    drives, reasons = seen.parts("probe", "nvme")
    sizes = Counter(int((read_typed_value(drive, "size_bytes", int) or 0) / 1e9) for drive in drives.values())
    if not any(sizes):
        return seen.make_unread_entry("nvme", *(reasons or ("no drive shows its size",)))
    (size, number), *others = Counter({gb: many for gb, many in sizes.items() if gb}).most_common()
    left_out = tuple(f"left out, since a spec has one size: {many} of {gb} GB" for gb, many in others)
    return DraftEntry("nvme", {"count": number, "size_gb": size}, (*left_out, *reasons))


def _disks(seen: ObservedNode) -> Iterator[DraftEntry]:
    disks, reasons = seen.parts("probe", "disk")
    sizes = {name: int((read_typed_value(disk, "size_bytes", int) or 0) / 1e9) for name, disk in disks.items()}
    if sizes:
        yield DraftEntry("disks", [{"name": name, "size_gb": size} for name, size in sizes.items()], reasons)
    elif seen.present_spec and seen.present_spec.disks:
        yield seen.make_unread_entry("disks", *(reasons or ("none answered",)))


def _psus(seen: ObservedNode) -> DraftEntry:
    supplies, reasons = seen.parts("bmc", "psu")
    if not supplies and reasons:
        return seen.make_unread_entry("psus", *reasons)
    if not supplies:
        return DraftEntry("psus", {"count": 0, "needed": 0})
    present = seen.present_spec
    if present and present.psus.count == len(supplies):
        review = f"nothing reads how many supplies must carry the load; needed is taken from {present.name}"
        return DraftEntry("psus", {"count": len(supplies), "needed": present.psus.needed}, (*reasons, review))
    guess = "needed is a guess, one less than there are: nothing reads how many supplies must carry the load"
    return DraftEntry("psus", {"count": len(supplies), "needed": max(1, len(supplies) - 1)}, (*reasons, guess))


def _count_entry(seen: ObservedNode, key: str, path: tuple[str, ...]) -> DraftEntry:
    parts, reasons = seen.parts(*path)
    if not parts:
        return seen.make_unread_entry(key, *(reasons or ("none answered",)))
    return DraftEntry(key, len(parts), reasons)


def _memory(seen: ObservedNode) -> DraftEntry:
    """Return the memory in GiB, a multiple of 32 as DIMMs have. The kernel's value is a little less."""
    read = seen.make_read_entry("memory_gib", seen.read("probe", "host", "memory_bytes"), int)
    if read.reviews or not read.value:
        return read if read.reviews else seen.make_unread_entry("memory_gib", "memory_gib reads 0")
    gib, rest = divmod(read.value, 2**30)
    if not rest:
        return DraftEntry("memory_gib", gib)
    review = f"memory_gib is a guess: the kernel has {read.value / 2**30:.1f} GiB, rounded up to what DIMMs hold"
    return DraftEntry("memory_gib", -(-(gib + 1) // 32) * 32, (review,))


def _kernel_cmdline(seen: ObservedNode) -> DraftEntry:
    read = seen.make_read_entry("kernel_cmdline", seen.read("probe", "host", "cmdline"), str)
    if read.reviews:
        return read
    review = "every setting of this node, without those for booting: keep those that all nodes like it must have"
    settings = [word for word in str(read.value).split() if word.partition("=")[0] not in BOOT_ONLY_PARAMETERS]
    return DraftEntry("kernel_cmdline", settings, (review,)) if settings else DraftEntry("kernel_cmdline", [])


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts eth10 after eth9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", name)]
