"""Reads the host: its identity, uptime, processors, memory, load and root file system.

Processors are read from sysfs, which is alike on x86 and Arm; /proc/cpuinfo differs and is slow on many CPUs.
"""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import ReadingTree, absent, failed, value
from assay.probe.file_systems import read_space
from assay.probe.node_access import (
    BOOT_ID_FILE,
    LazyTree,
    NodeRoot,
    TimedQuestion,
    convert_leaf,
    leaf_for_error,
    require_text,
)
from assay.probe.processes_and_services import PROCESSES_S, read_processes

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


CPU = "/sys/devices/system/cpu"
CPUINFO = "/proc/cpuinfo"
FIRST_BLOCK = 4096  # bytes: enough for the first CPU's block of /proc/cpuinfo
MOST_CPUS = 65_536


def read_cpu(root: NodeRoot) -> LazyTree:
    """Return the `host.cpu` branch. Only x86 has `model` and `microcode`: Arm's /proc/cpuinfo names neither."""
    return {
        "model": partial(_cpuinfo_line, root, "model name"),
        "microcode": partial(_cpuinfo_line, root, "microcode"),
        "present": root.defer_read(f"{CPU}/present", count_cpu_list),
        "online": root.defer_read(f"{CPU}/online", count_cpu_list),
        "threads_per_core": root.defer_read(f"{CPU}/cpu0/topology/thread_siblings_list", count_cpu_list),
        "governors": partial(_governors, root),
    }


def count_online_cpus(root: NodeRoot) -> ReadingTree:
    """Return the leaf with the number of logical CPUs that are online."""
    return root.read_leaf(f"{CPU}/online", count_cpu_list)


def count_sockets(root: NodeRoot) -> ReadingTree:
    """Count the packages of the online CPUs, with one read a package."""
    online = root.read_leaf(f"{CPU}/online", parse_cpu_list)
    left, sockets = set(online.get("value", ())), 0
    while left:
        first = min(left)
        package = root.read_leaf(f"{CPU}/cpu{first}/topology/core_siblings_list", parse_cpu_list)
        if "value" not in package:
            return package
        left -= {first, *package["value"]}
        sockets += 1
    return value(sockets) if sockets else online


def parse_cpu_list(text: str) -> list[int]:
    """Turn the kernel's `0-2,8` into `[0, 1, 2, 8]`. Raises ValueError for an empty list or a CPU above the limit."""
    found: list[int] = []
    for part in require_text(text).split(","):
        first, _, last = part.partition("-")
        ends = (int(first), int(last or first))
        if not 0 <= ends[0] <= ends[1] < MOST_CPUS:
            raise ValueError(part)
        found += range(ends[0], ends[1] + 1)
    return found


def count_cpu_list(text: str) -> int:
    """Turn `0-2,8` into 4. Raises ValueError."""
    return len(parse_cpu_list(text))


def _cpuinfo_line(root: NodeRoot, name: str) -> ReadingTree:
    """Return the value of one line of the first CPU's block."""
    try:
        block = root.read_start(CPUINFO, FIRST_BLOCK).decode(errors="replace")
    except OSError as error:
        return leaf_for_error(CPUINFO, error)
    found = re.search(rf"^{name}\s*: *(.+)$", block, re.MULTILINE)
    return convert_leaf(CPUINFO, found[1].strip(), require_text) if found else absent(f"{CPUINFO} names no {name}")


def _governors(root: NodeRoot) -> ReadingTree:
    """Return the distinct frequency governors, sorted. All CPUs should have the same one."""
    folder = f"{CPU}/cpufreq"
    try:
        policies = [name for name in root.list_names(folder) if name.startswith("policy")]
        found = {root.read_text(f"{folder}/{policy}/scaling_governor") for policy in policies}
    except OSError as error:
        return leaf_for_error(folder, error)
    if "" in found:
        return failed(f"{folder}: a policy names no governor")
    return value(sorted(found)) if found else absent(f"{folder} has no policy: the firmware rules the frequency")


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
