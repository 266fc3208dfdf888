"""The file tree of a virtual node as Linux lays it out: sysfs, procfs and the kernel log, as path → content.

`/proc/uptime` is not among them: it depends on the time of asking, so `assay.lab.shell` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.lab.world import State

Files = Iterator[tuple[str, str]]

SECTOR = 512
ROOT_FS_KIB = 1_840_000_000
PORT_STATE = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}
SPEED_NAME = {10: "SDR", 20: "DDR", 40: "QDR", 56: "FDR", 100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}
AER = {
    "correctable": ("RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF", "TOTAL_ERR_COR"),
    "nonfatal": ("Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt", "TOTAL_ERR_NONFATAL"),
    "fatal": ("Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt", "TOTAL_ERR_FATAL"),
}


def files(state: State) -> dict[str, str]:
    """Return every file of the node's root, by path below it."""
    tree: dict[str, str] = {}
    for part in (_host, _gpus, _hcas, _nics, _nvme, _aer, _kernel_log):
        tree.update(part(state))
    return tree


def started(state: State) -> datetime:
    """Return when the running kernel started, in lab time; what `/proc/uptime` counts from."""
    ready = datetime.fromisoformat(state["boot"]["ready_at"])
    return ready - timedelta(seconds=state["timing"]["boot_s"])


def _host(state: State) -> Files:
    yield "proc/sys/kernel/hostname", f"{state['name']}\n"
    yield "proc/sys/kernel/osrelease", f"{state['kernel']}\n"
    yield "proc/sys/kernel/random/boot_id", f"{state['boot']['id']}\n"
    yield "proc/cmdline", f"{state['cmdline']}\n"
    yield "proc/cpuinfo", _cpuinfo(state["cpu_sockets"], state["cpu_threads"])
    yield "proc/meminfo", f"MemTotal:       {state['memory_bytes'] // 1024} kB\n"
    yield "proc/mounts", f"/dev/md0 / ext4 {state.get('root_fs', 'rw')},relatime 0 0\nproc /proc proc rw,relatime 0 0\n"
    yield "run/df", _df(state.get("root_fs_used_percent", 31))
    yield "sys/class/dmi/id/product_name", f"{state['product']}\n"
    yield "sys/class/dmi/id/product_serial", f"{state['serial']}\n"


def _df(used_percent: int) -> str:
    used, free = ROOT_FS_KIB * used_percent // 100, ROOT_FS_KIB * (100 - used_percent) // 100
    heading = "Filesystem     1024-blocks      Used Available Capacity Mounted on"
    return f"{heading}\n/dev/md0       {ROOT_FS_KIB} {used} {free}      {used_percent}% /\n"


def _cpuinfo(sockets: int, threads: int) -> str:
    model = "Intel(R) Xeon(R) Platinum 8480C"
    return "".join(
        f"processor\t: {cpu}\nmodel name\t: {model}\nphysical id\t: {cpu % sockets}\n\n" for cpu in range(threads)
    )


def _gpus(state: State) -> Files:
    for gpu in state["gpus"]:
        if gpu["present"]:
            yield (
                f"proc/driver/nvidia/gpus/{gpu['pci']}/information",
                f"Model: \t\t {gpu['name']}\nGPU UUID: \t {gpu['uuid']}\nBus Location: \t {gpu['pci']}\n",
            )


def _hcas(state: State) -> Files:
    for hca in state["hcas"]:
        folder = f"sys/class/infiniband/{hca['name']}"
        guid = hca["guid"].removeprefix("0x").rjust(16, "0")
        yield f"{folder}/node_guid", ":".join(guid[i : i + 4] for i in range(0, 16, 4)) + "\n"
        yield f"{folder}/fw_ver", state["firmware"].get(f"HCA_{hca['rail']}", "") + "\n"
        yield f"{folder}/board_id", "MT_0000000838\n"
        yield f"{folder}/hca_type", "MT4129\n"
        yield from ((f"{folder}/ports/1/{name}", content) for name, content in _port(hca))


def _port(hca: State) -> Files:
    state, rate = hca["state"], hca["rate_gbps"]
    yield "state", f"{PORT_STATE[state]}: {state}\n"
    yield "phys_state", "2: Polling\n" if state == "DOWN" else "5: LinkUp\n"
    yield "rate", f"{rate} Gb/sec (4X {SPEED_NAME.get(rate, 'SDR')})\n"
    yield "link_layer", "InfiniBand\n"
    for counter in ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors"):
        yield f"counters/{counter}", f"{hca.get(counter, 0)}\n"


def _nics(state: State) -> Files:
    for nic in state["nics"]:
        folder = f"sys/class/net/{nic['name']}"
        yield f"{folder}/device/vendor", "0x15b3\n"
        yield f"{folder}/type", "1\n"
        yield f"{folder}/address", f"{nic['mac']}\n"
        yield f"{folder}/carrier", f"{int(nic['carrier'])}\n"
        yield f"{folder}/speed", f"{nic['speed_mbps'] if nic['carrier'] else -1}\n"
        yield f"{folder}/carrier_changes", f"{nic['carrier_changes']}\n"


def _nvme(state: State) -> Files:
    for drive in state["nvme"]:
        if drive["present"]:
            folder = f"sys/class/nvme/{drive['name']}"
            yield f"{folder}/model", f"{drive['model']:<40}\n"
            yield f"{folder}/serial", f"{drive['serial']:<20}\n"
            yield f"{folder}/firmware_rev", f"{drive['firmware']:<8}\n"
            yield f"{folder}/{drive['name']}n1/size", f"{drive['size_gb'] * 10**9 // SECTOR}\n"


def _aer(state: State) -> Files:
    for device in [gpu for gpu in state["gpus"] if gpu["present"]] + state["hcas"]:
        for severity, (names, total) in AER.items():
            count = device.get(f"aer_{severity}", 0)
            first, *others = names.split()
            lines = [f"{first} {count}", *(f"{name} 0" for name in others), f"{total} {count}"]
            yield f"sys/bus/pci/devices/{device['pci']}/aer_dev_{severity}", "\n".join(lines) + "\n"


def _kernel_log(state: State) -> Files:
    start = started(state)
    lines = [
        (0.0, 5, f"Linux version {state['kernel']} (buildd@lcy02) (gcc 13.2.0) #67-Ubuntu SMP PREEMPT_DYNAMIC"),
        (0.1, 6, f"Command line: {state['cmdline']}"),
        (9.2, 4, f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {state['driver']}"),
        *((_since(start, line["at"]), 3, line["text"]) for line in state["kernel_log"]),
    ]
    records = (f"{level},{seq},{int(t * 1e6)},-;{text}\n" for seq, (t, level, text) in enumerate(lines))
    yield "dev/kmsg", "".join(records)


def _since(start: datetime, at: str) -> float:
    return max(0.0, (datetime.fromisoformat(at) - start).total_seconds())
