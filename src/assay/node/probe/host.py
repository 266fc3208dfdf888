"""Reads the host: identity, memory, load, processors, file systems, clock, stuck processes and the units of systemd.

Processors are read from sysfs, which is alike on x86 and Arm; /proc/cpuinfo differs and is slow on many CPUs. A process
is stuck if it is a zombie, or in state D, which no signal reaches.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import (
    BOOT_ID_FILE,
    LazyTree,
    NodeRoot,
    TimedQuestion,
    convert_leaf,
    leaf_for_error,
    require_text,
    run_tool,
)

CPU = "/sys/devices/system/cpu"
CPUINFO = "/proc/cpuinfo"
FIRST_BLOCK = 4096  # bytes: enough for the first CPU's block of /proc/cpuinfo
MOST_CPUS = 65_536
MOUNTS = "/proc/mounts"
DF_S = 2.0
ON_DISKS = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "reiserfs", "vfat", "xfs", "zfs"}
ON_SERVERS = {"9p", "beegfs", "ceph", "cifs", "gpfs", "lustre", "nfs", "nfs4", "panfs", "virtiofs", "wekafs"}
OCTAL = re.compile(r"\\([0-7]{3})")
DMI = "/sys/class/dmi/id"
TOOL_S = 1.8
CHRONY_FIELDS = 14
CHRONY_SOURCE_FIELDS = 10
UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
OFFSET = re.compile(r"^\s*Offset: ([+-]?\d+(?:\.\d+)?)(us|ms|s|min)$", re.MULTILINE)
SERVER = re.compile(r"^\s*Server: (\S+)", re.MULTILINE)
STRATUM = re.compile(r"^\s*Stratum: (\d+)$", re.MULTILINE)
FROM_MASTER = re.compile(r"offsetFromMaster\s+(-?\d+(?:\.\d+)?)")
NTP_PAIR = re.compile(r"(\w+)=([^,\s]+)")
NO_TIME_DAEMON = "no chronyc, ntpq or timedatectl that answers: nothing keeps this clock; install chrony"
SOURCES = ("chronyc", "-N", "-c", "sources")  # -N: the names as they were given to chrony
PTP = ("pmc", "-u", "-b", "0", "GET CURRENT_DATA_SET")
STUCK_RECHECK_S = 1.0
PROCESSES_S = 4.0  # a node under load has ten thousand, and some are read twice
STAT_SIZE = 1024
STAT = re.compile(rb"(\d+) \((.*)\) (\S) ", re.DOTALL)
SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)
SYSTEMCTL_S = 2.5
SERVICES_S = 3.0
UNIT_TYPES = "--type=service,mount,socket,timer"
LIST_UNITS = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager", "--full", UNIT_TYPES]
UNIT_STATES = {"active", "activating", "deactivating", "failed", "inactive", "maintenance", "reloading", "refreshing"}


def read_host(root: NodeRoot) -> LazyTree:
    """Return the `host` branch. Only root can read the serial numbers in DMI."""

    def read_used_percent() -> ReadingTree:
        space = read_space(root, "/")
        leaf: ReadingTree = space.get("used_percent", space)  # or the leaf that says why df gave none
        return leaf

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
            "used_percent": read_used_percent,
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


def _load(root: NodeRoot) -> ReadingTree:
    """Return the load averages over one, five and fifteen minutes."""
    averages = root.read_leaf("/proc/loadavg", parse_load)
    if "value" not in averages:
        return averages
    return dict(zip(("one_min", "five_min", "fifteen_min"), map(value, averages["value"]), strict=True))


def parse_load(loadavg: str) -> list[float]:
    """Return the three averages of /proc/loadavg. Raises ValueError."""
    minute, five_minutes, quarter_hour, _running, _last = loadavg.split()
    return [float(minute), float(five_minutes), float(quarter_hour)]


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
    left = set(online.get("value", ()))
    sockets = 0
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
    cpus: list[int] = []
    for part in require_text(text).split(","):
        first, _, last = part.partition("-")
        ends = (int(first), int(last or first))
        if not 0 <= ends[0] <= ends[1] < MOST_CPUS:
            raise ValueError(part)
        cpus += range(ends[0], ends[1] + 1)
    return cpus


def count_cpu_list(text: str) -> int:
    """Turn `0-2,8` into 4. Raises ValueError."""
    return len(parse_cpu_list(text))


def _cpuinfo_line(root: NodeRoot, name: str) -> ReadingTree:
    """Return the value of one line of the first CPU's block."""
    try:
        block = root.read_start(CPUINFO, FIRST_BLOCK).decode(errors="replace")
    except OSError as error:
        return leaf_for_error(CPUINFO, error)
    line = re.search(rf"^{name}\s*: *(.+)$", block, re.MULTILINE)
    return convert_leaf(CPUINFO, line[1].strip(), require_text) if line else absent(f"{CPUINFO} names no {name}")


def _governors(root: NodeRoot) -> ReadingTree:
    """Return the distinct frequency governors, sorted. All CPUs should have the same one."""
    folder = f"{CPU}/cpufreq"
    try:
        policies = [name for name in root.list_names(folder) if name.startswith("policy")]
        governors = {root.read_text(f"{folder}/{policy}/scaling_governor") for policy in policies}
    except OSError as error:
        return leaf_for_error(folder, error)
    if "" in governors:
        return failed(f"{folder}: a policy names no governor")
    return (
        value(sorted(governors)) if governors else absent(f"{folder} has no policy: the firmware rules the frequency")
    )


class MountEntry(NamedTuple):
    """One line of /proc/mounts."""

    source: str
    point: str
    type: str
    options: list[str]

    @property
    def name(self) -> str:
        """The mount point as systemd names its units: `-` for `/`, `var-lib` for `/var/lib`."""
        return self.point.strip("/").replace("/", "-") or "-"


def read_file_systems(root: NodeRoot) -> LazyTree:
    """Return the `file_systems` branch by name of the mount. A server that hangs delays only its own mount."""
    try:
        mounts = list(find_real_mounts(root.read_text(MOUNTS)))
    except OSError as error:
        return leaf_for_error(MOUNTS, error)
    return {mount.name: _mount(root, mount) for mount in mounts} or absent(f"{MOUNTS} lists no real file system")


def _mount(root: NodeRoot, mount: MountEntry) -> LazyTree:
    return {
        "mount_point": value(mount.point),
        "source": value(mount.source),
        "type": value(mount.type),
        "remote": value(mount.type in ON_SERVERS),
        "read_only": value("ro" in mount.options),
        "space": TimedQuestion(DF_S, partial(read_space, root, mount.point)),
    }


def find_real_mounts(mounts: str) -> Iterator[MountEntry]:
    """Yield the root of any type, and every file system of a disk or server at its first mount point."""
    seen: set[tuple[str, str]] = set()
    listed = list(list_mounts(mounts))
    last_root = next((mount for mount in reversed(listed) if mount.point == "/"), None)
    for mount in ([last_root] if last_root else []) + [mount for mount in listed if mount.point != "/"]:
        key = (mount.source, mount.type)
        if key not in seen and (mount is last_root or mount.type in ON_DISKS | ON_SERVERS):
            seen.add(key)
            yield mount


def list_mounts(mounts: str) -> Iterator[MountEntry]:
    """Yield every line of /proc/mounts. Of two mounts at one point, the later one is seen."""
    for fields in map(str.split, mounts.splitlines()):
        if len(fields) > 3:
            source, point = (OCTAL.sub(lambda code: chr(int(code[1], 8)), field) for field in fields[:2])
            yield MountEntry(source, point, fields[2], fields[3].split(","))


def read_space(root: NodeRoot, point: str) -> ReadingTree:
    """Run df for a mount point: `size_bytes`, and `used_percent` and `inodes_used_percent` of what users may use."""
    columns = "--output=size,used,avail,itotal,iused"
    return run_tool(["df", "-B1", columns, root.local_path(point)], DF_S, parse_df)


def parse_df(text: str) -> ReadingTree:
    """Parse the last row of `df -B1 --output=size,used,avail,itotal,iused`; `-` or 0 inodes means that none count."""
    rows = [line.split() for line in text.splitlines()]
    if not rows or len(rows[-1]) != 5 or not all(part.isdecimal() for part in rows[-1][:3]):
        return failed(f"df: cannot make sense of {text[-80:]!r}")
    size, used, available = map(int, rows[-1][:3])
    inodes, used_inodes = rows[-1][3:]
    counts_inodes = inodes.isdecimal() and used_inodes.isdecimal() and int(inodes)
    no_inodes = absent("this file system does not count inodes")
    return {
        "size_bytes": value(size),
        "used_percent": _share(used, used + available),
        "inodes_used_percent": _share(int(used_inodes), int(inodes)) if counts_inodes else no_inodes,
    }


def _share(used: int, total: int) -> ReadingTree:
    return value(round(100 * used / total, 1)) if total else absent("the file system has no size")


def read_timekeeping(root: NodeRoot) -> LazyTree:
    """Return the `time` branch: `sync` of the first daemon that answers, `ptp`, the kernel's clock source, servers."""
    return {
        "clock_source": root.defer_read(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource", require_text
        ),
        "sync": TimedQuestion(3 * TOOL_S + 1, _sync),
        "sources": TimedQuestion(TOOL_S + 1, partial(run_tool, SOURCES, TOOL_S, parse_sources)),
        "ptp": TimedQuestion(TOOL_S + 1, partial(run_tool, PTP, TOOL_S, parse_pmc)),
    }


def _sync() -> ReadingTree:
    """Return the first daemon's answer; where none answers, the first failure."""
    failures: list[ReadingTree] = []
    for command, parse in DAEMONS:
        answer = run_tool(command, TOOL_S, parse)
        if "daemon" in answer:
            return answer
        failures += [answer] if "failed" in answer else []
    return failures[0] if failures else absent(NO_TIME_DAEMON)


def parse_chrony(text: str) -> ReadingTree:
    """Parse `chronyc -c tracking`: comma separated, in seconds. A positive system time is behind true time."""
    fields = text.strip().splitlines()[-1].split(",") if text.strip() else []
    if len(fields) != CHRONY_FIELDS:
        return _no_answer("chronyc", text)
    try:
        return _sync_branch("chrony", fields[13] == "Normal", -float(fields[4]), fields[1] or fields[0], int(fields[2]))
    except ValueError:
        return _no_answer("chronyc", text)


def parse_sources(text: str) -> ReadingTree:
    """Parse `chronyc -N -c sources`: mode, state and name come first, and the mode `#` is a clock of this machine."""
    rows = [line.split(",") for line in text.splitlines()]
    if any(len(row) < CHRONY_SOURCE_FIELDS for row in rows):
        return _no_answer("chronyc", text)
    return value(sorted({row[2] for row in rows if row[0] != "#"}))


def parse_ntpq(text: str) -> ReadingTree:
    """Parse `ntpq -c rv`: the offset is in milliseconds; leap 11 (or 3) is the alarm of an unsynchronised clock."""
    pairs = dict(NTP_PAIR.findall(text))
    try:
        alarmed = pairs["leap"] in ("11", "3")
        return _sync_branch("ntpd", not alarmed, float(pairs["offset"]) / 1e3, pairs["refid"], int(pairs["stratum"]))
    except (KeyError, ValueError):
        return _no_answer("ntpq", text)


def parse_timesyncd(text: str) -> ReadingTree:
    """Parse `timedatectl timesync-status`. It names no offset before a server's first packet: not synchronised."""
    server = SERVER.search(text)
    stratum = STRATUM.search(text)
    offset = OFFSET.search(text)
    if server is None:
        return _no_answer("timedatectl", text)
    if offset is None or stratum is None:
        unknown = absent("no server has answered yet")
        return {"daemon": value("timesyncd"), "synchronised": value(False), "offset_s": unknown, "stratum": unknown}
    offset_s = float(offset[1]) * UNIT_S[offset[2]]
    return _sync_branch("timesyncd", True, offset_s, server[1], int(stratum[1]))


def parse_pmc(text: str) -> ReadingTree:
    """Parse linuxptp's `pmc GET CURRENT_DATA_SET`: the offset from the master is in nanoseconds."""
    offset = FROM_MASTER.search(text)
    return {"offset_s": value(float(offset[1]) / 1e9)} if offset else absent("ptp4l does not answer: no PTP here")


DAEMONS = (
    (("chronyc", "-n", "-c", "tracking"), parse_chrony),
    (("ntpq", "-n", "-c", "rv"), parse_ntpq),
    (("timedatectl", "timesync-status"), parse_timesyncd),
)


def _sync_branch(daemon: str, synchronised: bool, offset_s: float, source: str, stratum: int) -> ReadingTree:
    return {
        "daemon": value(daemon),
        "synchronised": value(synchronised),
        "offset_s": value(round(offset_s, 9)),
        "source": value(source),
        "stratum": value(stratum),
    }


def _no_answer(tool: str, text: str) -> ReadingTree:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return failed(f"{tool}: {lines[-1][:120]}" if lines else f"{tool} printed nothing")


class ProcessStat(NamedTuple):
    """The first fields of /proc/PID/stat; `name` may hold any byte, brackets and line ends too."""

    pid: int
    name: str
    state: str


def read_processes(root: NodeRoot) -> ReadingTree:
    """Return the `host.processes` branch: `count`, the number of `zombies`, and the names of those `stuck` in state D.

    A process is stuck if it did not run at all for `STUCK_RECHECK_S`. Where none is in state D, this does not wait.
    """
    try:
        pids = [name for name in root.list_names("/proc") if name.isdecimal()]
    except OSError as error:
        return leaf_for_error("/proc", error)
    processes = [process for process in (_read_process(root, pid) for pid in pids) if process]
    if not processes:
        return absent("/proc lists no process")
    waiting = {process: _context_switches(root, process.pid) for process in processes if process.state == "D"}
    time.sleep(STUCK_RECHECK_S if waiting else 0)
    stuck = [process for process, old in waiting.items() if old and _context_switches(root, process.pid) == old]
    return {
        "count": value(len(processes)),
        "zombies": value(sum(process.state == "Z" for process in processes)),
        "stuck": value([f"{process.name} ({process.pid})" for process in stuck]),
    }


def _read_process(root: NodeRoot, pid: str) -> ProcessStat | None:
    """Return the process, None where it has ended."""
    try:
        return parse_process_stat(root.read_start(f"/proc/{pid}/stat", STAT_SIZE))
    except OSError:
        return None


def parse_process_stat(stat: bytes) -> ProcessStat | None:
    """Parse /proc/PID/stat; None where it does not have that form."""
    fields = STAT.match(stat)
    if fields is None:
        return None
    return ProcessStat(int(fields[1]), fields[2].decode(errors="replace"), fields[3].decode(errors="replace"))


def _context_switches(root: NodeRoot, pid: int) -> list[str]:
    """Return a process's counts of context switches, none where it has ended."""
    try:
        return SWITCHES.findall(root.read_text(f"/proc/{pid}/status"))
    except OSError:
        return []


def read_services() -> ReadingTree:
    """Return the `services` branch: `units` (each service's state by name, `active`) and `failed_units` (names)."""
    return run_tool(LIST_UNITS, SYSTEMCTL_S, parse_units)


def parse_units(text: str) -> ReadingTree:
    """Parse `systemctl list-units --plain --no-legend`: columns unit, load, active, sub and description.

    Units that others want but that are not installed are left out.
    """
    rows = [fields for fields in map(str.split, text.splitlines()) if len(fields) > 3 and "." in fields[0]]
    known = {unit: state for unit, load, state, *_ in rows if load == "loaded" and state in UNIT_STATES}
    if not known:
        lines = text.strip().splitlines()
        return failed(f"systemctl: {lines[-1][:120]}" if lines else "systemctl printed nothing")
    names = {unit: unit.removesuffix(".service") for unit in known if unit.endswith(".service")}
    return {
        "units": {name: value(known[unit]) for unit, name in names.items()},
        "failed_units": value(sorted(unit for unit, state in known.items() if state == "failed")),
    }
