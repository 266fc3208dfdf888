"""Processes that are stuck: zombies that nobody collects, and sleepers that no signal reaches (state D).

What systemd runs: the state of every unit that matters, and those that failed.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from assay.model.reading import absent, failed, value
from assay.probe.node_access import NodeRoot, Tree, leaf_for_error, run_tool

STUCK_RECHECK_S = 1.0
PROCESSES_S = 4.0  # a node under load has ten thousand, and one look may be followed by another
STAT_SIZE = 1024
STAT = re.compile(rb"(\d+) \((.*)\) (\S) ", re.DOTALL)
SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)


class ProcessStat(NamedTuple):
    """What /proc/PID/stat begins with; `name` may hold anything, brackets and line ends too."""

    pid: int
    name: str
    state: str


def read_processes(root: NodeRoot) -> Tree:
    """Return the `host.processes` branch: how many there are, how many zombies, and which are stuck in state D.

    Stuck is who did not run at all for a second; nothing is waited for where nobody is in state D.
    """
    try:
        pids = [name for name in root.list_names("/proc") if name.isdecimal()]
    except OSError as error:
        return leaf_for_error("/proc", error)
    found = [process for process in (_look(root, pid) for pid in pids) if process]
    if not found:
        return absent("/proc lists no process")
    waiting = {process: _switches(root, process.pid) for process in found if process.state == "D"}
    time.sleep(STUCK_RECHECK_S if waiting else 0)
    stuck = [process for process, before in waiting.items() if before and _switches(root, process.pid) == before]
    return {
        "count": value(len(found)),
        "zombies": value(sum(process.state == "Z" for process in found)),
        "stuck": value([f"{process.name} ({process.pid})" for process in stuck]),
    }


def _look(root: NodeRoot, pid: str) -> ProcessStat | None:
    """Return the process, None for one that ended meanwhile."""
    try:
        return parse_process_stat(root.read_start(f"/proc/{pid}/stat", STAT_SIZE))
    except OSError:
        return None


def parse_process_stat(stat: bytes) -> ProcessStat | None:
    """Return what /proc/PID/stat says, None where it makes no sense."""
    found = STAT.match(stat)
    if found is None:
        return None
    return ProcessStat(int(found[1]), found[2].decode(errors="replace"), found[3].decode(errors="replace"))


def _switches(root: NodeRoot, pid: int) -> list[str]:
    """Return how often a process was given and lost a CPU, nothing for one that ended."""
    try:
        return SWITCHES.findall(root.read_text(f"/proc/{pid}/status"))
    except OSError:
        return []


SYSTEMCTL_S = 2.5
SERVICES_S = 3.0
UNIT_TYPES = "--type=service,mount,socket,timer"
LIST_UNITS = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager", "--full", UNIT_TYPES]
UNIT_STATES = {"active", "activating", "deactivating", "failed", "inactive", "maintenance", "reloading", "refreshing"}


def read_services() -> Tree:
    """Return the `services` branch: `parse_units` (state of each service by name, `active`) and `failed_units` (names)."""
    return run_tool(LIST_UNITS, SYSTEMCTL_S, parse_units)


def parse_units(text: str) -> Tree:
    """Read `systemctl list-units --plain --no-legend`: unit, load, active, sub and description in columns.

    Units that are not installed, and only wanted by others, are left out.
    """
    rows = [fields for fields in map(str.split, text.splitlines()) if len(fields) > 3 and "." in fields[0]]
    known = {unit: state for unit, load, state, *_ in rows if load == "loaded" and state in UNIT_STATES}
    if not known:
        said = text.strip().splitlines()
        return failed(f"systemctl: {said[-1][:120]}" if said else "systemctl printed nothing")
    names = {unit: unit.removesuffix(".service") for unit in known if unit.endswith(".service")}
    return {
        "units": {name: value(known[unit]) for unit, name in names.items()},
        "failed_units": value(sorted(unit for unit, state in known.items() if state == "failed")),
    }
