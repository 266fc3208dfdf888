"""Reads the kernel's settings and taints: modules, sysctls, huge pages, swap, IOMMU groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from assay.model.reading import READ_SYSCTLS, ReadingTree, absent, failed, value
from assay.node.probe.cpu import count_cpu_list
from assay.node.probe.module_options import read_module_options
from assay.node.probe.node_access import LazyTree, NodeRoot, TimedQuestion, leaf_for_error, run_tool

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


def read_kernel(root: NodeRoot, module_options: Sequence[str] = ()) -> LazyTree:
    """Return the `kernel` branch, with the options of modules that are named as `module.option`."""
    return {
        "modules": root.defer_read("/proc/modules", parse_modules),
        "versions": {
            **{name: root.defer_read(f"/sys/module/{name}/version") for name in VERSIONED},
            "fabric_manager": TimedQuestion(TOOL_S + 1, _read_fabric_manager),
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


def _read_fabric_manager() -> ReadingTree:
    return run_tool(FABRIC_MANAGER, TOOL_S, parse_fabric_manager)


def parse_fabric_manager(text: str) -> ReadingTree:
    """Parse `nv-fabricmanager --version`: `Fabric Manager version is : 570.172.08`. It is the version on disk."""
    found = FABRIC_MANAGER_VERSION.search(text)
    return value(found[1]) if found else failed(f"nv-fabricmanager: cannot make sense of {text.strip()[:80]!r}")


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
    return [what for bit, what in TAINTS.items() if bits >> bit & 1]


def _hugepages(root: NodeRoot) -> ReadingTree | LazyTree:
    """Return the reserved huge pages by page size, `2048kB`."""
    try:
        sizes = root.list_names(HUGE)
    except OSError as error:
        return leaf_for_error(HUGE, error)
    found = {
        size.removeprefix("hugepages-"): {
            "total": root.defer_read(f"{HUGE}/{size}/nr_hugepages", int),
            "free": root.defer_read(f"{HUGE}/{size}/free_hugepages", int),
        }
        for size in sizes
    }
    return found or absent(f"{HUGE} is empty")


def _count_iommu_groups(root: NodeRoot) -> ReadingTree:
    """Count the IOMMU groups; there are none where no IOMMU translates addresses."""
    folder = "/sys/kernel/iommu_groups"
    try:
        return value(len(root.list_names(folder)))
    except OSError as error:
        return leaf_for_error(folder, error)
