"""Processes that are stuck: zombies that nobody collects, and sleepers that no signal reaches (state D)."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from assay.model.reading import absent, value
from assay.probe.files import Root, Tree, unread

BETWEEN_S = 1.0
PROCESSES_S = 4.0  # a node under load has ten thousand, and one look may be followed by another
STAT_SIZE = 1024
STAT = re.compile(rb"(\d+) \((.*)\) (\S) ", re.DOTALL)
SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)


class Process(NamedTuple):
    """What /proc/PID/stat begins with; `name` may hold anything, brackets and line ends too."""

    pid: int
    name: str
    state: str


def read_processes(root: Root) -> Tree:
    """Return the `host.processes` branch: how many there are, how many zombies, and which are stuck in state D.

    Stuck is who did not run at all for a second; nothing is waited for where nobody is in state D.
    """
    try:
        pids = [name for name in root.names("/proc") if name.isdecimal()]
    except OSError as error:
        return unread("/proc", error)
    found = [process for process in (_look(root, pid) for pid in pids) if process]
    if not found:
        return absent("/proc lists no process")
    waiting = {process: _switches(root, process.pid) for process in found if process.state == "D"}
    time.sleep(BETWEEN_S if waiting else 0)
    stuck = [process for process, before in waiting.items() if before and _switches(root, process.pid) == before]
    return {
        "count": value(len(found)),
        "zombies": value(sum(process.state == "Z" for process in found)),
        "stuck": value([f"{process.name} ({process.pid})" for process in stuck]),
    }


def _look(root: Root, pid: str) -> Process | None:
    """Return the process, None for one that ended meanwhile."""
    try:
        return parse(root.start(f"/proc/{pid}/stat", STAT_SIZE))
    except OSError:
        return None


def parse(stat: bytes) -> Process | None:
    """Return what /proc/PID/stat says, None where it makes no sense."""
    found = STAT.match(stat)
    if found is None:
        return None
    return Process(int(found[1]), found[2].decode(errors="replace"), found[3].decode(errors="replace"))


def _switches(root: Root, pid: int) -> list[str]:
    """Return how often a process was given and lost a CPU, nothing for one that ended."""
    try:
        return SWITCHES.findall(root.text(f"/proc/{pid}/status"))
    except OSError:
        return []
