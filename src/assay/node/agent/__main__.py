"""`assay agent`, or `python -m assay.node.agent`: follow this node's kernel log and GPU events, and deliver them.

Also runs the probe at intervals. Items are buffered until they are delivered. Standard library only, and nvidia-ml-py
where it is installed. Exit codes: 0 after SIGTERM or SIGINT, 2 if the agent cannot start.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from assay.model.service_manager import ALIVE, READY, STOPPING, notify_reloading, notify_service_manager
from assay.model.text.safe_text import escape_line
from assay.node.agent.controller_connection import ControllerConnection
from assay.node.agent.delivery import BatchSender, BufferItem, DeliveryBuffer, DeliveryPace, StderrLogger
from assay.node.agent.sources import KernelLogFollower, NvmlEventFollower, PeriodicProbe, RawKernelRecord
from assay.node.probe.kernel_log import KMSG, KernelLogCursor, KernelLogFilter, RecordPriority, parse_kernel_record
from assay.node.probe.node_access import BOOT_ID_FILE, SERIAL_FILE, NodeRoot

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

LOG_POLL_S = 0.5
LOG_RETRY_S = 10.0
FLUSH_S = 5.0
CURSOR_SAVE_S = 10.0
ALIVE_S = 10.0
SWITCH_S = 0.0005  # lets the thread that delivers run while another reads a burst
STATE_FOLDER = "/var/lib/assay-agent"


@dataclass(frozen=True)
class AgentOptions:
    """The agent's options. Paths are of this machine; the node's file system is at `root`.

    `state` is the folder of the buffer, `log` the kernel log. `probe_s` is the interval of the probe, 0 for none.
    `events` says whether NVML's events are followed.
    """

    node: str
    state: Path
    root: str = ""
    log: str = KMSG
    buffer_bytes: int = 64 * 1024 * 1024
    probe_s: float = 0.0
    events: bool = True
    pace: DeliveryPace = field(default_factory=DeliveryPace)


class NodeAgent:
    """One agent. `run` returns after SIGTERM or SIGINT; by then items are delivered or on disk.

    SIGHUP makes it read the certificates to trust again.
    """

    def __init__(self, options: AgentOptions, connection: ControllerConnection) -> None:
        self._options = options
        self._root = NodeRoot(options.root)
        self._logger = StderrLogger()
        self._connection = connection
        self._buffer = DeliveryBuffer(options.state / "buffer.sqlite", options.buffer_bytes)
        self._filter = KernelLogFilter(json.loads(self._buffer.read_fact("words") or "[]"))
        self._sender = BatchSender(
            connection, self._buffer, options.node, self._describe_state, self._logger, options.pace
        )
        self._sender.on_words = self._set_controller_words
        self._sender.machine = str(self._root.read_leaf(SERIAL_FILE).get("value", ""))
        self._stop = threading.Event()
        self._hangup = threading.Event()
        self._follower: KernelLogFollower | None = None
        self._log_error = ""
        self._missed = int(self._buffer.read_fact("missed") or 0)
        self._last_event = 0
        self._save_cursor_at = self._say_alive_at = 0.0
        self._events = NvmlEventFollower(self._add_event, self._stop)

    def run(self) -> None:
        """Follow until SIGTERM or SIGINT, then deliver for at most `FLUSH_S`."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self._stop.set())
        signal.signal(signal.SIGHUP, lambda *_: self._hangup.set())
        threading.excepthook = _end_on_exception  # half an agent hides things: systemd restarts it
        sys.setswitchinterval(SWITCH_S)
        threads = [threading.Thread(target=work, daemon=True) for work in self._list_threads()]
        for thread in threads:
            thread.start()
        notify_service_manager(READY)
        self._follow_kernel_log()
        notify_service_manager(STOPPING)
        self._sender.over.set()
        self._sender.news.set()
        threads[0].join(FLUSH_S)
        self._sender.flush(FLUSH_S)
        self._buffer.close()

    def _list_threads(self) -> Iterator[Callable[[], None]]:
        """Yield what runs in a thread of its own; the sender comes first."""
        yield self._sender.run
        if self._options.events:
            yield self._events.run
        if self._options.probe_s:
            probe = PeriodicProbe(
                self._options.root,
                self._options.probe_s,
                lambda: self._follower.cursor if self._follower else "-1",
                lambda tree: self._add_item(BufferItem("probe", time.time(), RecordPriority.ROUTINE, tree)),
                lambda: self._sender.last_entry,
            )
            yield lambda: probe.run(self._stop)

    def _follow_kernel_log(self) -> None:
        """Buffer the kernel's records until the agent ends. A log that cannot be read is reported once, and retried."""
        while not self._stop.is_set():
            self._answer_service_manager()
            try:
                self._read_kernel_log(LOG_POLL_S)
            except OSError as error:
                self._follower = None
                self._log_error = f"{self._options.log}: {error.strerror}"
                self._logger.log_once("log", f"the kernel log cannot be followed: {self._log_error}")
                self._stop.wait(LOG_RETRY_S)
            except sqlite3.Error as error:  # a full disk: the records stay in the kernel's own buffer
                self._follower = None
                self._logger.log_once("buffer", f"the buffer cannot be written, records are read again later: {error}")
                self._stop.wait(LOG_RETRY_S)
            if self._events.error:
                self._logger.log_once("nvml", f"no events of GPUs: {self._events.error}")
        with contextlib.suppress(OSError, sqlite3.Error):
            self._read_kernel_log(0.0)

    def _answer_service_manager(self) -> None:
        """Say that the agent is alive, and read the certificates again if it was asked to."""
        if time.monotonic() >= self._say_alive_at:
            self._say_alive_at = time.monotonic() + ALIVE_S
            notify_service_manager(ALIVE)
        if self._hangup.is_set():
            self._hangup.clear()
            notify_reloading()
            try:
                self._connection.read_certificates_again()
                _say("SIGHUP: read the certificates again")
            except ValueError as error:
                _say(f"SIGHUP: goes on with the certificates that were read before: {error}")
            self._sender.news.set()
            notify_service_manager(READY)

    def _read_kernel_log(self, seconds: float) -> None:
        """Buffer the new records, with the cursor that they move; wait for them `seconds` at most."""
        if self._follower is None:
            self._follower = KernelLogFollower(
                self._root, KernelLogCursor.parse(self._buffer.read_fact("cursor") or "-1"), self._options.log
            )
            self._log_error = ""
            self._logger.log_once("log", f"follows {self._options.log} from {self._follower.cursor}")
        follower = self._follower
        records = follower.read_new(seconds)
        items = list(self._make_items(follower.boot, records))
        if items or (records and time.monotonic() >= self._save_cursor_at):
            self._missed += follower.missed
            follower.missed = 0
            self._buffer.add(items, cursor=follower.cursor, missed=str(self._missed))
            self._save_cursor_at = time.monotonic() + CURSOR_SAVE_S
        if items:
            self._sender.news.set()

    def _make_items(self, boot: str, records: Sequence[RawKernelRecord]) -> Iterator[BufferItem]:
        """Yield an item for every record that is worth sending."""
        now = time.time()
        uptime_s = self._read_node_uptime_s()
        for record in records:
            priority = self._filter.rate_record(record.raw)
            if priority and (line := parse_kernel_record(record.raw)):
                at = now - max(0.0, uptime_s - line.t_s)
                yield BufferItem("kernel", at, priority, {"boot": boot, **line._asdict()})

    def _add_event(self, text: str) -> None:
        """Buffer an event of a GPU. Its number is the microsecond since boot, so it rises across agents."""
        uptime_s = read_uptime_s()
        self._last_event = max(self._last_event + 1, int(uptime_s * 1e6))
        boot = self._root.read_leaf(BOOT_ID_FILE).get("value", "")
        body = {"boot": boot, "seq": self._last_event, "t_s": uptime_s, "text": text}
        self._add_item(BufferItem("nvml", time.time(), RecordPriority.KNOWN, body))

    def _add_item(self, item: BufferItem) -> None:
        """Buffer an item that cannot be read again; where that fails it is lost, and the log says so."""
        try:
            self._buffer.add([item])
        except sqlite3.Error as error:
            self._logger.log_once("buffer", f"an item of {item.kind} is lost: {error}")
        self._sender.news.set()

    def _set_controller_words(self, words: list[str]) -> None:
        if tuple(words) != self._filter.controller_words:
            self._filter = KernelLogFilter(words)
            self._buffer.store_facts(words=json.dumps(words))

    def _describe_state(self) -> dict[str, Any]:
        """Return the agent's state and its cost to the node, for the controller."""
        return {
            "cpu_s": read_cpu_s(),
            "rss_bytes": read_rss_bytes(),
            "buffered": self._buffer.count,
            "buffered_bytes": self._buffer.bytes,
            "dropped": self._buffer.dropped,
            "missed": self._missed,
            "log": self._log_error,
            "nvml": self._events.error if self._options.events else "not asked for",
            "words": list(self._filter.controller_words),
        }

    def _read_node_uptime_s(self) -> float:
        """Return the node's seconds since boot, from its own file system."""
        try:
            return float(self._root.read_text("/proc/uptime").split()[0])
        except (OSError, ValueError, IndexError):
            return read_uptime_s()


def read_cpu_s() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for (the probe)."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(sum(usage.ru_utime + usage.ru_stime for usage in usages), 3)


def read_rss_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # as in probe.node_access
        return int(file.read().split()[1]) * PAGE_BYTES


def read_uptime_s() -> float:
    """Return the seconds since this node booted, with time in suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _end_on_exception(failure: threading.ExceptHookArgs) -> None:
    _say(f"a thread failed, the agent ends: {failure.exc_type.__name__}: {failure.exc_value}")
    os._exit(3)


def _say(text: str) -> None:
    print(f"assay agent: {escape_line(text)}", file=sys.stderr, flush=True)  # noqa: T201 — the log


class AgentHelpFormatter(argparse.HelpFormatter):
    """Prints help in the form of assay's other verbs."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Add the usage line, with their prefix."""
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the agent until SIGTERM. Raises SystemExit where it cannot start."""
    options = _parse_arguments(arguments)
    try:
        with _lock_state_folder(options.state):
            connection = ControllerConnection(
                options.server, _token_reader(options), ca=options.ca, pin=options.fingerprint
            )
            NodeAgent(_agent_options(options), connection).run()
    except (ValueError, OSError) as error:
        print(f"assay: the agent cannot work: {error}", file=sys.stderr)  # noqa: T201 — for a person
        sys.exit(2)
    sys.stderr.flush()
    os._exit(0)  # do not wait for a thread that hangs in NVML


def _agent_options(options: argparse.Namespace) -> AgentOptions:
    return AgentOptions(
        node=options.node or _host_name(options.root),
        state=options.state,
        root=options.root.rstrip("/"),
        log=options.log,
        buffer_bytes=int(options.buffer_mib * 1024 * 1024),
        probe_s=options.probe_every,
        events=not options.no_events,
        pace=DeliveryPace(options.linger, options.beat),
    )


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("assay agent", description=summary, formatter_class=AgentHelpFormatter)
    state = Path(os.environ.get("STATE_DIRECTORY", STATE_FOLDER))  # systemd sets STATE_DIRECTORY
    parser.add_argument("--server", required=True, help="the controller, https://HOST[:PORT]")
    parser.add_argument("--node", default="", help="this node's name in the inventory; its host name by default")
    token = parser.add_mutually_exclusive_group(required=True)
    token.add_argument("--token-file", metavar="FILE", help="the file whose first line is this node's token")
    token.add_argument("--token-env", metavar="NAME", help="the environment variable that holds it")
    parser.add_argument("--ca", default="", metavar="FILE", help="PEM certificates to trust, instead of the system's")
    parser.add_argument("--fingerprint", default="", metavar="SHA256", help="trust exactly this certificate")
    parser.add_argument("--state", type=Path, default=state, metavar="DIR", help=f"where to buffer (default: {state})")
    parser.add_argument("--buffer-mib", type=float, default=64.0, metavar="N", help="how much to buffer (default: 64)")
    parser.add_argument("--log", default=KMSG, metavar="FILE", help=f"the kernel log (default: {KMSG})")
    parser.add_argument("--root", default="/", help="the node's file system")
    parser.add_argument("--probe-every", type=float, default=0.0, metavar="S", help="also push the probe's readings")
    parser.add_argument("--no-events", action="store_true", help="do not follow NVML's events")
    parser.add_argument("--beat", type=float, default=15.0, metavar="S", help="longest silence (default: 15)")
    parser.add_argument("--linger", type=float, default=0.05, metavar="S", help="least time between two deliveries")
    return parser.parse_args(arguments)


def _token_reader(options: argparse.Namespace) -> Callable[[], str]:
    """Return the function that reads the token. It runs for each request, so that the token can be changed.

    Raises ValueError or OSError where the token cannot be used now.
    """

    def read() -> str:
        if options.token_env:
            token = os.environ.get(options.token_env, "")
        else:
            with Path(options.token_file).open(encoding="utf-8") as file:
                token = file.readline().strip()
        if not token.isascii() or not token.isprintable() or not token:
            raise ValueError("the token is empty or not printable ASCII")
        return token

    read()
    return read


def _host_name(root: str) -> str:
    try:
        return Path(root, "proc/sys/kernel/hostname").read_text(encoding="utf-8").strip()
    except OSError:
        return socket.gethostname()


def _lock_state_folder(state: Path) -> IO[str]:
    """Lock a state folder and return the lock's file. Raises OSError where another agent holds it."""
    state.mkdir(parents=True, exist_ok=True)
    lock = (state / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise BlockingIOError(f"another agent uses {state}") from None
    return lock


if __name__ == "__main__":
    main()
