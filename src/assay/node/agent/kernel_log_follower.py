"""Follows a kernel log: /dev/kmsg, or a file of its records that may grow, be rotated or be replaced.

Records that were overwritten before they were read are counted. A cursor is SEQ@BOOT_ID, since the numbers restart
with each boot.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from assay.node.probe.kernel_log import KERNEL_RECORD, KMSG, MAX_RECORD_BYTES, KernelLogCursor
from assay.node.probe.node_access import BOOT_ID_FILE, NodeRoot

CHUNK_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
MAX_RECORDS_PER_READ = 500
FILE_POLL_S = 0.02


class RawKernelRecord(NamedTuple):
    """One record as the kernel wrote it, with its sequence number."""

    seq: int
    raw: bytes


class KernelLogSource(Protocol):
    """A source of raw kernel records."""

    def wait(self, seconds: float) -> None:
        """Wait until there may be new records, `seconds` at most."""

    def read(self) -> list[bytes]:
        """Return the next raw records, none where there are no new ones. Raises OSError."""

    def take_restart(self) -> int | None:
        """Return the last record's number of a log that was opened since the last call, None where none was."""


class KernelLogFollower:
    """Reads the records after `since`, each once. `missed` counts records that were overwritten before that."""

    def __init__(self, root: NodeRoot, since: KernelLogCursor, path: str = KMSG) -> None:
        self._root, self.missed = root, 0
        self._log = _open_source(root.local_path(path))
        self.boot = self._read_boot_id()
        self.seq = since.seq if since.boot_id == self.boot else -1

    @property
    def cursor(self) -> str:
        """The last record that was read, as SEQ@BOOT_ID."""
        return f"{self.seq}@{self.boot}"

    def read_new(self, seconds: float) -> list[RawKernelRecord]:
        """Return the new records; wait for them `seconds` at most. Raises OSError."""
        raw = self._log.read()
        if not raw:
            self._log.wait(seconds)
            raw = self._log.read()
        if (last := self._log.take_restart()) is not None:
            self._handle_restart(last)
        return list(self._take_unseen(raw))

    def _handle_restart(self, last: int) -> None:
        """Restart the cursor where the log is of another boot or ends before the cursor: all its records are new."""
        boot, was = self._read_boot_id(), self.boot
        if boot != was or last < self.seq:
            self.boot, self.seq = boot, -1

    def _take_unseen(self, raw: list[bytes]) -> Iterator[RawKernelRecord]:
        for record in raw:
            match = KERNEL_RECORD.match(record)
            if match is None or (seq := int(match[2])) <= self.seq:
                continue
            if self.seq >= 0:
                self.missed += seq - self.seq - 1
            self.seq = seq
            yield RawKernelRecord(seq, record)

    def _read_boot_id(self) -> str:
        try:
            return self._root.read_text(BOOT_ID_FILE)
        except OSError:
            return ""


def _open_source(path: str) -> KernelLogSource:
    return KmsgDevice(path) if stat.S_ISCHR(os.stat(path).st_mode) else KmsgFile(path)  # noqa: PTH116  # as in node_access


class KmsgDevice:
    """/dev/kmsg, which gives one record a read and can be polled."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Sleep until the kernel has a new record, `seconds` at most."""
        self._poll.poll(seconds * 1000)

    def read(self) -> list[bytes]:
        """Return the records that are there. A record that was overwritten (EPIPE) leaves a gap in the numbers."""
        records: list[bytes] = []
        while len(records) < MAX_RECORDS_PER_READ:
            try:
                records.append(os.read(self._fd, MAX_RECORD_BYTES))
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue
        return records

    def take_restart(self) -> int | None:
        """Return None: the device lasts as long as its boot."""
        return None


class KmsgFile:
    """A file of records, one a line. A file cannot be polled, so it is read fifty times a second."""

    def __init__(self, path: str) -> None:
        self._path, self._fd, self._rest = path, -1, b""
        self._last: int | None = None
        self._open()

    def wait(self, seconds: float) -> None:
        """Sleep `FILE_POLL_S`, `seconds` at most."""
        time.sleep(min(seconds, FILE_POLL_S))

    def read(self) -> list[bytes]:
        """Return the whole lines that were added. At the end of a file that was replaced, open the new one."""
        piece = os.read(self._fd, CHUNK_BYTES)
        if not piece and self._is_replaced():
            self._open()
            piece = os.read(self._fd, CHUNK_BYTES)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self._rest = self._rest[-MAX_RECORD_BYTES:]
        return [line for line in lines if line and not line.startswith(b" ")]

    def take_restart(self) -> int | None:
        """Return the last record's number of the file if it was opened since the last call, else None."""
        last, self._last = self._last, None
        return last

    def _open(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._rest = os.open(self._path, os.O_RDONLY), b""
        self._last = _last_record_number(self._fd)

    def _is_replaced(self) -> bool:
        """Return whether another file is in this one's place, or this one was truncated. False while there is none."""
        try:
            there = os.stat(self._path)  # noqa: PTH116  # as in node_access
        except FileNotFoundError:
            return False
        here = os.fstat(self._fd)
        return (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev) or here.st_size < os.lseek(
            self._fd, 0, os.SEEK_CUR
        )


def _last_record_number(fd: int) -> int:
    """Return the number of the last record in a file, -1 where its end has none."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
    numbers = [
        int(match[2])
        for line in tail.split(b"\n")[1 if size > TAIL_BYTES else 0 :]
        if (match := KERNEL_RECORD.match(line))
    ]
    return numbers[-1] if numbers else -1
