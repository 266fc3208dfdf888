"""The host: who it is, how big, how long up, and whether its root file system is well."""

from __future__ import annotations

import os
import re

from assay.model.reading import value
from assay.probe.files import Root, Tree, unread


def read_host(root: Root) -> Tree:
    """Return the `host` branch. `product` and `serial` come from DMI (the serial needs root to read)."""
    return {
        "hostname": root.read("/proc/sys/kernel/hostname", _not_empty),
        "boot_id": root.read("/proc/sys/kernel/random/boot_id", _not_empty),
        "uptime_s": root.read("/proc/uptime", lambda text: float(text.split()[0])),
        "kernel": root.read("/proc/sys/kernel/osrelease", _not_empty),
        "cmdline": root.read("/proc/cmdline"),
        "product": root.read("/sys/class/dmi/id/product_name", _not_empty),
        "serial": root.read("/sys/class/dmi/id/product_serial", _not_empty),
        "cpu_sockets": root.read("/proc/cpuinfo", sockets),
        "cpu_threads": root.read("/proc/cpuinfo", threads),
        "memory_bytes": root.read("/proc/meminfo", memory_bytes),
        "root_fs": {"read_only": root.read("/proc/mounts", root_is_read_only), "used_percent": _used_percent(root)},
    }


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("empty")
    return text


def sockets(cpuinfo: str) -> int:
    """Count the different `physical id`s. Raises ValueError where the architecture names none."""
    return _at_least_one(len(set(re.findall(r"^physical id\s*:\s*(\d+)", cpuinfo, re.MULTILINE))))


def threads(cpuinfo: str) -> int:
    """Count the online logical CPUs. Raises ValueError when none is named."""
    return _at_least_one(len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)))


def _at_least_one(count: int) -> int:
    if count == 0:
        raise ValueError("none")
    return count


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


def _used_percent(root: Root) -> Tree:
    """Return how full the file system of `/` is, as df counts: used of used and available."""
    try:
        disk = os.statvfs(root.here("/"))
    except OSError as error:
        return unread("/", error)
    used = disk.f_blocks - disk.f_bfree
    return value(round(100 * used / max(1, used + disk.f_bavail), 1))
