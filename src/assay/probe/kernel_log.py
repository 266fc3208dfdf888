"""The kernel's log since a cursor, from /dev/kmsg: records `prio,seq,usec,flags;text`.

Format: the kernel's Documentation/ABI/testing/dev-kmsg. Below another root, /dev/kmsg is a regular file of
such records.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from assay.model.reading import absent, failed, value
from assay.probe.kernel_log_filter import KNOWN_WORTH, KernelLogFilter
from assay.probe.node_access import NodeRoot, Tree, leaf_for_error

KMSG = "/dev/kmsg"
KERNEL_RECORD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;([^\n]*)")
ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
MAX_RECORD_BYTES = 8192  # the kernel's own limit is just below
MAX_LOG_LINES = 5000


class KernelLogLine(NamedTuple):
    """One record: its sequence number, seconds since boot, and the message."""

    seq: int
    t_s: float
    text: str


class KernelLogCursor(NamedTuple):
    """The last record that the asker has seen, and in which boot; sequence numbers start anew with each boot."""

    seq: int = -1
    boot_id: str = ""

    @classmethod
    def parse(cls, text: str) -> KernelLogCursor:
        """Read `SEQ` or `SEQ@BOOT_ID`. Raises ValueError."""
        seq, _, boot_id = text.partition("@")
        return cls(int(seq), boot_id)


def read_kernel_log(root: NodeRoot, since: KernelLogCursor) -> Tree:
    """Return the `kernel_log` branch: `cursor`, new `lines`, how many were `missed`, how many `leaf_for_error` (no record).

    Missed are those that were overwritten and, of more than 5000, those that tell least. A log that ends before the
    cursor is another boot's: all is new.
    """
    try:
        records = list(_records(root.local_path(KMSG)))
    except OSError as error:
        return leaf_for_error(KMSG, error)
    told = [(line, record) for record in records if (line := parse_kernel_record(record)) is not None]
    unreadable = len(records) - len(told)
    if not told:
        return failed(f"{KMSG}: {unreadable} records, none readable") if unreadable else absent(f"{KMSG} is empty")
    last = told[-1][0].seq
    return {**_new_lines(told, last, _last_seen_seq(root, since, last)), "unread": value(unreadable)}


def _last_seen_seq(root: NodeRoot, since: KernelLogCursor, last: int) -> int:
    rebooted = since.boot_id and root.read_leaf("/proc/sys/kernel/random/boot_id").get("value") != since.boot_id
    return -1 if rebooted or last < since.seq else since.seq


def _new_lines(told: list[tuple[KernelLogLine, bytes]], last: int, seen: int) -> Tree:
    new = [(line, record) for line, record in told if line.seq > seen]
    kept = [line for line, _ in new] if len(new) <= MAX_LOG_LINES else _select_most_relevant(new)
    expected = last - seen if seen >= 0 else len(new)
    return {
        "cursor": value(last),
        "lines": value([line._asdict() for line in kept]),
        "missed": value(max(0, expected - len(kept))),
    }


def _select_most_relevant(new: list[tuple[KernelLogLine, bytes]]) -> list[KernelLogLine]:
    """Return 5000 lines in their order: those of known things, the first and the last of them; then what is newest."""
    interest = KernelLogFilter()
    worths = [interest.rate_record(record) for _, record in new]
    known = [line for (line, _), worth in zip(new, worths, strict=True) if worth == KNOWN_WORTH]
    if len(known) >= MAX_LOG_LINES:
        return known[: MAX_LOG_LINES // 2] + known[-(MAX_LOG_LINES - MAX_LOG_LINES // 2) :]
    others = sorted((worth, line) for (line, _), worth in zip(new, worths, strict=True) if worth < KNOWN_WORTH)
    return sorted(known + [line for _, line in others[len(known) - MAX_LOG_LINES :]])


def parse_kernel_record(record: bytes) -> KernelLogLine | None:
    """Return what a record says, None when it is no record. The kernel's escapes of odd bytes are undone."""
    match = KERNEL_RECORD.match(record)
    if match is None:
        return None
    _, seq, usec, text = match.groups()
    plain = ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), text)
    return KernelLogLine(int(seq), int(usec) / 1e6, plain.decode(errors="replace"))


def _records(path: str) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            yield from _device_records(descriptor)
        else:
            yield from _file_records(descriptor)
    finally:
        os.close(descriptor)


def _device_records(descriptor: int) -> Iterator[bytes]:
    """Yield one record a read until there is none left; EPIPE means that the next one was overwritten."""
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


def _file_records(descriptor: int) -> Iterator[bytes]:
    """Yield the lines that begin a record; those with a leading space carry its dictionary."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        yield from (line for line in file if line.strip() and not line.startswith(b" "))
