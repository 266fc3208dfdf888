"""Reads the kernel's settings and taints, and what the caller names, since the node's spec declares it.

The kernel's settings are modules, sysctls, huge pages, swap and IOMMU groups. A caller may name options of loaded
modules, settings of systemd's units, files (their SHA-256 and permissions), and settings of adapters.
"""

from __future__ import annotations

import errno
import os
import re
import selectors
import socket
import stat
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from assay.model.reading import READ_SYSCTLS, ReadingTree, absent, failed, unsupported, value
from assay.node.probe.host import count_cpu_list
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, run_tool

NVIDIA_PARAMETERS = "/proc/driver/nvidia/params"
NVIDIA_PREFIX = "NVreg_"
NVIDIA_NAMES = {"RestrictProfilingToAdminUsers": "RmProfilingAdminOnly"}
"""Options whose name in `NVIDIA_PARAMETERS` is another one (NVIDIA/open-gpu-kernel-modules, nv-reg.h)."""
SWITCHES = {"Y": "1", "N": "0"}
HUGE = "/sys/kernel/mm/hugepages"
VERSIONED = ("nvidia", "mlx5_core", "gdrdrv")
FABRIC_MANAGER = ("nv-fabricmanager", "--version")
FABRIC_MANAGER_VERSION = re.compile(r"version is\s*:\s*(\d[\w.]*)")
TOOL_S = 1.5
TAINTS = {  # Documentation/admin-guide/tainted-kernels.rst; those that mean that something went wrong
    2: "a processor out of its specification",
    4: "a machine check",
    5: "a bad page",
    7: "an oops",
    14: "a soft lockup",
}
SYSTEMCTL_S = 2.5
MAX_FILE_BYTES = 2**20
ADAPTERS_S = 6.0  # mstconfig takes seconds for an adapter; all are asked at once
UNIT_SETTINGS_S = 3.0
REACH_S = 1.5
IPMI_PORT = 623
PRESENCE_PING = bytes.fromhex("0600ff06000011be80000000")
"""RMCP, then ASF: a BMC that speaks IPMI over LAN answers without a login (DMTF DSP0136)."""
TPM_SECRET = re.compile(r"^\s*(owner|endorsement|lockout)AuthSet:\s*([01])\s*$", re.MULTILINE)
NamedArea = partial[Any] | TimedQuestion | ReadingTree


def read_kernel(root: NodeRoot, module_options: Sequence[str] = ()) -> LazyTree:
    """Return the `kernel` branch, with the options of modules that are named as `module.option`."""
    return {
        "modules": root.defer_read("/proc/modules", parse_modules),
        "versions": {
            **{name: root.defer_read(f"/sys/module/{name}/version") for name in VERSIONED},
            "fabric_manager": TimedQuestion(
                TOOL_S + 1, partial(run_tool, FABRIC_MANAGER, TOOL_S, parse_fabric_manager)
            ),
        },
        "module_options": partial(read_module_options, root, module_options),
        "sysctl": {
            name: root.defer_read(f"/proc/sys/{name.replace('.', '/')}", normalize_spaces) for name in READ_SYSCTLS
        },
        "hugepages": partial(_hugepages, root),
        "transparent_hugepages": root.defer_read("/sys/kernel/mm/transparent_hugepage/enabled", parse_bracketed_choice),
        "swap_bytes": root.defer_read("/proc/swaps", parse_swap_bytes),
        "numa_nodes": root.defer_read("/sys/devices/system/node/has_cpu", count_cpu_list),
        "iommu_groups": partial(_count_iommu_groups, root),
        "taints": root.defer_read("/proc/sys/kernel/tainted", describe_taints),
    }


def parse_fabric_manager(text: str) -> ReadingTree:
    """Parse `nv-fabricmanager --version`: `Fabric Manager version is : 570.172.08`. It is the version on disk."""
    version = FABRIC_MANAGER_VERSION.search(text)
    return value(version[1]) if version else failed(f"nv-fabricmanager: cannot make sense of {text.strip()[:80]!r}")


def parse_modules(text: str) -> list[str]:
    """Return the names of the loaded modules, sorted. Raises ValueError for a kernel without one."""
    names = sorted(line.split()[0] for line in text.splitlines() if line.split())
    if not names:
        raise ValueError("no module is loaded")
    return names


def normalize_spaces(text: str) -> str:
    """Return a sysctl's value with one blank between numbers, as sysctl(8) prints it."""
    return " ".join(text.split())


def parse_bracketed_choice(text: str) -> str:
    """Turn `always [madvise] never` into `madvise`. Raises ValueError."""
    return text[text.index("[") + 1 : text.index("]")]


def parse_swap_bytes(text: str) -> int:
    """Return the size of all swap areas, in bytes. Raises ValueError without the heading."""
    heading, *areas = text.splitlines()
    if not heading.startswith("Filename"):
        raise ValueError(heading)
    return sum(int(area.split()[2]) for area in areas) * 1024


def describe_taints(text: str) -> list[str]:
    """Return what went wrong since boot, from the bits of the kernel's taint. Raises ValueError."""
    bits = int(text)
    return [taint for bit, taint in TAINTS.items() if bits >> bit & 1]


def _hugepages(root: NodeRoot) -> ReadingTree | LazyTree:
    """Return the reserved huge pages by page size, `2048kB`."""
    try:
        sizes = root.list_names(HUGE)
    except OSError as error:
        return leaf_for_error(HUGE, error)
    pools = {
        size.removeprefix("hugepages-"): {
            "total": root.defer_read(f"{HUGE}/{size}/nr_hugepages", int),
            "free": root.defer_read(f"{HUGE}/{size}/free_hugepages", int),
        }
        for size in sizes
    }
    return pools or absent(f"{HUGE} is empty")


def _count_iommu_groups(root: NodeRoot) -> ReadingTree:
    """Count the IOMMU groups; there are none where no IOMMU translates addresses."""
    folder = "/sys/kernel/iommu_groups"
    try:
        return value(len(root.list_names(folder)))
    except OSError as error:
        return leaf_for_error(folder, error)


def read_module_options(root: NodeRoot, names: Sequence[str]) -> ReadingTree | LazyTree:
    """Return the options named as `module.option`, by module. A switch is `1` or `0`."""
    options: dict[str, dict[str, Any]] = {}
    for name in names:
        module, _, option = name.partition(".")
        options.setdefault(module, {})[option] = partial(_read_option, root, module, option)
    return options or absent("the caller names no module option")


def _read_option(root: NodeRoot, module: str, option: str) -> ReadingTree:
    path = f"/sys/module/{module}/parameters/{option}"
    if root.exists(path):
        return root.read_leaf(path, lambda text: SWITCHES.get(text, text))
    if module == "nvidia" and option.startswith(NVIDIA_PREFIX):
        return _read_nvidia_option(root, option.removeprefix(NVIDIA_PREFIX))
    if not root.exists(f"/sys/module/{module}"):
        return absent(f"{module} is not loaded")
    return unsupported(f"{module} has no option {option}, or does not show it in /sys/module")


def _read_nvidia_option(root: NodeRoot, option: str) -> ReadingTree:
    """NVIDIA's driver shows its options in a file of its own, as `Name: value`."""
    try:
        text = root.read_text(NVIDIA_PARAMETERS)
    except OSError as error:
        return leaf_for_error(NVIDIA_PARAMETERS, error)
    shown = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    name = NVIDIA_NAMES.get(option, option)
    return value(shown[name].strip('"')) if name in shown else unsupported(f"{NVIDIA_PARAMETERS} does not show {name}")


def read_unit_settings(names: Sequence[str]) -> ReadingTree:
    """Return the settings named as `unit/Setting`, by unit, as systemd has them loaded."""
    wanted: dict[str, list[str]] = {}
    for name in names:
        unit, _, setting = name.partition("/")
        wanted.setdefault(unit, []).append(setting)
    spellings = {spelling for settings in wanted.values() for name in settings for spelling in _spell(name)}
    properties = ["LoadState", *sorted(spellings)]
    command = ["systemctl", "show", "--no-pager", f"--property={','.join(properties)}", *wanted]
    return run_tool(command, SYSTEMCTL_S, lambda text: parse_unit_settings(text, wanted))


def _spell(setting: str) -> tuple[str, ...]:
    """Return the names that systemd may show a setting by: `TimeoutStopSec` is its property `TimeoutStopUSec`."""
    return (setting, f"{setting[:-3]}USec") if setting.endswith("Sec") else (setting,)


def parse_unit_settings(text: str, wanted: dict[str, list[str]]) -> ReadingTree:
    """Parse `systemctl show`: a block of `Name=value` for each unit, in the order of the units."""
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")]
    known = [block for block in blocks if "LoadState" in block]
    if len(known) != len(wanted):
        return failed(f"systemctl: {(text.strip().splitlines() or ['it printed nothing'])[-1][:120]}")
    units: ReadingTree = {}
    for unit, block in zip(wanted, known, strict=True):
        if block["LoadState"] != "loaded":
            units[unit] = absent(f"{unit} is not loaded: {block['LoadState']}")
            continue
        units[unit] = {}
        for setting in wanted[unit]:
            shown = next((block[name] for name in _spell(setting) if name in block), None)
            leaf = unsupported(f"systemd shows no {setting} of {unit}") if shown is None else value(shown)
            units[unit][setting] = leaf
    return units


def read_chosen_files(root: NodeRoot, paths: Sequence[str]) -> LazyTree:
    """Return the `files` branch, by path."""
    return {path: partial(_read_file, root, path) for path in paths}


def _read_file(root: NodeRoot, path: str) -> ReadingTree:
    """Return `sha256` and `mode` of a regular file. Opening another kind of file might wait without end."""
    try:
        descriptor = os.open(root.local_path(path), os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return leaf_for_error(path, error)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return failed(f"{path} is no regular file")
        content = os.read(descriptor, MAX_FILE_BYTES + 1)
    except OSError as error:
        return leaf_for_error(path, error)
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        return failed(f"{path} has more than {MAX_FILE_BYTES} bytes")
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    import hashlib  # loads OpenSSL: only where files are asked for

    return {"sha256": value(hashlib.sha256(content).hexdigest()), "mode": value(mode)}


def ask_files(root: NodeRoot, paths: list[str]) -> NamedArea:
    """Return the area `files`: the SHA-256 and the mode of each."""
    if not paths:
        return absent("the caller names no file")

    return partial(read_chosen_files, root, paths)


def ask_unit_settings(names: list[str]) -> NamedArea:
    """Return the area `unit_settings`, for names such as `unit/Setting`."""
    if not names:
        return absent("the caller names no setting of a unit")

    return TimedQuestion(UNIT_SETTINGS_S, partial(read_unit_settings, names))


def ask_adapter_settings(root: NodeRoot, adapters: str) -> NamedArea:
    """Return the area `adapter_settings`, for `PLACE=NAME+NAME,…`."""
    if not adapters:
        return absent("the caller names no adapter")
    from assay.node.probe.devices.network_adapters import read_adapter_settings

    return TimedQuestion(ADAPTERS_S, partial(read_adapter_settings, root, adapters))


def ask_tpm(wanted: str) -> NamedArea:
    """Return the area `tpm`: for which hierarchies somebody has set a secret, by the TPM's own flags."""
    if not wanted:
        return absent("the caller does not ask for the TPM")
    return TimedQuestion(TOOL_S + 1, partial(run_tool, ("tpm2_getcap", "properties-variable"), TOOL_S, parse_tpm))


def parse_tpm(text: str) -> ReadingTree:
    """Parse TPMA_PERMANENT as `tpm2_getcap properties-variable` prints it, such as `ownerAuthSet: 0`."""
    seen = dict(TPM_SECRET.findall(text))
    if len(seen) < 3:
        return failed(f"tpm2_getcap: cannot make sense of {text.strip()[:80]!r}")
    return {name: value(flag == "1") for name, flag in seen.items()}


def ask_reach(place: str) -> NamedArea:
    """Return the area `bmc_network`: which ports at `ADDRESS/PORT+PORT` answer this node."""
    if not place:
        return absent("the caller names no address of a BMC")
    address, _, ports = place.rpartition("/")
    return TimedQuestion(REACH_S + 1, partial(read_reach, address, [int(port) for port in ports.split("+")]))


def read_reach(address: str, ports: Sequence[int]) -> ReadingTree:
    """Return the ports that answer: TCP, if only with a refusal, and IPMI over LAN (ASF's presence ping).

    A refusal counts: nobody can tell whether the BMC sent it.
    """
    asked, answering = selectors.DefaultSelector(), []
    try:
        for port in ports:
            _ask_port(asked, address, port, socket.SOCK_STREAM)
        _ask_port(asked, address, IPMI_PORT, socket.SOCK_DGRAM)
        ends = time.monotonic() + REACH_S
        while asked.get_map() and (left := ends - time.monotonic()) > 0:
            for place, name in [key.data for key, _ in asked.select(left)]:
                if place.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (0, errno.ECONNREFUSED):
                    answering.append(name)
                asked.unregister(place)
                place.close()
    except socket.gaierror as error:
        return failed(f"{address}: {error.strerror}")
    finally:
        for place, _ in [key.data for key in asked.get_map().values()]:
            place.close()
        asked.close()
    return {"answers": value(sorted(answering))}


def _ask_port(asked: selectors.BaseSelector, address: str, port: int, kind: socket.SocketKind) -> None:
    """Begin to ask a port. One that no way leads to is not waited for."""
    family, _, _, _, place = socket.getaddrinfo(address, port, type=kind)[0]
    opened = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    is_asked = opened.connect_ex(place) in (0, errno.EINPROGRESS)
    if is_asked and kind == socket.SOCK_DGRAM:
        opened.send(PRESENCE_PING)
    if is_asked:
        is_stream = kind == socket.SOCK_STREAM
        answer = selectors.EVENT_READ | (selectors.EVENT_WRITE if is_stream else 0)
        asked.register(opened, answer, (opened, f"{port}/{'tcp' if is_stream else 'udp'}"))
    else:
        opened.close()


def read_wiped_drives(root: NodeRoot, markers: dict[str, str]) -> Any:
    """Return the branch `drive_wipe`. `markers` is what a wipe wrote, by serial number."""
    from assay.node.probe.devices.nvme import read_drive_wipe

    return read_drive_wipe(root, markers)
