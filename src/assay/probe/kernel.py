"""How the kernel is set up and what it has been through: modules, sysctls, memory pages, swap, taints."""

from __future__ import annotations

from functools import partial

from assay.model.reading import absent, value
from assay.probe.cpu import count
from assay.probe.files import Root, Tree, unread
from assay.probe.lazy import Lazy

HUGE = "/sys/kernel/mm/hugepages"
VERSIONED = ("nvidia", "mlx5_core", "gdrdrv")
SYSCTLS = (
    "fs.file-max",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "kernel.hung_task_panic",
    "kernel.hung_task_timeout_secs",
    "kernel.numa_balancing",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.softlockup_panic",
    "kernel.threads-max",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.conf.all.arp_announce",
    "net.ipv4.conf.all.arp_ignore",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_forward",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)
TAINTS = {  # Documentation/admin-guide/tainted-kernels.rst; those that tell of something gone wrong
    2: "a processor out of its specification",
    4: "a machine check",
    5: "a bad page",
    7: "an oops",
    14: "a soft lockup",
}


def read_kernel(root: Root) -> Lazy:
    """Return the `kernel` branch."""
    return {
        "modules": root.later("/proc/modules", modules),
        "versions": {name: root.later(f"/sys/module/{name}/version") for name in VERSIONED},
        "sysctl": {name: root.later(f"/proc/sys/{name.replace('.', '/')}", spaced) for name in SYSCTLS},
        "hugepages": partial(_hugepages, root),
        "transparent_hugepages": root.later("/sys/kernel/mm/transparent_hugepage/enabled", chosen),
        "swap_bytes": root.later("/proc/swaps", swap_bytes),
        "numa_nodes": root.later("/sys/devices/system/node/has_cpu", count),
        "iommu_groups": partial(_groups, root),
        "taints": root.later("/proc/sys/kernel/tainted", taints),
    }


def modules(text: str) -> list[str]:
    """Return the names of the loaded modules, sorted. Raises ValueError for a kernel without one."""
    names = sorted(line.split()[0] for line in text.splitlines() if line.split())
    if not names:
        raise ValueError("no module is loaded")
    return names


def spaced(text: str) -> str:
    """Return a sysctl's value as sysctl(8) prints it: numbers apart by one blank."""
    return " ".join(text.split())


def chosen(text: str) -> str:
    """Turn `always [madvise] never` into `madvise`. Raises ValueError."""
    return text[text.index("[") + 1 : text.index("]")]


def swap_bytes(text: str) -> int:
    """Return the size of all swap areas, in bytes. Raises ValueError without the heading."""
    heading, *areas = text.splitlines()
    if not heading.startswith("Filename"):
        raise ValueError(heading)
    return sum(int(area.split()[2]) for area in areas) * 1024


def taints(text: str) -> list[str]:
    """Return what went wrong since boot, by the bits of the kernel's taint. Raises ValueError."""
    bits = int(text)
    return [what for bit, what in TAINTS.items() if bits >> bit & 1]


def _hugepages(root: Root) -> Tree | Lazy:
    """Return the huge pages that are set aside, by the size of one, `2048kB`."""
    try:
        sizes = root.names(HUGE)
    except OSError as error:
        return unread(HUGE, error)
    found = {
        size.removeprefix("hugepages-"): {
            "total": root.later(f"{HUGE}/{size}/nr_hugepages", int),
            "free": root.later(f"{HUGE}/{size}/free_hugepages", int),
        }
        for size in sizes
    }
    return found or absent(f"{HUGE} is empty")


def _groups(root: Root) -> Tree:
    """Count the IOMMU groups; none where no IOMMU translates."""
    folder = "/sys/kernel/iommu_groups"
    try:
        return value(len(root.names(folder)))
    except OSError as error:
        return unread(folder, error)
