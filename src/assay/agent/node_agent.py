"""The agent: what it follows, what it keeps, and how it ends.

What the agent itself costs the node.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.agent.batch_sender import BatchSender, DeliveryPace, StderrLogger
from assay.agent.controller_connection import ControllerConnection
from assay.agent.delivery_buffer import KNOWN_WORTH, READINGS_WORTH, BufferItem, DeliveryBuffer
from assay.agent.kernel_log_follower import KernelLogFollower, RawKernelRecord
from assay.agent.nvml_events import NvmlEventFollower
from assay.agent.periodic_probe import PeriodicProbe
from assay.probe.kernel_log import KMSG, KernelLogCursor, parse_kernel_record
from assay.probe.kernel_log_filter import KernelLogFilter
from assay.probe.node_access import NodeRoot

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def read_cpu_s() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for (the probe)."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(sum(one.ru_utime + one.ru_stime for one in spent), 3)


def read_rss_bytes() -> int:
    """Return the memory that this process holds now."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # see probe.files
        return int(file.read().split()[1]) * PAGE_BYTES


def read_uptime_s() -> float:
    """Return the seconds since this node booted, asleep or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


LOG_POLL_S = 0.5
LOG_RETRY_S = 10.0
FLUSH_S = 5.0
CURSOR_SAVE_S = 10.0
SWITCH_S = 0.0005  # so that who delivers does not wait for who reads a burst


@dataclass(frozen=True)
class AgentOptions:
    """What the agent is asked to do. Paths are this machine's; `root` is where the node's files are."""

    node: str
    state: Path
    root: str = ""
    log: str = KMSG
    buffer_bytes: int = 64 * 1024 * 1024
    probe_s: float = 0.0
    events: bool = True
    pace: DeliveryPace = field(default_factory=DeliveryPace)


class NodeAgent:
    """One agent. `run` returns after SIGTERM or SIGINT, when what could be delivered is, and the rest is on disk."""

    def __init__(self, wishes: AgentOptions, line: ControllerConnection) -> None:
        self._wishes, self._root, self._said = wishes, NodeRoot(wishes.root), StderrLogger()
        self._buffer = DeliveryBuffer(wishes.state / "buffer.sqlite", wishes.buffer_bytes)
        self._interest = KernelLogFilter(json.loads(self._buffer.read_fact("words") or "[]"))
        self._pusher = BatchSender(line, self._buffer, wishes.node, self._state, self._said, wishes.pace)
        self._pusher.on_words = self._look_for
        self._stop = threading.Event()
        self._follower: KernelLogFollower | None = None
        self._log_trouble, self._missed, self._last_event = "", int(self._buffer.read_fact("missed") or 0), 0
        self._cursor_at = 0.0
        self._events = NvmlEventFollower(self._event, self._stop)

    def run(self) -> None:
        """Follow until told to end."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self._stop.set())
        threading.excepthook = _end_on_exception
        sys.setswitchinterval(SWITCH_S)
        threads = [threading.Thread(target=work, daemon=True) for work in self._works()]
        for thread in threads:
            thread.start()
        self._follow()
        self._pusher.over.set()
        self._pusher.news.set()
        threads[0].join(FLUSH_S)
        self._pusher.flush(FLUSH_S)
        self._buffer.close()

    def _works(self) -> Iterator[Callable[[], None]]:
        yield self._pusher.run
        if self._wishes.events:
            yield self._events.run
        if self._wishes.probe_s:
            probing = PeriodicProbe(self._wishes.root, self._wishes.probe_s, self._seen, self._readings)
            yield lambda: probing.run(self._stop)

    def _follow(self) -> None:
        """Take in what the kernel says. A log that cannot be read is told once, and tried again."""
        while not self._stop.is_set():
            try:
                self._look(LOG_POLL_S)
            except OSError as error:
                self._follower, self._log_trouble = None, f"{self._wishes.log}: {error.strerror}"
                self._said.log_once("log", f"no kernel log can be followed: {self._log_trouble}")
                self._stop.wait(LOG_RETRY_S)
            except sqlite3.Error as error:  # a full disk: the kernel's own buffer keeps what we cannot
                self._follower = None
                self._said.log_once("buffer", f"nothing can be kept now, and is read again later: {error}")
                self._stop.wait(LOG_RETRY_S)
            if self._events.trouble:
                self._said.log_once("nvml", f"no events of GPUs: {self._events.trouble}")
        with contextlib.suppress(OSError, sqlite3.Error):
            self._look(0.0)

    def _look(self, seconds: float) -> None:
        if self._follower is None:
            self._follower = KernelLogFollower(
                self._root, KernelLogCursor.parse(self._buffer.read_fact("cursor") or "-1"), self._wishes.log
            )
            self._log_trouble = ""
            self._said.log_once("log", f"follows {self._wishes.log} from {self._follower.cursor}")
        records = self._follower.read_new(seconds)
        items = list(self._items(self._follower.boot, records))
        if items or (records and time.monotonic() >= self._cursor_at):
            self._take(self._follower, items)

    def _take(self, follower: KernelLogFollower, items: Sequence[BufferItem]) -> None:
        """Keep items with the cursor that they moved."""
        self._missed, follower.missed = self._missed + follower.missed, 0
        self._buffer.add(items, cursor=follower.cursor, missed=str(self._missed))
        self._cursor_at = time.monotonic() + CURSOR_SAVE_S
        if items:
            self._pusher.news.set()

    def _items(self, boot: str, records: Sequence[RawKernelRecord]) -> Iterator[BufferItem]:
        now, up = time.time(), self._up_s()
        for record in records:
            worth = self._interest.rate_record(record.raw)
            if worth and (line := parse_kernel_record(record.raw)):
                at = now - max(0.0, up - line.t_s)
                yield BufferItem("kernel", at, worth, {"boot": boot, **line._asdict()})

    def _event(self, text: str) -> None:
        """Keep an event of a GPU. Its number is the microsecond of this boot: it rises, whoever counts."""
        up = read_uptime_s()
        self._last_event = max(self._last_event + 1, int(up * 1e6))
        boot = self._root.read_leaf("/proc/sys/kernel/random/boot_id").get("value", "")
        body = {"boot": boot, "seq": self._last_event, "t_s": up, "text": text}
        self._keep(BufferItem("nvml", time.time(), KNOWN_WORTH, body))

    def _readings(self, tree: Any) -> None:
        self._keep(BufferItem("probe", time.time(), READINGS_WORTH, tree))

    def _keep(self, item: BufferItem) -> None:
        """Keep an item that nothing reads again; where that fails it is lost, and said."""
        try:
            self._buffer.add([item])
        except sqlite3.Error as error:
            self._said.log_once("buffer", f"what {item.kind} told is lost: {error}")
        self._pusher.news.set()

    def _seen(self) -> str:
        return self._follower.cursor if self._follower else "-1"

    def _look_for(self, words: list[str]) -> None:
        if tuple(words) != self._interest.controller_words:
            self._interest = KernelLogFilter(words)
            self._buffer.store_facts(words=json.dumps(words))

    def _state(self) -> dict[str, Any]:
        """Return how the agent is, and what it costs."""
        return {
            "cpu_s": read_cpu_s(),
            "rss_bytes": read_rss_bytes(),
            "buffered": self._buffer.count,
            "buffered_bytes": self._buffer.bytes,
            "dropped": self._buffer.dropped,
            "missed": self._missed,
            "log": self._log_trouble,
            "nvml": self._events.trouble if self._wishes.events else "not asked for",
            "words": list(self._interest.controller_words),
        }

    def _up_s(self) -> float:
        """Return the seconds since boot, by the node's own account."""
        try:
            return float(self._root.read_text("/proc/uptime").split()[0])
        except (OSError, ValueError, IndexError):
            return read_uptime_s()


def _end_on_exception(failed: threading.ExceptHookArgs) -> None:
    """End the agent when a part of it breaks, so that whoever started it starts it anew: half an agent hides things."""
    print(f"assay agent: broke and ends: {failed.exc_type.__name__}: {failed.exc_value}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(3)
