"""Derives each entry of a node spec from a good node's evidence. Pure: evidence in, entries out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from assay.model.specs.firmware_bundle import FirmwareBundle
from assay.model.specs.kernel_arguments import ATTEMPT, IMAGE
from assay.observe.evidence_lookup import DraftEntry, ObservedNode, read_typed_value, typed_value
from assay.observe.settings_from_evidence import learn_bmc, learn_host

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
    yield _nics(seen)
    yield _nvme(seen)
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
    matching = [name for name, bundle in seen.bundles.items() if _runs_bundle(seen, bundle)]
    if len(matching) == 1:
        return DraftEntry("firmware", matching[0])
    review = (
        f"{' and '.join(matching)} both fit" if matching else "the node runs no bundle of specs/firmware as a whole"
    )
    return seen.make_unread_entry("firmware", review)


def _runs_bundle(seen: ObservedNode, bundle: FirmwareBundle) -> bool:
    wanted = [(part, component.version) for component in bundle.components for part in component.inventory]
    return bool(wanted) and all(seen.read("bmc", "firmware", part).value == version for part, version in wanted)


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
    reviews = {
        index: tuple(text for text in (guessed.get(name), unread.get(name)) if text) for index, name in enumerate(names)
    }
    return DraftEntry("hcas", hcas, reasons, {index: texts for index, texts in reviews.items() if texts})


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


def _nics(seen: ObservedNode) -> DraftEntry:
    nics, reasons = seen.parts("probe", "nic")
    speeds = {name: read_typed_value(nic, "speed_mbps", int) or 0 for name, nic in nics.items()}
    if not any(speeds.values()):
        return seen.make_unread_entry("nics", *(reasons or ("no interface shows its speed: none has a link",)))
    down = tuple(f"{name} has no link, and is left out" for name, speed in speeds.items() if not speed)
    linked = [_nic(name, nics[name]) for name in sorted(speeds, key=_natural_sort_key) if speeds[name]]
    return DraftEntry("nics", linked, (*down, *reasons))


def _nic(name: str, nic: Mapping[str, Any]) -> dict[str, Any]:
    mtu = read_typed_value(nic, "mtu_bytes", int)
    return {"name": name, "speed_mbps": read_typed_value(nic, "speed_mbps", int)} | ({"mtu": mtu} if mtu else {})


def _nvme(seen: ObservedNode) -> DraftEntry:
    drives, reasons = seen.parts("probe", "nvme")
    sizes = Counter(int((read_typed_value(drive, "size_bytes", int) or 0) / 1e9) for drive in drives.values())
    if not any(sizes):
        return seen.make_unread_entry("nvme", *(reasons or ("no drive shows its size",)))
    (size, number), *others = Counter({gb: many for gb, many in sizes.items() if gb}).most_common()
    left_out = tuple(f"left out, since a spec has one size: {many} of {gb} GB" for gb, many in others)
    return DraftEntry("nvme", {"count": number, "size_gb": size}, (*left_out, *reasons))


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
