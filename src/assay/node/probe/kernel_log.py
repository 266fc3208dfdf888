"""Reads the kernel's log since a cursor, from /dev/kmsg: records `prio,seq,usec,flags;text`.

Format: the kernel's Documentation/ABI/testing/dev-kmsg. Below another root, /dev/kmsg is a regular file of records.

`KernelLogFilter` chooses records worth sending before anything is parsed: lines at level warning or worse, and lines
with a built-in word or one of the controller's words. The controller derives its words from its fault patterns and
sends them in its answers, so a larger catalogue needs no new agent.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import BOOT_ID_FILE, NodeRoot, leaf_for_error

WARNING_LEVEL = 4  # of the kernel's levels, include/linux/kern_levels.h; lower is worse
BUILT_IN_WORDS = (
    "NVRM",
    "nvidia",
    "mlx5",
    "infiniband",
    "nvme",
    "pcieport",
    "AER:",
    "EDAC",
    "mce:",
    "Hardware Error",
    "Out of memory",
    "oom-kill",
    "EXT4-fs",
    "XFS (",
    "I/O error",
    "blocked for more than",
    "lockup",
    "Link is Down",
    "link down",
    "thermal",
)
"""Drivers and subsystems that report faults at level info too: a link that goes down, for one."""
KMSG = "/dev/kmsg"
KERNEL_RECORD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;([^\n]*)")
ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
MAX_RECORD_BYTES = 8192  # just above the kernel's own limit
MAX_LOG_LINES = 5000


class RecordPriority(IntEnum):
    """How much a record matters. Where space is short, records of a lower priority go first."""

    ROUTINE = 0
    """Neither of the others; the agent keeps its own probe readings at this priority too."""
    WARNING = 1
    """The kernel's level is warning or worse."""
    KNOWN = 2
    """The record has a word of the filter."""


class KernelLogFilter:
    """Looks for the built-in words and for `controller_words`. An empty word among these matches every line."""

    def __init__(self, controller_words: Sequence[str] = ()) -> None:
        self.controller_words = tuple(controller_words)
        words = (*BUILT_IN_WORDS, *controller_words)
        self._words = re.compile("|".join(map(re.escape, words)).encode(), re.IGNORECASE)

    def rate_record(self, record: bytes) -> RecordPriority:
        """Return the priority of a raw record."""
        if self._words.search(record):
            return RecordPriority.KNOWN
        return RecordPriority.WARNING if parse_level(record) <= WARNING_LEVEL else RecordPriority.ROUTINE


def parse_level(record: bytes) -> int:
    """Return the kernel's level of a record `prio,seq,…`: the low three bits of `prio`."""
    priority = record.partition(b",")[0]
    return int(priority) & 7 if priority.isdigit() else WARNING_LEVEL


class KernelLogLine(NamedTuple):
    """One record: its sequence number, seconds since boot, the message, and its level."""

    seq: int
    t_s: float
    text: str
    level: int


class KernelLogCursor(NamedTuple):
    """The last record that the caller has seen, and its boot. Sequence numbers restart with each boot."""

    seq: int = -1
    boot_id: str = ""

    @classmethod
    def parse(cls, text: str) -> KernelLogCursor:
        """Read `SEQ` or `SEQ@BOOT_ID`. Raises ValueError."""
        seq, _, boot_id = text.partition("@")
        return cls(int(seq), boot_id)


def read_kernel_log(root: NodeRoot, since: KernelLogCursor) -> ReadingTree:
    """Return the `kernel_log` branch: `cursor`, new `lines`, and the numbers of `missed` lines and `unread` records.

    Missed lines were overwritten, or are the least relevant of more than `MAX_LOG_LINES`. Unread records cannot be
    parsed. A log that ends before the cursor belongs to another boot: then all of its lines are new.
    """
    try:
        records = list(_records(root.local_path(KMSG)))
    except OSError as error:
        return leaf_for_error(KMSG, error)
    parsed = [(line, record) for record in records if (line := parse_kernel_record(record)) is not None]
    unreadable = len(records) - len(parsed)
    if not parsed:
        return failed(f"{KMSG}: {unreadable} records, none readable") if unreadable else absent(f"{KMSG} is empty")
    last = parsed[-1][0].seq
    rebooted = since.boot_id and root.read_leaf(BOOT_ID_FILE).get("value") != since.boot_id
    seen = -1 if rebooted or last < since.seq else since.seq
    new = [(line, record) for line, record in parsed if line.seq > seen]
    lines = [line for line, _ in new] if len(new) <= MAX_LOG_LINES else _select_most_relevant(new)
    expected = last - seen if seen >= 0 else len(new)
    return {
        "cursor": value(last),
        "lines": value([line._asdict() for line in lines]),
        "missed": value(max(0, expected - len(lines))),
        "unread": value(unreadable),
    }


def _select_most_relevant(new: list[tuple[KernelLogLine, bytes]]) -> list[KernelLogLine]:
    """Return `MAX_LOG_LINES` lines in their order.

    Lines with a word of the filter come first; where these are too many, the oldest half and the newest half. Then
    warnings, then other lines, the newest first.
    """
    log_filter = KernelLogFilter()
    rated = [(log_filter.rate_record(record), line) for line, record in new]
    known = [line for priority, line in rated if priority == RecordPriority.KNOWN]
    if len(known) >= MAX_LOG_LINES:
        return known[: MAX_LOG_LINES // 2] + known[-(MAX_LOG_LINES - MAX_LOG_LINES // 2) :]
    others = sorted((priority, line) for priority, line in rated if priority < RecordPriority.KNOWN)
    return sorted(known + [line for _, line in others[len(known) - MAX_LOG_LINES :]])


def parse_kernel_record(record: bytes) -> KernelLogLine | None:
    """Return the line of a record, None for bytes that are no record. The kernel's escapes of odd bytes are undone."""
    match = KERNEL_RECORD.match(record)
    if match is None:
        return None
    _, seq, usec, text = match.groups()
    plain = ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), text)
    return KernelLogLine(int(seq), int(usec) / 1e6, plain.decode(errors="replace"), parse_level(record))


def _records(path: str) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            yield from _device_records(descriptor)
        else:
            # Lines with a leading space hold a record's dictionary.
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield from (line for line in file if line.strip() and not line.startswith(b" "))
    finally:
        os.close(descriptor)


def _device_records(descriptor: int) -> Iterator[bytes]:
    """Yield the records, one for each read. EPIPE means that the next record was overwritten."""
    while True:
        try:
            record = os.read(descriptor, MAX_RECORD_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue
        if not record:
            return
        yield record
