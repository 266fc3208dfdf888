"""The host: who it is, how big, how long up, how busy, and whether its root file system is well."""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import value
from assay.probe.cpu import online, read_cpu, sockets
from assay.probe.file_systems import space
from assay.probe.files import Root, Tree, not_empty
from assay.probe.lazy import Lazy, Timed
from assay.probe.processes import PROCESSES_S, read_processes

DMI = "/sys/class/dmi/id"


def read_host(root: Root) -> Lazy:
    """Return the `host` branch. What DMI says of serial numbers needs root to read."""
    return {
        "hostname": root.later("/proc/sys/kernel/hostname", not_empty),
        "boot_id": root.later("/proc/sys/kernel/random/boot_id", not_empty),
        "uptime_s": root.later("/proc/uptime", lambda text: float(text.split()[0])),
        "kernel": root.later("/proc/sys/kernel/osrelease", not_empty),
        "cmdline": root.later("/proc/cmdline"),
        **_identity(root),
        "cpu_sockets": partial(sockets, root),
        "cpu_threads": partial(online, root),
        "cpu": read_cpu(root),
        "memory_bytes": root.later("/proc/meminfo", memory_bytes),
        "root_fs": {
            "read_only": root.later("/proc/mounts", root_is_read_only),
            "used_percent": lambda: used_percent(space(root, "/")),
        },
        "load": partial(_load, root),
        "processes": Timed(PROCESSES_S, partial(read_processes, root)),
    }


def _identity(root: Root) -> Lazy:
    def dmi(name: str) -> object:
        return root.later(f"{DMI}/{name}", not_empty)

    return {
        "vendor": dmi("sys_vendor"),
        "product": dmi("product_name"),
        "serial": dmi("product_serial"),
        "board": {"vendor": dmi("board_vendor"), "name": dmi("board_name"), "serial": dmi("board_serial")},
        "bios": {"vendor": dmi("bios_vendor"), "version": dmi("bios_version"), "date": dmi("bios_date")},
    }


def memory_bytes(meminfo: str) -> int:
    """Return what the kernel has to give out, in bytes: a little less than the DIMMs hold."""
    (kib,) = re.findall(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)
    return int(kib) * 1024


def root_is_read_only(mounts: str) -> bool:
    """Say whether `/` is mounted read-only: the last mount on it counts. Raises ValueError when none is listed."""
    options = [fields[3] for fields in map(str.split, mounts.splitlines()) if len(fields) > 3 and fields[1] == "/"]
    if not options:
        raise ValueError("no / among the mounts")
    return "ro" in options[-1].split(",")


def used_percent(space: Tree) -> Tree:
    """Return the one leaf, or the reason why df gave none."""
    leaf: Tree = space.get("used_percent", space)
    return leaf


def _load(root: Root) -> Tree:
    """Return the averages over one, five and fifteen minutes of processes that ran, wanted to, or waited for a disk."""
    averages = root.read("/proc/loadavg", load)
    if "value" not in averages:
        return averages
    return dict(zip(("one_min", "five_min", "fifteen_min"), map(value, averages["value"]), strict=True))


def load(loadavg: str) -> list[float]:
    """Return the three averages of /proc/loadavg. Raises ValueError."""
    one, five, fifteen, _running, _last = loadavg.split()
    return [float(one), float(five), float(fifteen)]
