"""The host of a healthy virtual node: firmware, kernel, services, clock, file systems, memory modules.

Also its chassis, which only the BMC sees: BIOS settings, leak detectors, the lid, the BMC's clock. And what the load
tools find, by GPU and adapter in slot order, the key `load` of the node's state:

| key | meaning |
|---|---|
| tensor_gflops | speed of each GPU on tensor cores: ubergemm, dcgmproftester, gpu-fryer |
| host_copy_gb_s peer_copy_gb_s | copies of each GPU: nvbandwidth |
| diagnosis | what `dcgmi diag` says of a GPU: `{"3": {"memory": "a mismatch"}}` |
| write_gbps | speed of each adapter, by name: ib_write_bw |
| intact stored | whether drives, and the shared storage, keep what is written to them: fio |
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from assay.lab.node.healthy_devices import derive_number_below, derive_serial_number, spec_limit
from assay.lab.virtual_node_state import VirtualNodeState

if TYPE_CHECKING:
    from assay.model.node import Node
    from assay.model.specs.node.node_spec import NodeSpec


HostPart = dict[str, Any]

MODULE_GIB = 64
CPU_MODEL = "Intel(R) Xeon(R) Platinum 8480C"
USUAL_BIOS = {"BootMode": "UEFI", "QuietBoot": "Disabled"}
BOOT_OPTIONS = ({"name": "UEFI: PXE IPv4 Slot 1", "alias": "Pxe"}, {"name": "ubuntu", "alias": "Hdd"})

STORAGE = {"source": "storage.lab:/", "point": "/shared", "type": "nfs4", "options": "rw,hard"}
ARM = "NVIDIA GB"  # Grace CPUs sit beside these GPUs
TAINT = 12288
"""`/proc/sys/kernel/tainted` of a healthy host: out-of-tree and unsigned modules, from NVIDIA's driver."""

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
ABOVE = 1.08
"""Healthy speeds are so far above their limits; each further GPU is a little slower."""


def make_healthy_host(node: Node, spec: NodeSpec) -> HostPart:
    """Return a host with the spec's settings, a synchronised clock, running services and clean memory."""
    arm, has_nvidia = spec.gpus.model.startswith(ARM), bool(spec.gpus.count and spec.gpus.vendor == "nvidia")
    modules = [name for name in MODULES if has_nvidia or not name.startswith("nvidia")]
    services = [name for name in SERVICES if has_nvidia or not name.startswith("nvidia")]
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
        "modules": sorted({*modules, *spec.host.modules}),
        "sysctls": {**SYSCTLS, **spec.host.sysctls},
        "hugepages": {"2048kB": 0, "1048576kB": 0, **spec.host.hugepages},
        "unit_settings": {unit: dict(settings) for unit, settings in spec.host.unit_settings.items()},
        "fabric_manager": spec.fabric_manager or spec.driver,
        "files": {path: file.content for path, file in spec.host.files.items()},
        "services": dict.fromkeys(sorted({*services, *spec.host.services}), "active"),
        "clock": {
            "source": "arch_sys_counter" if arm else "tsc",
            "synchronised": True,
            "offset_s": 2e-6 + derive_number_below(node.name, "clock", 40) * 1e-6,
            "server": "10.0.0.11",
            "sources": spec.host.time_servers or ["10.0.0.11"],
        },
        "bonds": {},
        "load": [0.42, 0.37, 0.31],
        "processes": [{"pid": 1, "name": "systemd", "state": "S"}, {"pid": 977, "name": "chronyd", "state": "S"}],
        "mounts": [
            {"source": "/dev/nvme_boot1", "point": "/boot/efi", "type": "vfat", "options": "rw,relatime"},
            {"source": "/dev/md1", "point": "/data", "type": "xfs", "options": "rw,noatime"},
            *([STORAGE] if "storage" in node.settings.site_tools else []),
            *(
                {"source": f"files:{point}", "point": point, "type": types[0], "options": "rw,relatime"}
                for point, types in spec.mounts.items()
                if point not in ("/data", STORAGE["point"])
            ),
        ],
    }


def dimms(node: Node, spec: NodeSpec) -> list[HostPart]:
    """Return the memory modules: the spec's, or one a socket where the memory is soldered."""
    count = spec.host.dimms.count if spec.host.dimms else spec.cpu_sockets
    size = spec.host.dimms.size_gib if spec.host.dimms else spec.memory_gib // spec.cpu_sockets
    speed = spec.host.dimms.speed_mts if spec.host.dimms else 8532
    each = count // spec.cpu_sockets
    return [
        {
            # as boards print it: socket, channel, place in the channel
            "slot": f"P{number // each + 1}-DIMM{string.ascii_uppercase[number % each // 2]}{number % each % 2 + 1}",
            "size_gib": size,
            "speed_mts": max(speed, 4800),
            "configured_mts": speed,
            "part": "M321R8GA0BB0-CQKZJ",
            "serial": derive_serial_number(node.name, f"dimm{number}", 8),
            "present": True,
            "corrected": 0,
            "uncorrected": 0,
        }
        for number in range(count)
    ]


def make_healthy_chassis(spec: NodeSpec) -> VirtualNodeState:
    """Return a chassis whose parts are healthy and whose settings are the spec's.

    | key | meaning |
    |---|---|
    | dimms cpus | `[{present, health, gib}]`, `[{health, model, cores, threads}]`, in slot order |
    | bios bios_pending | attribute → value in force; attribute → value from the next host reset on |
    | boot_options boot_order secure_boot boot_mode | boot settings |
    | boot_pending | boot_order, secure_boot and boot_mode from the next host reset on |
    | power_restore ntp | what happens when power comes back; NTP of the BMC: `{enabled, servers}` |
    | ipmi reachable | whether the BMC answers IPMI over LAN, and its own node
    | unverified | components whose firmware no check of its maker proved |
    | lacks | Redfish properties that this BMC does not have |
    | leaks | `[{state}]`: OK, Warning or Critical |
    | lid power_cap_w clock_s | the intrusion sensor; a power cap or None; error of the BMC's clock in seconds |
    """
    # Modules of 64 GiB if they add up to the spec's size, else one module a socket (soldered memory).
    module_count, rest = divmod(spec.memory_gib, MODULE_GIB)
    module_gib = MODULE_GIB
    if rest:
        module_count = spec.cpu_sockets
        module_gib = spec.memory_gib // spec.cpu_sockets
    threads = spec.cpu_threads // spec.cpu_sockets
    cpu = {"health": "OK", "model": CPU_MODEL, "cores": threads // 2 or 1, "threads": threads}
    return {
        "dimms": [{"present": True, "health": "OK", "gib": module_gib} for _ in range(module_count)],
        "cpus": [dict(cpu) for _ in range(spec.cpu_sockets)],
        "bios": {**USUAL_BIOS, **spec.bios},
        "bios_pending": {},
        "boot_options": [dict(option) for option in BOOT_OPTIONS],
        "boot_order": [0, 1],
        "boot_mode": spec.boot.mode,
        "secure_boot": bool(spec.boot.secure),
        "boot_pending": {},
        "power_restore": spec.bmc.power_restore or "LastState",
        "ntp": {"enabled": spec.bmc.ntp.enabled is not False, "servers": list(spec.bmc.ntp.servers or ())},
        "ipmi": bool(spec.bmc.ipmi_lan),
        "unverified": [],
        "lacks": [],
        "leaks": [{"state": "OK"} for _ in range(spec.leak_detectors)],
        "lid": "Normal",
        "power_cap_w": None,
        "clock_s": 0,
    }


def make_syslog_subscriptions(spec: NodeSpec) -> dict[str, dict[str, str]]:
    """Return the subscriptions by which the BMC sends its log to the spec's syslog servers."""
    servers = enumerate(spec.bmc.syslog or ())
    return {
        f"log{number}": {"destination": server.uri, "context": "assay", "protocol": server.protocol}
        for number, server in servers
    }


def make_declared_accounts(spec: NodeSpec) -> dict[str, dict[str, Any]]:
    """Return the spec's accounts by id. They have no password yet; account 1 is the one that assay logs in with."""
    return {
        str(number): {"user": user, "digest": "", "role": account.role, "enabled": account.enabled, "locked": False}
        for number, (user, account) in enumerate(spec.bmc.accounts.users.items(), 2)
    }


def apply_pending_settings(state: VirtualNodeState) -> VirtualNodeState:
    """Return the state after a host reset: pending BIOS and boot settings are in force, or lost (`fails.settings`)."""
    if state["fails"].get("settings"):
        return {**state, "box": {**state["box"], "bios_pending": {}, "boot_pending": {}}}
    box = {**state["box"], **state["box"].get("boot_pending", {}), "boot_pending": {}}
    return {**state, "box": {**box, "bios": {**box["bios"], **box["bios_pending"]}, "bios_pending": {}}}


def host_after_boot(host: HostPart) -> HostPart:
    """Return the host after a boot: machine checks and kernel taints are reset."""
    return {**host, "machine_checks": 0, "taint": TAINT}


def make_healthy_load(spec: NodeSpec) -> dict[str, Any]:
    """Return the key `load` of a healthy node of a spec."""
    slots = range(spec.gpus.count)

    def alike(limit: str, otherwise: float, digits: int) -> list[float]:
        best = ABOVE * max(spec_limit(spec, name, otherwise) for name in limit.split())
        return [round(best * (1 - 0.0005 * slot), digits) for slot in slots]

    return {
        "tensor_gflops": alike("gpu_tensor_speed gpu_fryer_speed", 715_000, 0),
        "host_copy_gb_s": alike("gpu_host_copy", 48, 2),
        "peer_copy_gb_s": alike("gpu_peer_copy", 335, 2),
        "diagnosis": {},
        "write_gbps": {hca.name: round(1.03 * spec_limit(spec, "hca_write", 380), 2) for hca in spec.hcas},
        "intact": True,
        "stored": True,
    }
