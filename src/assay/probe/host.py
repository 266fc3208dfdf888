"""The host: who it is, how big, how long up, and whether its root file system is well."""

from __future__ import annotations

import re

from assay.probe.files import Root, Tree, understood
from assay.probe.tools import read_tool

DF_S = 2


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
        "root_fs": {"read_only": root.read("/proc/mounts", root_is_read_only), "used_percent": _how_full(root)},
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


def _how_full(root: Root) -> Tree:
    """Ask df, as a person would: what a root is mounted from is for the node to say."""
    return read_tool(["df", "-P", "-k", root.here("/")], DF_S, lambda text: understood("df", text, used_percent))


def used_percent(df: str) -> float:
    """Return how full `df -P` says a file system is, of what it lets anyone use. Raises ValueError."""
    _, _, used, available = df.splitlines()[-1].split()[:4]
    return round(100 * int(used) / (int(used) + int(available)), 1)
