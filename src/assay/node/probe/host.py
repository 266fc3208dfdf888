"""Reads the host: its identity, uptime, memory, load and root file system. `cpu` reads its processors."""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import ReadingTree, value
from assay.node.probe.cpu import count_online_cpus, count_sockets, read_cpu
from assay.node.probe.file_systems import read_space
from assay.node.probe.node_access import BOOT_ID_FILE, LazyTree, NodeRoot, TimedQuestion, require_text
from assay.node.probe.processes_and_services import PROCESSES_S, read_processes

DMI = "/sys/class/dmi/id"


def read_host(root: NodeRoot) -> LazyTree:
    """Return the `host` branch. Only root can read the serial numbers in DMI."""
    return {
        "hostname": root.defer_read("/proc/sys/kernel/hostname", require_text),
        "boot_id": root.defer_read(BOOT_ID_FILE, require_text),
        "uptime_s": root.defer_read("/proc/uptime", lambda text: float(text.split()[0])),
        "kernel": root.defer_read("/proc/sys/kernel/osrelease", require_text),
        "cmdline": root.defer_read("/proc/cmdline"),
        **_identity(root),
        "cpu_sockets": partial(count_sockets, root),
        "cpu_threads": partial(count_online_cpus, root),
        "cpu": read_cpu(root),
        "memory_bytes": root.defer_read("/proc/meminfo", parse_memory_bytes),
        "root_fs": {
            "read_only": root.defer_read("/proc/mounts", root_is_read_only),
            "used_percent": lambda: _used_percent(read_space(root, "/")),
        },
        "load": partial(_load, root),
        "processes": TimedQuestion(PROCESSES_S, partial(read_processes, root)),
    }


def _identity(root: NodeRoot) -> LazyTree:
    def dmi(name: str) -> object:
        return root.defer_read(f"{DMI}/{name}", require_text)

    return {
        "vendor": dmi("sys_vendor"),
        "product": dmi("product_name"),
        "serial": dmi("product_serial"),
        "board": {"vendor": dmi("board_vendor"), "name": dmi("board_name"), "serial": dmi("board_serial")},
        "bios": {"vendor": dmi("bios_vendor"), "version": dmi("bios_version"), "date": dmi("bios_date")},
    }


def parse_memory_bytes(meminfo: str) -> int:
    """Return the memory that the kernel manages, in bytes: a little less than the DIMMs hold."""
    (kib,) = re.findall(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)
    return int(kib) * 1024


def root_is_read_only(mounts: str) -> bool:
    """Return whether `/` is mounted read-only; the last mount on it counts. Raises ValueError where none is listed."""
    options = [fields[3] for fields in map(str.split, mounts.splitlines()) if len(fields) > 3 and fields[1] == "/"]
    if not options:
        raise ValueError("no / among the mounts")
    return "ro" in options[-1].split(",")


def _used_percent(space: ReadingTree) -> ReadingTree:
    """Return df's leaf `used_percent`, or the leaf that says why df gave none."""
    leaf: ReadingTree = space.get("used_percent", space)
    return leaf


def _load(root: NodeRoot) -> ReadingTree:
    """Return the load averages over one, five and fifteen minutes."""
    averages = root.read_leaf("/proc/loadavg", parse_load)
    if "value" not in averages:
        return averages
    return dict(zip(("one_min", "five_min", "fifteen_min"), map(value, averages["value"]), strict=True))


def parse_load(loadavg: str) -> list[float]:
    """Return the three averages of /proc/loadavg. Raises ValueError."""
    one, five, fifteen, _running, _last = loadavg.split()
    return [float(one), float(five), float(fifteen)]
