"""What a good node's evidence says about the spec that it fits, entry by entry. Pure: evidence in, entries out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from assay.model.firmware import FirmwareBundle
from assay.observe.learned_host import host
from assay.observe.seen import Entry, Seen, told, value_of

BOOTING = ("BOOT_IMAGE", "root", "rootflags", "rootfstype", "initrd", "ro", "rw", "quiet", "splash", "console")


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
    yield host(seen)
    yield seen.unread("bios", "nothing reads the BIOS settings: list those that matter")
    yield _kernel_cmdline(seen)
    if seen.present:
        yield seen.unread("boot", "how a node should start is for people to say")
        yield _counted(seen, "leak_detectors", ("bmc", "leak"))


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
    """Return the PCI addresses of adapters in rail order; the spec's where one does not tell its own."""
    standing = {hca.name: hca.pci for hca in seen.present.hcas} if seen.present else {}
    read = {name: told(seen.read("probe", "hca", name, "pci"), str) for name in names}
    places = {name: pci for name, pci in read.items() if pci}
    untold = tuple(
        f"{name} does not tell its PCI address{'; taken from the spec' if name in standing else ': fill it in'}"
        for name in names
        if name not in places
    )
    return {name: places.get(name) or standing.get(name, "unknown") for name in names}, untold


def _nics(seen: Seen) -> Entry:
    found, silent = seen.parts("probe", "nic")
    speeds = {name: value_of(nic, "speed_mbps", int) or 0 for name, nic in found.items()}
    if not any(speeds.values()):
        return seen.unread("nics", *(silent or ("no interface says its speed: none has a link",)))
    down = tuple(f"{name} has no link, and is left out" for name, speed in speeds.items() if not speed)
    linked = [_nic(name, found[name]) for name in sorted(speeds, key=_as_people_count) if speeds[name]]
    return Entry("nics", linked, (*down, *silent))


def _nic(name: str, nic: Mapping[str, Any]) -> dict[str, Any]:
    mtu = value_of(nic, "mtu_bytes", int)
    return {"name": name, "speed_mbps": value_of(nic, "speed_mbps", int)} | ({"mtu": mtu} if mtu else {})


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
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", name)]
