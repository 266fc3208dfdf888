"""The files of a virtual node's host: processors, memory, kernel and its log, clock, services, file systems, processes.

Memory modules are in an SMBIOS table (DSP0134, structure type 17). `/proc/uptime` is missing: it changes by the second,
so `assay.lab.node.shell` writes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from assay.lab.virtual_node_state import VirtualNodeState

Files = Iterator[tuple[str, str]]

CPU = "sys/devices/system/cpu"
GIB = 2**30
INODES = 120_000_000
OTHER_USED_PERCENT = 12
MODULES_A_CONTROLLER = 4
DDR5 = 0x22
DIMM = 0x09
EXTENDED = 0x7FFF
END_OF_TABLE = b"\x7f\x04\xfe\xff\0\0"


def smbios_table(dimms: Iterable[VirtualNodeState]) -> bytes:
    """Return the SMBIOS table of a node's memory slots, with the empty ones."""
    return b"".join(_device(0x1100 + number, dimm) for number, dimm in enumerate(dimms)) + END_OF_TABLE


def _device(handle: int, dimm: VirtualNodeState) -> bytes:
    mib = dimm["size_gib"] * 1024 if dimm["present"] else 0
    speeds = (dimm["speed_mts"], dimm["configured_mts"]) if dimm["present"] else (0, 0)
    words = [dimm["slot"], f"Bank {handle & 0xFF}", "Samsung", dimm["serial"], dimm["part"]]
    formatted = struct.pack(
        "<BBHHHHHHBBBBBHHBBBBBIH",
        *(17, 0x28, handle, 0x1000, 0xFFFE, 80, 64),
        *(EXTENDED if mib >= EXTENDED else mib, DIMM, 0, 1, 2, DDR5, 0x80),
        *(speeds[0], 3, 4, 0, 5, 2, mib if mib >= EXTENDED else 0, speeds[1]),
    )
    strings = b"\0".join(word.encode() for word in words)
    return formatted.ljust(0x28, b"\0") + strings + b"\0\0"


def host_files(state: VirtualNodeState) -> Files:
    """Yield every file about the host as (path below the root, content)."""
    for part in (_boot, _identity, _cpus, _memory, _kernel, _clock, _services, _mounts, _processes, _kernel_log, _etc):
        yield from part(state)


def _identity(state: VirtualNodeState) -> Files:
    folder = "sys/class/dmi/id"
    bios = state["firmware"].get("BIOS") or state["firmware"].get("HGX_FW_CPU_0", "")  # two names among BMCs
    yield f"{folder}/sys_vendor", "Supermicro\n"
    yield f"{folder}/product_name", f"{state['product']}\n"
    yield f"{folder}/product_serial", f"{state['serial']}\n"
    yield f"{folder}/chassis_asset_tag", f"{state['boot'].get('asset_tag', '')}\n"
    yield f"{folder}/board_vendor", "Supermicro\n"
    yield f"{folder}/board_name", "X13DEG-OAD\n"
    yield f"{folder}/board_serial", f"OM{state['serial']}\n"
    yield f"{folder}/bios_vendor", "American Megatrends International, LLC.\n"
    yield f"{folder}/bios_version", f"{bios}\n"
    yield f"{folder}/bios_date", "09/12/2026\n"


def _cpus(state: VirtualNodeState) -> Files:
    sockets = state["cpu_sockets"]
    threads = state["cpu_threads"]
    arm = state["host"]["arm"]
    offline = state["host"]["cpus_offline"]
    yield "proc/cpuinfo", _cpuinfo(sockets, threads - offline, arm)
    yield f"{CPU}/present", f"0-{threads - 1}\n"
    yield f"{CPU}/online", f"0-{threads - offline - 1}\n"
    each = threads // sockets if arm else threads // sockets // 2
    half = 0 if arm else threads // 2
    for socket in range(sockets):
        ranges = [(start + socket * each, start + (socket + 1) * each - 1) for start in sorted({0, half})]
        siblings = ",".join(f"{first}-{last}" for first, last in ranges)
        yield f"{CPU}/cpu{ranges[0][0]}/topology/core_siblings_list", f"{siblings}\n"
        yield f"{CPU}/cpufreq/policy{ranges[0][0]}/scaling_governor", f"{state['host']['governor']}\n"
    yield f"{CPU}/cpu0/topology/thread_siblings_list", f"0,{half}\n" if half else "0\n"
    yield "sys/devices/system/node/has_cpu", f"0-{state['host']['numa_nodes'] - 1}\n"


def _cpuinfo(sockets: int, threads: int, arm: bool) -> str:
    model = "Intel(R) Xeon(R) Platinum 8480C"
    if arm:
        return "".join(f"processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n" for cpu in range(threads))
    return "".join(
        f"processor\t: {cpu}\nmodel name\t: {model}\nmicrocode\t: 0x2b000603\nphysical id\t: {cpu % sockets}\n\n"
        for cpu in range(threads)
    )


def _memory(state: VirtualNodeState) -> Files:
    dimms = state["host"]["dimms"]
    yield "sys/firmware/dmi/tables/DMI", smbios_table(dimms).decode("utf-8", "surrogateescape")
    plugged = [dimm for dimm in dimms if dimm["present"]]
    for start in range(0, len(plugged), MODULES_A_CONTROLLER):
        folder = f"sys/devices/system/edac/mc/mc{start // MODULES_A_CONTROLLER}"
        yield f"{folder}/ce_noinfo_count", "0\n"
        yield f"{folder}/ue_noinfo_count", "0\n"
        for place, dimm in enumerate(plugged[start : start + MODULES_A_CONTROLLER]):
            yield f"{folder}/dimm{place}/dimm_label", f"{dimm['slot']}\n"
            yield f"{folder}/dimm{place}/dimm_ce_count", f"{dimm['corrected']}\n"
            yield f"{folder}/dimm{place}/dimm_ue_count", f"{dimm['uncorrected']}\n"
    if state["host"]["arm"]:
        yield "proc/interrupts", "            CPU0       CPU1\nIPI0: 123 456 Rescheduling interrupts\nErr: 0\n"
    else:
        counts = {"MCE": state["host"]["machine_checks"], "MCP": 4032, "THR": 0, "DFR": 0, "LOC": 8123}
        lines = (f"{name}: {count:>10} {0:>10}   of the processors\n" for name, count in counts.items())
        yield "proc/interrupts", "            CPU0       CPU1\n" + "".join(f" {line}" for line in lines)


def _kernel(state: VirtualNodeState) -> Files:
    host = state["host"]
    yield "proc/modules", "".join(f"{name} 4096 0 - Live 0x0000000000000000\n" for name in host["modules"])
    if state["driver"]:
        yield "sys/module/nvidia/version", f"{state['driver']}\n"
    yield from ((f"proc/sys/{name.replace('.', '/')}", f"{text}\n") for name, text in host["sysctls"].items())
    yield "proc/sys/kernel/tainted", f"{host['taint']}\n"
    modes = ("always", "madvise", "never")
    shown = (f"[{mode}]" if mode == host["transparent_hugepages"] else mode for mode in modes)
    yield "sys/kernel/mm/transparent_hugepage/enabled", " ".join(shown) + "\n"
    for size, count in host.get("hugepages", {}).items():
        for name in ("nr_hugepages", "free_hugepages"):
            yield f"sys/kernel/mm/hugepages/hugepages-{size}/{name}", f"{count}\n"
    yield from _module_options(state)
    yield "sys/kernel/iommu_groups/0/type", f"{host['iommu']}\n"
    heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    swap = f"/swap.img                               file\t\t{host['swap_kib']}\t0\t-2\n"
    yield "proc/swaps", heading + (swap if host["swap_kib"] else "")
    yield "proc/loadavg", " ".join(f"{load:.2f}" for load in host["load"]) + " 2/3021 81234\n"


def _module_options(state: VirtualNodeState) -> Files:
    """Yield the options of modules where kernel and NVIDIA's driver show them."""
    options = state.get("module_options", {})
    for module in options.keys() - {"nvidia"}:
        yield from ((f"sys/module/{module}/parameters/{name}", f"{text}\n") for name, text in options[module].items())
    shown = (f"{name.removeprefix('NVreg_')}: {text}\n" for name, text in options.get("nvidia", {}).items())
    if state["driver"]:
        yield "proc/driver/nvidia/params", "".join(shown)


def _clock(state: VirtualNodeState) -> Files:
    clock = state["host"]["clock"]
    folder = "sys/devices/system/clocksource/clocksource0"
    yield f"{folder}/current_clocksource", f"{clock['source']}\n"
    leap, stratum = ("Normal", 3) if clock["synchronised"] else ("Not synchronised", 0)
    offset = f"{-clock['offset_s']:.9f}"
    fields = ["0A00000B", clock["server"], str(stratum), "1767600000.0", offset, "0.0", "0.000012", "-1.2", "0.0"]
    yield "run/chronyc", ",".join([*fields, "0.05", "0.00021", "0.00034", "64.4", leap]) + "\n"
    rest = "2,6,377,35,-0.000012,-0.000012,0.000345"
    yield "run/chronyc-sources", "".join(f"^,+,{name},{rest}\n" for name in clock.get("sources", ()))


def _services(state: VirtualNodeState) -> Files:
    version = state["host"].get("fabric_manager", state["driver"])
    yield "run/nv-fabricmanager", f"Fabric Manager version is : {version}\n"
    owned = state["host"].get("owned", ())
    flags = (f"  {name}AuthSet: {int(name in owned):>21}\n" for name in ("owner", "endorsement", "lockout"))
    yield "run/tpm", "TPM2_PT_PERMANENT:\n" + "".join(flags)
    rows = []
    for name, active in state["host"]["services"].items():
        sub = {"active": "running", "failed": "failed"}.get(active, "dead")
        rows.append(f"{name}.service loaded {active} {sub} {name}\n")
    rows.append("auditd.service not-found inactive dead auditd.service\n")
    yield "run/systemctl", "".join(rows)
    for unit, settings in state["host"].get("unit_settings", {}).items():
        lines = (f"{name}={text}\n" for name, text in settings.items())
        yield f"run/unit-settings/{unit}", "LoadState=loaded\n" + "".join(lines)


def _mounts(state: VirtualNodeState) -> Files:
    options = f"{state.get('root_fs', 'rw')},relatime"
    root = {"source": "/dev/md0", "point": "/", "type": "ext4", "options": options}
    root["used_percent"] = state.get("root_fs_used_percent", 31)
    mounts = [root, *state["host"]["mounts"]]
    lines = [f"{mount['source']} {mount['point']} {mount['type']} {mount['options']} 0 0\n" for mount in mounts]
    yield "proc/mounts", "".join(lines) + "proc /proc proc rw,relatime 0 0\ntmpfs /run tmpfs rw,nosuid 0 0\n"
    for mount in mounts:
        yield f"run/df{mount['point']}.txt", _df(mount)
        if mount["type"] == "nfs4":
            yield f"{mount['point'].strip('/')}/.mounted", ""


def _df(mount: VirtualNodeState) -> str:
    size = 1754 * GIB
    used_percent = mount.get("used_percent", OTHER_USED_PERCENT)
    used = size * used_percent // 100
    counts_inodes = mount["type"] != "vfat"
    inodes = INODES if counts_inodes else 0
    inodes_used = inodes * mount.get("inodes_used_percent", 3) // 100
    return f"1B-blocks Used Avail Inodes IUsed\n{size} {used} {size - used} {inodes} {inodes_used}\n"


def _processes(state: VirtualNodeState) -> Files:
    for process in state["host"]["processes"]:
        pid = process["pid"]
        name = process["name"]
        mode = process["state"]
        yield f"proc/{pid}/stat", f"{pid} ({name}) {mode} 1 1 1 0 -1 4194560 0 0 0 0\n"
        switches = "voluntary_ctxt_switches:\t120\nnonvoluntary_ctxt_switches:\t4\n"
        yield f"proc/{pid}/status", f"Name:\t{name}\nState:\t{mode}\n{switches}"
    for pid, job in [pair for gpu in state["gpus"] for pair in gpu.get("pid_jobs", {}).items()]:
        yield f"proc/{pid}/cgroup", f"0::/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0\n"


def kernel_start_time(state: VirtualNodeState) -> datetime:
    """Return the lab time at which the running kernel started; `/proc/uptime` counts from it."""
    ready = datetime.fromisoformat(state["boot"]["ready_at"])
    return ready - timedelta(seconds=state["timing"]["boot_s"])


def _boot(state: VirtualNodeState) -> Files:
    yield "proc/sys/kernel/hostname", f"{state['name']}\n"
    yield "proc/sys/kernel/osrelease", f"{state['kernel']}\n"
    yield "proc/sys/kernel/random/boot_id", f"{state['boot']['id']}\n"
    yield "proc/cmdline", f"{state['cmdline']}\n"
    total_kb = state["memory_bytes"] // 1024
    yield "proc/meminfo", f"MemTotal:       {total_kb} kB\nMemAvailable:   {total_kb * 9 // 10} kB\n"
    yield "var/tmp/.keep", ""


def _kernel_log(state: VirtualNodeState) -> Files:
    start = kernel_start_time(state)
    driver = f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {state['driver']}"
    faults = []
    for line in state["kernel_log"]:
        after_s = (datetime.fromisoformat(line["at"]) - start).total_seconds()
        faults.append((max(0.0, after_s), 3, line["text"]))
    lines = [
        (0.0, 5, f"Linux version {state['kernel']} (buildd@lcy02) (gcc 13.2.0) #67-Ubuntu SMP PREEMPT_DYNAMIC"),
        (0.1, 6, f"Command line: {state['cmdline']}"),
        *([(9.2, 4, driver)] if state["driver"] else []),
        *faults,
    ]
    records = (f"{level},{seq},{int(t * 1e6)},-;{text}\n" for seq, (t, level, text) in enumerate(lines))
    yield "dev/kmsg", "".join(records)


def _etc(state: VirtualNodeState) -> Files:
    """Yield a file of each folder in which the roles of playbooks/configure.yml write, and the kernel on disk."""
    yield f"boot/vmlinuz-{state['kernel']}", ""
    for path, content in state["host"].get("files", {}).items():
        yield path.lstrip("/"), content
    yield "etc/chrony/sources.d/README", "Servers for chrony.\n"
    for folder in ("modprobe.d", "modules-load.d", "sysctl.d", "systemd/system", "tmpfiles.d", "udev/rules.d"):
        yield f"etc/{folder}/README", "Files of this folder count at the next boot.\n"
