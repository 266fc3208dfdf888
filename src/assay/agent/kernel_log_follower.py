"""Follows a kernel log: /dev/kmsg itself, or a file of its records that grows, is rotated, or is written anew.

What was overwritten before it was read is counted, never guessed. A cursor is SEQ@BOOT: numbers start anew with each
boot.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from assay.probe.kernel_log import KERNEL_RECORD, KMSG, MAX_RECORD_BYTES, KernelLogCursor
from assay.probe.node_access import NodeRoot

CHUNK_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
MAX_RECORDS_PER_READ = 500
FILE_POLL_S = 0.02
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class RawKernelRecord(NamedTuple):
    """One record as the kernel wrote it, with its number."""

    seq: int
    raw: bytes


class KernelLogSource(Protocol):
    """Where records come from."""

    def wait(self, seconds: float) -> None:
        """Wait until there may be more, `seconds` at most."""

    def read(self) -> list[bytes]:
        """Return the next raw records, none where there are none yet. Raises OSError."""

    def restarted(self) -> int | None:
        """Return the number of the last record of a log that was begun anew since it was asked last, None if not."""


class KernelLogFollower:
    """The records after `since`, each once. `missed` counts those that were overwritten before they were read."""

    def __init__(self, root: NodeRoot, since: KernelLogCursor, path: str = KMSG) -> None:
        self._root, self.missed = root, 0
        self._log = _open_source(root.local_path(path))
        self.boot, self.seq = self._boot(), since.seq if since.boot_id == self._boot() else -1

    @property
    def cursor(self) -> str:
        """How far the log has been read, as SEQ@BOOT."""
        return f"{self.seq}@{self.boot}"

    def read_new(self, seconds: float) -> list[RawKernelRecord]:
        """Return the records that are new, waiting for them `seconds` at most. Raises OSError."""
        raw = self._log.read()
        if not raw:
            self._log.wait(seconds)
            raw = self._log.read()
        if (last := self._log.restarted()) is not None:
            self._begun_anew(last)
        return list(self._fresh(raw))

    def _begun_anew(self, last: int) -> None:
        """A log that ends before the cursor, or of another boot, has nothing that was seen."""
        boot, was = self._boot(), self.boot
        if boot != was or last < self.seq:
            self.boot, self.seq = boot, -1

    def _fresh(self, raw: list[bytes]) -> Iterator[RawKernelRecord]:
        for record in raw:
            match = KERNEL_RECORD.match(record)
            if match is None or (seq := int(match[2])) <= self.seq:
                continue
            if self.seq >= 0:
                self.missed += seq - self.seq - 1
            self.seq = seq
            yield RawKernelRecord(seq, record)

    def _boot(self) -> str:
        try:
            return self._root.read_text(BOOT_ID)
        except OSError:
            return ""


def _open_source(path: str) -> KernelLogSource:
    return KmsgDevice(path) if stat.S_ISCHR(os.stat(path).st_mode) else KmsgFile(path)  # noqa: PTH116  # see probe.files


class KmsgDevice:
    """/dev/kmsg: one record a read; it wakes us."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Sleep until the kernel says more."""
        self._poll.poll(seconds * 1000)

    def read(self) -> list[bytes]:
        """Return what there is. A record that was overwritten (EPIPE) shows as a gap in the numbers."""
        records: list[bytes] = []
        while len(records) < MAX_RECORDS_PER_READ:
            try:
                records.append(os.read(self._fd, MAX_RECORD_BYTES))
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue
        return records

    def restarted(self) -> int | None:
        """Return None: it lives as long as its boot."""
        return None


class KmsgFile:
    """A file of records, one a line. It is looked at fifty times a second, since plain files wake nobody."""

    def __init__(self, path: str) -> None:
        self._path, self._fd, self._rest = path, -1, b""
        self._last: int | None = None
        self._open()

    def wait(self, seconds: float) -> None:
        """Sleep a little."""
        time.sleep(min(seconds, FILE_POLL_S))

    def read(self) -> list[bytes]:
        """Return the whole lines that were added; at the end of a file that was replaced, go on with the new one."""
        piece = os.read(self._fd, CHUNK_BYTES)
        if not piece and self._replaced():
            self._open()
            piece = os.read(self._fd, CHUNK_BYTES)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self._rest = self._rest[-MAX_RECORD_BYTES:]
        return [line for line in lines if line and not line.startswith(b" ")]

    def restarted(self) -> int | None:
        """Return the last number of the file that was opened since this was asked last."""
        last, self._last = self._last, None
        return last

    def _open(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._rest = os.open(self._path, os.O_RDONLY), b""
        self._last = _last_number(self._fd)

    def _replaced(self) -> bool:
        """Whether another file has taken this one's place, or this one was cut. A moment without any is neither."""
        try:
            there = os.stat(self._path)  # noqa: PTH116  # see probe.files
        except FileNotFoundError:
            return False
        here = os.fstat(self._fd)
        return (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev) or here.st_size < os.lseek(
            self._fd, 0, os.SEEK_CUR
        )


def _last_number(fd: int) -> int:
    size = os.fstat(fd).st_size
    tail = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
    numbers = [
        int(match[2])
        for line in tail.split(b"\n")[1 if size > TAIL_BYTES else 0 :]
        if (match := KERNEL_RECORD.match(line))
    ]
    return numbers[-1] if numbers else -1
