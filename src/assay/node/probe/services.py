"""Reads processes that are stuck (zombies, and state D, which no signal reaches), and the states of systemd's units."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import NodeRoot, leaf_for_error, run_tool

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
