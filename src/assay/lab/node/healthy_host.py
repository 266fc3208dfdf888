"""The healthy host of a virtual node: what its firmware, kernel, daemons and file systems say.

What only the BMC of a healthy node sees: memory modules, processors, BIOS settings, leaks, the lid, its clock.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from assay.lab.node.healthy_devices import derive_number_below, derive_serial_number
from assay.lab.world import VirtualNodeState
from assay.model.specs.node_spec import NodeSpec

MODULE_GIB = 64
CPU_MODEL = "Intel(R) Xeon(R) Platinum 8480C"
USUAL_BIOS = {"BootMode": "UEFI", "QuietBoot": "Disabled"}
BOOT_OPTIONS = ({"name": "UEFI: PXE IPv4 Slot 1", "alias": "Pxe"}, {"name": "ubuntu", "alias": "Hdd"})


def make_healthy_chassis(spec: NodeSpec) -> VirtualNodeState:
    """Return the parts that are well and the settings that the spec asks for.

    | key | meaning |
    |---|---|
    | dimms cpus | `[{present, health, gib}]`, `[{health, model, cores, threads}]`, in slot order |
    | bios bios_pending | attribute → value that runs; what waits for the next reset of the host |
    | boot_options boot_order secure_boot boot_mode | how it boots |
    | leaks | `[{state}]`: OK, Warning or Critical |
    | lid power_cap_w clock_s | the intrusion sensor; a power cap or None; how far the BMC's clock is off |
    """
    return {
        "dimms": _bmc_dimms(spec),
        "cpus": [_bmc_cpu(spec) for _ in range(spec.cpu_sockets)],
        "bios": {**USUAL_BIOS, **spec.bios},
        "bios_pending": {},
        "boot_options": [dict(option) for option in BOOT_OPTIONS],
        "boot_order": [0, 1],
        "boot_mode": spec.boot.mode,
        "secure_boot": bool(spec.boot.secure),
        "leaks": [{"state": "OK"} for _ in range(spec.leak_detectors)],
        "lid": "Normal",
        "power_cap_w": None,
        "clock_s": 0,
    }


def _bmc_dimms(spec: NodeSpec) -> list[dict[str, Any]]:
    """Return modules of 64 GiB where these make the spec's size, else one for each socket, as soldered memory is."""
    whole, rest = divmod(spec.memory_gib, MODULE_GIB)
    count, gib = (spec.cpu_sockets, spec.memory_gib // spec.cpu_sockets) if rest else (whole, MODULE_GIB)
    return [{"present": True, "health": "OK", "gib": gib} for _ in range(count)]


def _bmc_cpu(spec: NodeSpec) -> dict[str, Any]:
    threads = spec.cpu_threads // spec.cpu_sockets
    return {"health": "OK", "model": CPU_MODEL, "cores": threads // 2 or 1, "threads": threads}


def apply_pending_bios(state: VirtualNodeState) -> VirtualNodeState:
    """Return the state after a reset of the host: the settings that waited for it run."""
    known = state["box"]
    return {**state, "box": {**known, "bios": {**known["bios"], **known["bios_pending"]}, "bios_pending": {}}}


if TYPE_CHECKING:  # the node's shell starts often and needs none of pydantic
    from assay.model.fleet import Node
    from assay.model.specs.node_spec import NodeSpec

HostPart = dict[str, Any]

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


def host_after_boot(host: HostPart) -> HostPart:
    """Return a host with another kernel, which has gone through nothing yet."""
    return {**host, "machine_checks": 0, "taint": TAINT}


def make_healthy_host(node: Node, spec: NodeSpec) -> HostPart:
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
            "offset_s": 2e-6 + derive_number_below(node.name, "clock", 40) * 1e-6,
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


def dimms(node: Node, spec: NodeSpec) -> list[HostPart]:
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
            "serial": derive_serial_number(node.name, f"dimm{number_}", 8),
            "present": True,
            "corrected": 0,
            "uncorrected": 0,
        }
        for number_ in range(count)
    ]


def _slot(socket: int, place: int) -> str:
    """Return a slot as boards print it: socket, channel, place in the channel."""
    return f"P{socket + 1}-DIMM{string.ascii_uppercase[place // 2]}{place % 2 + 1}"
