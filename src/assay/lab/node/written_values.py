"""What commands wrote on a virtual node, taken into its state: a real kernel would have taken it at once.

Commands change plain files of the node's root. The next command on the node begins with their values in the state, so
the lab's faults, a later rendering and the probe agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld

TRANSPARENT = "sys/kernel/mm/transparent_hugepage/enabled"
HUGE_PAGE_POOLS = "sys/kernel/mm/hugepages"
GOVERNORS = "sys/devices/system/cpu/cpufreq"


WrittenValue = tuple[VirtualNodeState, str, str | int | list[str]]


def absorb_written_values(world: LabWorld, node: str, state: VirtualNodeState) -> VirtualNodeState:
    """Return the node's state with the values that its files have now, and store it if that changes it."""
    if not _absorb(world.folder(node) / "root", state):
        return state
    with world.change(node) as locked:
        _absorb(world.folder(node) / "root", locked)
    return world.load(node)


def _absorb(root: Path, state: VirtualNodeState) -> bool:
    """Change `state` in place to what the files say. Return whether that changed it."""
    host, changed = state["host"], False
    for part, key, text in _list_written(root, state):
        if part.get(key) != text:
            part[key] = text
            changed = True
    names = [line.split()[0] for line in _read(root / "proc/modules").splitlines() if line.strip()]
    if names and sorted(names) != sorted(host["modules"]):
        host["modules"] = sorted(set(names))
        changed = True
    return changed


def _list_written(root: Path, state: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield the part of the state, its key, and the value in the file."""
    host = state["host"]
    yield from _list_huge_pages(root, host)
    for name in host["sysctls"]:
        if text := _read(root / "proc/sys" / name.replace(".", "/")):
            yield host["sysctls"], name, text
    for path in (root / GOVERNORS).glob("policy*/scaling_governor"):
        yield host, "governor", _read(path)
    for line in _read(root / "run/systemctl").splitlines():
        unit, _, active, *_ = line.split()
        if (name := unit.removesuffix(".service")) in host["services"]:
            yield host["services"], name, active
    yield from _list_installed(root, host)
    yield from _list_service_settings(root, host)
    for nic in state["nics"]:
        if (text := _read(root / "sys/class/net" / nic["name"] / "mtu")).isdecimal():
            yield nic, "mtu", int(text)


def _list_huge_pages(root: Path, host: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield when the kernel uses transparent huge pages, and how many others it reserves."""
    if (text := _read(root / TRANSPARENT)) and "[" not in text:
        yield host, "transparent_hugepages", text
    for size in host.get("hugepages", {}):
        if (text := _read(root / HUGE_PAGE_POOLS / f"hugepages-{size}/nr_hugepages")).isdecimal():
            yield host["hugepages"], size, int(text)


def _list_service_settings(root: Path, host: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield the settings of units that systemd has loaded, and the servers that chrony uses."""
    for unit, settings in host.get("unit_settings", {}).items():
        lines = [line.partition("=") for line in _read(root / "run/unit-settings" / unit).splitlines()]
        yield from ((settings, name, text) for name, text in {name: text for name, _, text in lines[1:]}.items())
    if rows := _read(root / "run/chronyc-sources").splitlines():
        yield host["clock"], "sources", [row.split(",")[2] for row in rows]


def _list_installed(root: Path, host: VirtualNodeState) -> Iterator[WrittenValue]:
    """Yield what packages and roles wrote to the disk."""
    if text := _read(root / "run/nv-fabricmanager"):
        yield host, "fabric_manager", text.split()[-1]
    for path in host.get("files", {}):
        yield host["files"], path, _read_whole(root / path.lstrip("/"))


def _read(path: Path) -> str:
    return _read_whole(path).strip()


def _read_whole(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
