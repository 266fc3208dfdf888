"""What the agent follows: the kernel log, NVML's events (XIDs and memory errors), and the probe at intervals.

The log is /dev/kmsg, or a file of its records that may grow, be rotated or be replaced. Records that were overwritten
before they were read are counted. A cursor is SEQ@BOOT_ID, since the numbers restart with each boot. Following events
keeps a GPU's device open, so the GPU cannot be reset meanwhile: whoever resets GPUs stops the agent first. The probe
has a process of its own, so that one that hangs does not stop the agent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from assay.node.probe.kernel_log import KERNEL_RECORD, KMSG, MAX_RECORD_BYTES, KernelLogCursor
from assay.node.probe.node_access import BOOT_ID_FILE, NodeRoot

if TYPE_CHECKING:
    import assay.node.probe.__main__  # noqa: F401 — runs as a process; the import makes the packer include the probe

CHUNK_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
MAX_RECORDS_PER_READ = 500
FILE_POLL_S = 0.02
WAIT_MS = 500
RETRY_S = 30.0
EVENT_TEXTS = {
    "nvmlEventTypeXidCriticalError": "",
    "nvmlEventTypeDoubleBitEccError": "double bit ECC error",
    "nvmlEventTypeSingleBitEccErrorStorm": "storm of single bit ECC errors",
    "nvmlEventTypeDramRetirementEvent": "DRAM row retired",
    "nvmlEventTypeDramRetirementFailure": "DRAM row could not be retired",
    "nvmlEventTypeNonFatalPoisonError": "poison consumed, contained",
    "nvmlEventTypeFatalPoisonError": "poison consumed, not contained",
    "nvmlEventTypeGpuUnavailableError": "GPU unavailable",
    "nvmlEventTypeGpuRecoveryAction": "GPU recovery action changed",
}
DEADLINE_S = 60.0
MAX_OUTPUT_BYTES = 4 * 1024 * 1024


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
        self._root = root
        self.missed = 0
        local = root.local_path(path)
        is_device = stat.S_ISCHR(os.stat(local).st_mode)  # noqa: PTH116  # as in node_access
        self._log: KernelLogSource = KmsgDevice(local) if is_device else KmsgFile(local)
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
            # All records are new where the log is of another boot or ends before the cursor.
            boot = self._read_boot_id()
            if boot != self.boot or last < self.seq:
                self.boot = boot
                self.seq = -1
        return list(self._take_unseen(raw))

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
        self._path = path
        self._fd = -1
        self._rest = b""
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
        last = self._last
        self._last = None
        return last

    def _open(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._path, os.O_RDONLY)
        self._rest = b""
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


class NvmlEventFollower:
    """Passes each event to `on_event`, as text in the form of kernel log lines. `error` says why there are none."""

    def __init__(self, on_event: Callable[[str], None], over: threading.Event) -> None:
        self._on_event = on_event
        self._over = over
        self.error = "NVML: not followed yet"

    def run(self) -> None:
        """Follow until `over` is set. Where NVML fails, retry every `RETRY_S`; without its bindings, return."""
        while not self._over.is_set():
            try:
                import pynvml

                self._follow(pynvml)
            except ImportError:
                self.error = "NVML's bindings (nvidia-ml-py) are not installed"
                return
            except Exception as error:  # NVML's errors have many classes; none may end the agent
                self.error = f"NVML: {error}"
            self._over.wait(RETRY_S)

    def _follow(self, nvml: ModuleType) -> None:
        nvml.nvmlInit()
        try:
            events = nvml.nvmlEventSetCreate()
            addresses = dict(_register_gpus(nvml, events))
            self.error = "" if addresses else "NVML: no GPU offers events"
            while addresses and not self._over.is_set():
                if text := _next_event(nvml, events, addresses):
                    self._on_event(text)
        finally:
            nvml.nvmlShutdown()


def _register_gpus(nvml: ModuleType, events: Any) -> Iterator[tuple[int | None, str]]:
    """Register the events of every GPU; yield (handle, PCI address) of each. A lost GPU is left out."""
    wanted = sum({getattr(nvml, name, 0) for name in EVENT_TEXTS})
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            nvml.nvmlDeviceRegisterEvents(gpu, wanted & nvml.nvmlDeviceGetSupportedEventTypes(gpu), events)
            bus_id = nvml.nvmlDeviceGetPciInfo(gpu).busId
            text = bus_id.decode() if isinstance(bus_id, bytes) else bus_id
            # NVML's `00000000:1B:00.0` is `0000:1b:00` in the kernel log.
            domain, _, rest = text.lower().partition(":")
            yield _handle_number(gpu), f"{domain[-4:]}:{rest.partition('.')[0]}"
        except nvml.NVMLError:
            continue


def _next_event(nvml: ModuleType, events: Any, addresses: dict[int | None, str]) -> str:
    """Return the text of the next event, "" where none comes within `WAIT_MS`."""
    try:
        event = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_TIMEOUT:
            return ""
        raise
    address = addresses.get(_handle_number(event.device), "unknown")
    if event.eventType == nvml.nvmlEventTypeXidCriticalError:
        return f"NVRM: Xid (PCI:{address}): {event.eventData}, reported by NVML"
    texts = (text for name, text in EVENT_TEXTS.items() if getattr(nvml, name, 0) == event.eventType)
    return f"NVML: {next(texts, 'an event')} (PCI:{address})"


def _handle_number(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


class PeriodicProbe:
    """Runs the probe every `seconds` and passes its tree to `on_readings`; the first run is at a random time.

    `since` gives the kernel log cursor from which the probe reads, and `last_entry` the ledger's newest entry that the
    controller has told. The tree carries it as `after_entry`, since the probe starts after that.
    """

    def __init__(
        self,
        root: str,
        seconds: float,
        since: Callable[[], str],
        on_readings: Callable[[Any], None],
        last_entry: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._root = root
        self._seconds = seconds
        self._since = since
        self._on_readings = on_readings
        self._last_entry = last_entry

    def run(self, over: threading.Event) -> None:
        """Probe until `over` is set."""
        pause = random.uniform(0, min(self._seconds, 60.0))  # noqa: S311  # spreads the nodes over time
        while not over.wait(pause):
            self.read_once()
            pause = self._seconds

    def read_once(self) -> None:
        """Probe once, and pass the tree on."""
        after_entry = self._last_entry()
        tree = run_probe_process(self._root, self._since())
        self._on_readings(tree if after_entry is None else {**tree, "after_entry": {"value": after_entry}})


def run_probe_process(root: str, since: str) -> dict[str, Any]:
    """Run the probe and return its tree of this node, or a failed leaf."""
    command = [sys.executable, "-m", "assay.node.probe", "--root", root or "/", f"--since={since}"]
    package_root = Path(__file__).resolve().parents[3]  # the folder or zip file that holds the package assay
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(package_root)},
        )
    except OSError as error:
        return {"failed": f"the probe cannot be started: {error.strerror}"}
    try:
        output, _ = child.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        return {"failed": f"no answer within {DEADLINE_S:g} s"}
    if len(output) > MAX_OUTPUT_BYTES:
        return {"failed": f"the probe printed more than {MAX_OUTPUT_BYTES >> 20} MiB"}
    try:
        tree = json.loads(output)["probe"]
    except (ValueError, KeyError, TypeError):
        return {"failed": f"the probe printed no document and ended with exit code {child.returncode}"}
    return tree if isinstance(tree, dict) else {"failed": "the probe printed no readings"}
