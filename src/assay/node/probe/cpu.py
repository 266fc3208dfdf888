"""Reads the processors: model, microcode, which are present and online, threads, sockets and frequency governors.

Processors are read from sysfs, which is alike on x86 and Arm; /proc/cpuinfo differs and is slow on many CPUs.
"""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import LazyTree, NodeRoot, convert_leaf, leaf_for_error, require_text

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
