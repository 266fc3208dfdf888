"""What a good node's evidence says about the spec that it fits, entry by entry. Pure: evidence in, entries out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from assay.model.evidence import Evidence
from assay.model.firmware import FirmwareBundle
from assay.model.fleet import Node
from assay.model.nodespec import NodeSpec
from assay.model.reading import Reading, as_reading

BOOTING = ("BOOT_IMAGE", "root", "rootflags", "rootfstype", "initrd", "ro", "rw", "quiet", "splash", "console")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the draft. `value` is None where nothing is known; `reviews` say what a person has to look at."""

    key: str
    value: Any = None
    reviews: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A node as the evidence has it, what the inventory says of it, and its present spec, where it has one."""

    evidence: Evidence
    node: Node
    present: NodeSpec | None = None
    bundles: Mapping[str, FirmwareBundle] = field(default_factory=dict)

    def read(self, *path: str) -> Reading:
        """Return the reading at a path, channel first."""
        return self.evidence.read(*path)

    def parts(self, *path: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parts below a branch that answered, and why the others, or all of them, did not."""
        branch = self.read(*path)
        if branch.kind != "value" or not isinstance(branch.value, Mapping):
            return {}, (f"{'.'.join(path)} was not read: {branch.kind}: {branch.reason}",)
        silent = {name: as_reading(tree) for name, tree in branch.value.items()}
        reasons = tuple(f"{name}: {one.kind}: {one.reason}" for name, one in silent.items() if one is not None)
        return {name: tree for name, tree in branch.value.items() if silent[name] is None}, reasons

    def unread(self, key: str, *why: str) -> Entry:
        """Return the entry of what evidence does not tell: the present spec's, if there is one."""
        standing = self.present.model_dump(mode="json").get(key) if self.present else None
        if self.present is None or standing in (None, "", [], {}):
            return Entry(key, None, why)
        return Entry(key, standing, (*why[:-1], f"{why[-1]}; taken from {self.present.name}"))

    def known(self, key: str, reading: Reading, kind: type) -> Entry:
        """Return the entry of one reading, which must be of a kind."""
        if reading.kind != "value":
            return self.unread(key, f"{key} was not read: {reading.kind}: {reading.reason}")
        if not is_a(kind, reading.value):
            return self.unread(key, f"{key} reads {reading.value!r}, which is no {kind.__name__}")
        return Entry(key, reading.value)


def entries(seen: Seen) -> Iterator[Entry]:
    """Yield every entry of the spec but its name and its limits, in the order in which specs have them."""
    yield seen.known("product", seen.read("probe", "host", "product"), str)
    yield seen.unread("height_u", "nothing reads how many rack units a node fills")
    if seen.present and seen.present.rack:
        yield seen.unread("rack", "nothing reads what the whole rack holds")
    yield _firmware(seen)
    yield seen.known("driver", seen.read("probe", "gpu", "driver"), str)
    yield _gpus(seen)
    yield _hcas(seen)
    yield _nics(seen)
    yield _nvme(seen)
    yield _psus(seen)
    yield _counted(seen, "fans", ("bmc", "fan"))
    yield seen.known("cpu_sockets", seen.read("probe", "host", "cpu_sockets"), int)
    yield seen.known("cpu_threads", seen.read("probe", "host", "cpu_threads"), int)
    yield _memory(seen)
    yield seen.unread("bios", "nothing reads the BIOS settings: list those that matter")
    yield _kernel_cmdline(seen)


def _firmware(seen: Seen) -> Entry:
    """Return the one bundle that the node carries, version by version."""
    fits = [name for name, bundle in seen.bundles.items() if _carries(seen, bundle)]
    if len(fits) == 1:
        return Entry("firmware", fits[0])
    found = f"{' and '.join(fits)} both fit" if fits else "the node carries no bundle of specs/firmware as a whole"
    return seen.unread("firmware", found)


def _carries(seen: Seen, bundle: FirmwareBundle) -> bool:
    wanted = [(part, component.version) for component in bundle.components for part in component.inventory]
    return all(seen.read("bmc", "firmware", part).value == version for part, version in wanted)


def _gpus(seen: Seen) -> Entry:
    found, silent = seen.parts("probe", "gpu", "devices")
    if not found:
        return seen.unread("gpus", *(silent or ("no GPU answered",)))
    in_order = sorted(found, key=lambda pci: (value_of(found[pci], "index", int) or 0, pci))
    models = Counter(value_of(gpu, "name", str) or "unknown" for gpu in found.values())
    mixed = () if len(models) == 1 else (f"the GPUs differ: {', '.join(models)}",)
    lost = tuple(f"a GPU did not answer, and is left out: {reason}" for reason in silent)
    return Entry("gpus", {"model": models.most_common(1)[0][0], "pci": in_order}, (*mixed, *lost))


def _hcas(seen: Seen) -> Entry:
    found, silent = seen.parts("probe", "hca")
    if not found:
        return seen.unread("hcas", *(silent or ("no adapter answered",)))
    rails, strange = _rails(seen, found)
    places, guessed = _hca_places(seen, sorted(found, key=lambda name: rails[name]))
    hcas = [{"name": name, "rail": rails[name], "pci": pci} for name, pci in places.items()]
    return Entry("hcas", hcas, (*strange, *guessed, *silent))


def _rails(seen: Seen, found: Mapping[str, Any]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return each adapter's rail: the place of its GUID in the inventory, else one that is free."""
    guids = {guid: rail for rail, guid in enumerate(seen.node.hca_guids)}
    listed = {name: guids.get(value_of(hca, "guid", str) or "") for name, hca in found.items()}
    taken = {rail for rail in listed.values() if rail is not None}
    free = (rail for rail in count() if rail not in taken)
    rails = {name: next(free) if rail is None else rail for name, rail in listed.items()}
    unlisted = [name for name in found if listed[name] is None]
    return rails, tuple(f"{name} has no GUID of the inventory: its rail is a guess" for name in unlisted)


def _hca_places(seen: Seen, names: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the PCI addresses of adapters in rail order: the spec's, or the devices in order that are no GPUs."""
    standing = {hca.name: hca.pci for hca in seen.present.hcas} if seen.present else {}
    if seen.present and set(names) <= set(standing):
        said = f"nothing reads the adapters' PCI addresses; taken from {seen.present.name}"
        return {name: standing[name] for name in names}, (said,)
    others = sorted(set(seen.parts("probe", "aer")[0]) - set(seen.parts("probe", "gpu", "devices")[0]))
    if len(others) != len(names):
        return dict.fromkeys(names, "unknown"), ("nothing reads the adapters' PCI addresses: fill them in",)
    said = "PCI addresses are a guess: in rail order, those of the PCI devices that are no GPUs"
    return dict(zip(names, others, strict=True)), (said,)


def _nics(seen: Seen) -> Entry:
    found, silent = seen.parts("probe", "nic")
    speeds = {name: value_of(nic, "speed_mbps", int) or 0 for name, nic in found.items()}
    if not any(speeds.values()):
        return seen.unread("nics", *(silent or ("no interface says its speed: none has a link",)))
    down = tuple(f"{name} has no link, and is left out" for name, speed in speeds.items() if not speed)
    linked = [
        {"name": name, "speed_mbps": speeds[name]} for name in sorted(speeds, key=_as_people_count) if speeds[name]
    ]
    return Entry("nics", linked, (*down, *silent))


def _nvme(seen: Seen) -> Entry:
    found, silent = seen.parts("probe", "nvme")
    sizes = Counter(int((value_of(drive, "size_bytes", int) or 0) / 1e9) for drive in found.values())
    if not any(sizes):
        return seen.unread("nvme", *(silent or ("no drive says its size",)))
    (size, drives), *others = Counter({gb: many for gb, many in sizes.items() if gb}).most_common()
    apart = tuple(f"left out, since a spec has one size: {many} of {gb} GB" for gb, many in others)
    return Entry("nvme", {"count": drives, "size_gb": size}, (*apart, *silent))


def _psus(seen: Seen) -> Entry:
    found, silent = seen.parts("bmc", "psu")
    if not found and silent:
        return seen.unread("psus", *silent)
    standing = seen.present.psus if seen.present else None
    if not found or (standing and standing.count == len(found)):
        said = ("nothing reads how many supplies must carry the load; needed is the present spec's",) if found else ()
        return Entry("psus", {"count": len(found), "needed": standing.needed if standing else 0}, (*silent, *said))
    guess = "needed is a guess, one less than there are: nothing reads how many supplies must carry the load"
    return Entry("psus", {"count": len(found), "needed": max(1, len(found) - 1)}, (*silent, guess))


def _counted(seen: Seen, key: str, path: tuple[str, ...]) -> Entry:
    found, silent = seen.parts(*path)
    return Entry(key, len(found), silent) if found else seen.unread(key, *(silent or ("none answered",)))


def _memory(seen: Seen) -> Entry:
    """Return the memory in GiB; what the kernel has is a little less than the DIMMs hold, which come in 32s."""
    read = seen.known("memory_gib", seen.read("probe", "host", "memory_bytes"), int)
    if read.reviews or not read.value:
        return read if read.reviews else seen.unread("memory_gib", "memory_gib reads 0")
    gib, rest = divmod(read.value, 2**30)
    if not rest:
        return Entry("memory_gib", gib)
    said = f"memory_gib is a guess: the kernel has {read.value / 2**30:.1f} GiB, rounded up to what DIMMs hold"
    return Entry("memory_gib", -(-(gib + 1) // 32) * 32, (said,))


def _kernel_cmdline(seen: Seen) -> Entry:
    read = seen.known("kernel_cmdline", seen.read("probe", "host", "cmdline"), str)
    if read.reviews:
        return read
    said = "every setting of this node but how it boots: keep those that all its like must have"
    settings = [word for word in str(read.value).split() if word.partition("=")[0] not in BOOTING]
    return Entry("kernel_cmdline", settings, (said,)) if settings else Entry("kernel_cmdline", [])


def _as_people_count(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts eth10 after eth9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def value_of(tree: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return what a reading below a part says, if it is of a kind; else None."""
    reading = as_reading(tree.get(name)) if isinstance(tree, Mapping) else None
    return reading.value if reading is not None and reading.kind == "value" and is_a(kind, reading.value) else None


def is_a(kind: type | tuple[type, ...], value: Any) -> bool:
    """Say whether a value is of a kind; true and false are no numbers."""
    return isinstance(value, kind) and not isinstance(value, bool)
