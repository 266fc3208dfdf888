"""The healthy host of a virtual node: what its firmware, kernel, daemons and file systems say."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from assay.lab.parts import number, number_below

if TYPE_CHECKING:  # the node's shell starts often and needs none of pydantic
    from assay.model.fleet import Node
    from assay.model.nodespec import NodeSpec

Part = dict[str, Any]

ARM = "NVIDIA GB"  # Grace sits beside these GPUs
TAINT = 12288
"""What `/proc/sys/kernel/tainted` says of a healthy host: out-of-tree and unsigned modules, NVIDIA's driver."""

MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "nvme", "ext4")
SERVICES = ("ssh", "chrony", "cron", "dbus", "containerd", "kubelet", "nvidia-persistenced", "rsyslog", "systemd-udevd")
SYSCTLS = {
    "fs.file-max": "9223372036854775807",
    "fs.inotify.max_user_instances": "8192",
    "fs.inotify.max_user_watches": "524288",
    "kernel.hung_task_panic": "0",
    "kernel.hung_task_timeout_secs": "120",
    "kernel.numa_balancing": "1",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.perf_event_paranoid": "4",
    "kernel.pid_max": "4194304",
    "kernel.softlockup_panic": "0",
    "kernel.threads-max": "16511233",
    "net.core.netdev_max_backlog": "250000",
    "net.core.rmem_max": "16777216",
    "net.core.somaxconn": "4096",
    "net.core.wmem_max": "16777216",
    "net.ipv4.conf.all.arp_announce": "2",
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.rp_filter": "2",
    "net.ipv4.ip_forward": "1",
    "vm.max_map_count": "262144",
    "vm.min_free_kbytes": "90112",
    "vm.nr_hugepages": "0",
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "vm.swappiness": "10",
    "vm.zone_reclaim_mode": "0",
}


def fresh_kernel(host: Part) -> Part:
    """Return a host with another kernel, which has gone through nothing yet."""
    return {**host, "machine_checks": 0, "taint": TAINT}


def host(node: Node, spec: NodeSpec) -> Part:
    """Return the host: its clock kept, its services up, its memory clean, set up as the spec says."""
    arm = spec.gpus.model.startswith(ARM)
    return {
        "arm": arm,
        "dimms": dimms(node, spec),
        "machine_checks": 0,
        "taint": TAINT,
        "governor": spec.host.governor or "performance",
        "cpus_offline": 0,
        "numa_nodes": spec.host.numa_nodes or spec.cpu_sockets,
        "iommu": spec.host.iommu or "DMA-FQ",
        "switch_acs": 0,
        "transparent_hugepages": spec.host.transparent_hugepages or "madvise",
        "swap_kib": 0,
        "modules": sorted({*MODULES, *spec.host.modules}),
        "sysctls": {**SYSCTLS, **spec.host.sysctls},
        "services": dict.fromkeys(sorted({*SERVICES, *spec.host.services}), "active"),
        "clock": {
            "source": "arch_sys_counter" if arm else "tsc",
            "synchronised": True,
            "offset_s": 2e-6 + number_below(node.name, "clock", 40) * 1e-6,
            "server": "10.0.0.11",
        },
        "bonds": {},
        "load": [0.42, 0.37, 0.31],
        "processes": [{"pid": 1, "name": "systemd", "state": "S"}, {"pid": 977, "name": "chronyd", "state": "S"}],
        "mounts": [
            {"source": "/dev/nvme_boot1", "point": "/boot/efi", "type": "vfat", "options": "rw,relatime"},
            {"source": "/dev/md1", "point": "/data", "type": "xfs", "options": "rw,noatime"},
        ],
    }


def dimms(node: Node, spec: NodeSpec) -> list[Part]:
    """Return the memory modules: the spec's, or one a socket, as memory that is soldered on shows."""
    count = spec.host.dimms.count if spec.host.dimms else spec.cpu_sockets
    size = spec.host.dimms.size_gib if spec.host.dimms else spec.memory_gib // spec.cpu_sockets
    speed = spec.host.dimms.speed_mts if spec.host.dimms else 8532
    each = count // spec.cpu_sockets
    return [
        {
            "slot": _slot(number_ // each, number_ % each),
            "size_gib": size,
            "speed_mts": max(speed, 4800),
            "configured_mts": speed,
            "part": "M321R8GA0BB0-CQKZJ",
            "serial": number(node.name, f"dimm{number_}", 8),
            "present": True,
            "corrected": 0,
            "uncorrected": 0,
        }
        for number_ in range(count)
    ]


def _slot(socket: int, place: int) -> str:
    """Return a slot as boards print it: socket, channel, place in the channel."""
    return f"P{socket + 1}-DIMM{string.ascii_uppercase[place // 2]}{place % 2 + 1}"
