"""The folder of a burn-in on the node: its plan, its clock, and the journal, one JSON line for each event.

The journal only grows, so a kill at any time leaves whole lines. What a power loss left half written is cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable
from typing import Any

from assay.node.probe.node_access import NodeRoot

FOLDER = "/var/lib/assay/burn-in"
PLAN = "plan.json"
JOURNAL = "journal.jsonl"
CLOCK = "clock"
LOCK = "lock"
STOP = "stop"
SESSIONS = "sessions"
ERROR = "error"
MOST_WAITING = 64 * 2**20


class BurnInFolder:
    """The files of the one burn-in of a node."""

    def __init__(self, root: NodeRoot) -> None:
        self.root = root
        self.path = root.local_path(FOLDER)

    def file(self, name: str) -> str:
        """Return the path of a file here."""
        return os.path.join(self.path, name)  # noqa: PTH118  # pathlib costs 10 ms to import

    def create(self) -> None:
        """Make the folder. Raises OSError."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)  # noqa: PTH103

    def read_plan(self) -> dict[str, Any]:
        """Return the plan, {} for none that can be read."""
        try:
            plan = json.loads(self.read_text(PLAN))
        except ValueError:
            return {}
        return plan if isinstance(plan, dict) else {}

    def write_plan(self, plan: dict[str, Any]) -> None:
        """Store a plan. That of another burn-in ends what was there."""
        if self.read_plan().get("id") != plan["id"]:
            self.remove(JOURNAL, CLOCK)
        self.remove(STOP)
        self.replace(PLAN, json.dumps(plan))

    def replace(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""
        scratch = self.file(f".{name}.{os.getpid()}")
        with open(scratch, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
        os.replace(scratch, self.file(name))  # noqa: PTH105

    def remove(self, *names: str) -> None:
        """Remove files, if they are there."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.file(name))  # noqa: PTH108

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""
        return os.path.exists(self.file(name))  # noqa: PTH110

    def read_clock(self) -> float:
        """Return how many seconds of the burn-in are done, as noted every second. 0 if that cannot be read."""
        try:
            return max(0.0, float(self.read_text(CLOCK)))
        except ValueError:
            return 0.0

    def read_text(self, name: str) -> str:
        """Return the text of a file, "" if it cannot be read."""
        try:
            with open(self.file(name), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                return file.read()
        except OSError:
            return ""

    def take_lock(self) -> int | None:
        """Return the lock's descriptor, which whoever supervises holds; None if somebody holds it. Raises OSError."""
        self.create()
        lock = os.open(self.file(LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return lock

    def is_full(self) -> bool:
        """Return whether nothing more can be written here."""
        try:
            return os.statvfs(self.path).f_bavail == 0
        except OSError:
            return False

    def is_supervised(self) -> bool:
        """Return whether a supervisor is at work."""
        try:
            lock = self.take_lock()
        except OSError:
            return False
        if lock is not None:
            os.close(lock)
        return lock is None


class Journal:
    """The journal, open for writing. `log` is its name; it changes when a node loses its disk.

    What a full disk takes no more waits in memory, and is written with a later line. `read_time`: the node's time.
    """

    def __init__(self, folder: BurnInFolder, read_time: Callable[[], float] = time.monotonic) -> None:
        folder.create()
        self._read_time = read_time
        self._waiting = b""
        self._file = os.open(folder.file(JOURNAL), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        lines = _cut_torn_line(self._file)
        self.last_t = max((float(line.get("t", 0)) for line in lines), default=0.0)
        self._number = lines[-1]["n"] if lines else 0
        self.is_ended = bool(lines) and lines[-1].get("end") == "done"
        if not lines:
            self.add(0.0, "", sync=True, log=uuid.uuid4().hex[:12])

    def add(self, t: float, phase: str, *, sync: bool = False, **content: Any) -> None:
        """Append a line: its number, the seconds of burn-in, the node's monotonic time, the phase and the content."""
        self._number += 1
        line = {"n": self._number, "t": round(t, 2), "m": round(self._read_time(), 2), "p": phase, **content}
        text = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if len(self._waiting) < MOST_WAITING:  # beyond, the line is lost, and its number shows that
            self._waiting += text
        with contextlib.suppress(OSError):  # a full disk stops no test
            self._write()
            if sync:
                os.fsync(self._file)

    def _write(self) -> None:
        """Write what waits, whole or not at all: half a line would spoil the next one. Raises OSError."""
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, self._waiting) == len(self._waiting):
                self._waiting = b""
        finally:
            if self._waiting:
                os.ftruncate(self._file, size)


def _cut_torn_line(file: int) -> list[dict[str, Any]]:
    """Cut off what follows the last whole line, and return the lines."""
    content = os.pread(file, os.fstat(file).st_size, 0)
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.ftruncate(file, len(whole))
    return parse_lines(whole)


def parse_lines(content: bytes) -> list[dict[str, Any]]:
    """Return the whole lines of a journal. Lines that are no JSON are left out."""
    lines = []
    for text in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "n" in line:
            lines.append(line)
    return lines


def read_since(folder: BurnInFolder, cursor: str, most_bytes: int) -> dict[str, Any]:
    """Return `log`, the `lines` after a cursor (`LOG:NUMBER`), and whether there are `more`.

    All lines count as new if the journal has another name.
    """
    try:
        with open(folder.file(JOURNAL), "rb") as file:  # noqa: PTH123
            lines = parse_lines(file.read())
    except OSError:
        return {"log": "", "lines": [], "more": False}
    log = str(lines[0].get("log", "")) if lines else ""
    known, _, number = cursor.partition(":")
    after = int(number) if known == log and number.isdigit() else 0
    chosen: list[dict[str, Any]] = []
    size = 0
    for line in lines:
        if line["n"] > after:
            size += len(json.dumps(line))
            if chosen and size > most_bytes:
                return {"log": log, "lines": chosen, "more": True}
            chosen.append(line)
    return {"log": log, "lines": chosen, "more": False}
