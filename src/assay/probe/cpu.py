"""Processors, from sysfs: x86 and Arm say the same there, while /proc/cpuinfo differs and takes long on many CPUs."""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import absent, failed, value
from assay.probe.files import Root, Tree, not_empty, understood, unread
from assay.probe.lazy import Lazy

CPU = "/sys/devices/system/cpu"
CPUINFO = "/proc/cpuinfo"
FIRST_BLOCK = 4096  # bytes: what /proc/cpuinfo says of the first CPU, and no more
MOST_CPUS = 65_536


def read_cpu(root: Root) -> Lazy:
    """Return the `host.cpu` branch. `model` and `microcode` are x86's: Arm's /proc/cpuinfo names neither."""
    return {
        "model": partial(_named, root, "model name"),
        "microcode": partial(_named, root, "microcode"),
        "present": root.later(f"{CPU}/present", count),
        "online": root.later(f"{CPU}/online", count),
        "threads_per_core": root.later(f"{CPU}/cpu0/topology/thread_siblings_list", count),
        "governors": partial(_governors, root),
    }


def online(root: Root) -> Tree:
    """Return how many logical CPUs are online."""
    return root.read(f"{CPU}/online", count)


def sockets(root: Root) -> Tree:
    """Count the packages that the online CPUs sit in, with one read a package."""
    listed = root.read(f"{CPU}/online", cpus)
    left, found = set(listed.get("value", ())), 0
    while left:
        first = min(left)
        package = root.read(f"{CPU}/cpu{first}/topology/core_siblings_list", cpus)
        if "value" not in package:
            return package
        left -= {first, *package["value"]}
        found += 1
    return value(found) if found else listed


def cpus(text: str) -> list[int]:
    """Turn the kernel's `0-2,8` into `[0, 1, 2, 8]`. Raises ValueError for none, or for more than there can be."""
    found: list[int] = []
    for part in not_empty(text).split(","):
        first, _, last = part.partition("-")
        ends = (int(first), int(last or first))
        if not 0 <= ends[0] <= ends[1] < MOST_CPUS:
            raise ValueError(part)
        found += range(ends[0], ends[1] + 1)
    return found


def count(text: str) -> int:
    """Turn `0-2,8` into 4. Raises ValueError."""
    return len(cpus(text))


def _named(root: Root, name: str) -> Tree:
    """Return a line of the first CPU's block."""
    try:
        block = root.start(CPUINFO, FIRST_BLOCK).decode(errors="replace")
    except OSError as error:
        return unread(CPUINFO, error)
    found = re.search(rf"^{name}\s*: *(.+)$", block, re.MULTILINE)
    return understood(CPUINFO, found[1].strip(), not_empty) if found else absent(f"{CPUINFO} names no {name}")


def _governors(root: Root) -> Tree:
    """Return the different frequency governors, sorted; one governor should rule all CPUs."""
    folder = f"{CPU}/cpufreq"
    try:
        policies = [name for name in root.names(folder) if name.startswith("policy")]
        found = {root.text(f"{folder}/{policy}/scaling_governor") for policy in policies}
    except OSError as error:
        return unread(folder, error)
    if "" in found:
        return failed(f"{folder}: a policy names no governor")
    return value(sorted(found)) if found else absent(f"{folder} has no policy: the firmware rules the frequency")
