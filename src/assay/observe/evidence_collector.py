"""Collects the evidence of many nodes at once: both channels of every node, each with a deadline of its own.

In each pool the node with the oldest evidence is asked first, and the pools take turns. The channel `probe` comes
through the node's transport; `read_bmc_channel` reads the other one. `run_queries` runs them all in a bounded number of
threads, and gives answers as they come.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypedDict, Unpack

from assay.adapters.bmc.client import open_bmc
from assay.adapters.bmc.logs import NEVER_READ, LogsBefore
from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.readings import UtcClock, read_utc_now
from assay.adapters.bmc.request_time import LONGEST_READ
from assay.adapters.bmc.session import NO_QUIRKS, BmcSessionPool
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import EvidenceReading, ReadingTree, absent, failed, parse_reading, value
from assay.model.specs.node.settings_comparison import make_probe_arguments
from assay.observe.evidence_store import EvidenceStore
from assay.observe.transports.transport import TransportRegistry, run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext

_IDENTITY = {"id", "at", "severity"}
MAX_KEPT_EVENTS = 500
"""Events of one log in one document: those of the previous document, and new ones."""
OTHER_BMC_PORTS = (22, 80)
WORKERS = 8 * max(2, os.cpu_count() or 2)
"""Queries at once. They mostly wait, but each has a deadline from its start, so they must not starve each other."""
MAX_PARKED_PER_WORKER = 16
"""Limit on started queries, in multiples of `workers`: 256 on two cores, each a thread and maybe a process of 5 MB."""
PARK_AFTER_S = 0.5
_GRACE_S = 1.0
_INTERRUPT_S = 1.0  # Ctrl-C just before a blocking wait is seen only after it
_POLL_S = 0.5
Key = tuple[str, str]
DEADLINE_S = 10.0
BMC_PATIENCE = 1.5
"""One answer of a BMC may take so many times the deadline: there are BMCs that take 12 s."""
ACTIVE_DEADLINE_S = 600.0


class CollectionOptions(TypedDict, total=False):
    """What a pass reads, and its limits. Deadlines are real seconds.

    - `since`: node → cursor into its kernel log, `SEQ@BOOT_ID` (or SEQ, for the running boot).
    - `active`: node → the active parts to run there, in order, within `active_deadline_s`, or what long parts take
      beyond that. The passive readings of such a node come afterwards, so that they show the effects.
    - `after_units`: node → the unit after which its battery goes on (`SEED:TEST`), if not at the first one.
    - `store`: holds earlier documents, whose age decides the order, and the documents that agents pushed.
    - `bmc_sessions`: keeps sessions with BMCs until the next pass.
    - `after_entry`: the number of the ledger's newest entry, read before the pass; each document carries it.
    """

    since: Mapping[str, int | str]
    active: Mapping[str, Collection[str]]
    after_units: Mapping[str, str]
    deadline_s: float
    active_deadline_s: float
    workers: int
    store: EvidenceStore | None
    bmc_sessions: BmcSessionPool | None
    after_entry: int | None


def collect_evidence(
    fleet: Fleet, names: Sequence[str], *, clock: Clock, **options: Unpack[CollectionOptions]
) -> dict[str, EvidenceDocument]:
    """Return the evidence of each named node, in the order of `names`. See `stream_evidence`."""
    with closing(stream_evidence(fleet, names, clock=clock, **options)) as documents:
        by_node = {evidence.node: evidence for evidence in documents}
    return {name: by_node[name] for name in dict.fromkeys(names)}


def stream_evidence(
    fleet: Fleet, names: Sequence[str], *, clock: Clock, **options: Unpack[CollectionOptions]
) -> Generator[EvidenceDocument]:
    """Yield the document of each named node when its last channel is in. A channel that is dead or hangs is failed.

    Times in documents are of `clock`. Commands that still run end with the iterator. Raises AssayError only for names
    that the fleet does not have.
    """
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise AssayError(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    collection = _CollectionPass(fleet, clock, **options)
    try:
        yield from collection.run([fleet.nodes[name] for name in dict.fromkeys(names)])
    finally:
        collection.context.commands.end_all()


def order_by_overdue(nodes: Iterable[Node], seen_at: Callable[[str], float]) -> list[Node]:
    """Return the nodes in the order to ask them. `seen_at` gives a time that grows, 0 for a node never seen.

    So a small pool does not wait for a large one, and in each pool the node that has waited longest comes first.
    """
    pools: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: seen_at(node.name)):
        pools.setdefault(node.pool, []).append(node)
    return [node for node in chain.from_iterable(zip_longest(*pools.values())) if node is not None]


@dataclass(frozen=True)
class _CollectionPass:
    """One pass. `started` has the time, by `clock`, when it began to ask each node.

    `pushed_after` has, for each node that pushes, the ledger's number that its own document carries.
    """

    fleet: Fleet
    clock: Clock
    since: Mapping[str, int | str] = field(default_factory=dict)
    active: Mapping[str, Collection[str]] = field(default_factory=dict)
    after_units: Mapping[str, str] = field(default_factory=dict)
    deadline_s: float = DEADLINE_S
    active_deadline_s: float = ACTIVE_DEADLINE_S
    workers: int = WORKERS
    store: EvidenceStore | None = None
    bmc_sessions: BmcSessionPool | None = None
    after_entry: int | None = None
    pushed_after: dict[str, int | None] = field(default_factory=dict)
    started: dict[str, datetime] = field(default_factory=dict)
    quirks: BmcQuirkSet = field(init=False)
    context: TransportContext = field(init=False)
    transports: TransportRegistry = field(init=False)

    def __post_init__(self) -> None:
        context = TransportContext(self.store, self.fleet.monitorings, self.fleet.root)
        object.__setattr__(self, "quirks", BmcQuirkSet(self.fleet.quirks.values()))
        object.__setattr__(self, "context", context)
        object.__setattr__(self, "transports", TransportRegistry(context))

    def run(self, nodes: Sequence[Node]) -> Iterator[EvidenceDocument]:
        """Yield each node's document when its last channel is in."""
        order = order_by_overdue(nodes, self.store.stored_at if self.store else lambda _: 0.0)
        queries = [query for node in order for query in self._queries(node)]
        left = Counter(query.key[0] for query in queries)
        channels: dict[str, dict[str, ReadingTree]] = {name: {} for name in left}
        for query, answer in run_queries(queries, self.workers):
            name, channel = query.key
            if isinstance(answer, TimeoutError):
                channels[name][channel] = failed(str(answer))
            elif isinstance(answer, BaseException):  # without its text, which may quote a secret
                channels[name][channel] = failed(f"the collector broke: {type(answer).__name__}")
            else:
                channels[name] |= answer
            left[name] -= 1
            if not left[name]:
                after_entry = self.pushed_after.get(name, self.after_entry)
                yield EvidenceDocument(name, self.started[name], channels.pop(name), after_entry)

    def _queries(self, node: Node) -> Iterator[NodeQuery]:
        """Yield the queries of one node: to its BMC and to its probe."""
        bmc_s = LONGEST_READ * BMC_PATIENCE * self.deadline_s * self.quirks.largest_deadline_factor
        if self.active.get(node.name):
            limit_s = self._find_load_limit_s(node) + 2 * self.deadline_s + bmc_s
            yield NodeQuery((node.name, "probe"), lambda: self._load_and_read(node), limit_s)
            return
        yield NodeQuery((node.name, "bmc"), lambda: self._read_bmc(node), bmc_s)
        yield NodeQuery((node.name, "probe"), lambda: self._read_probe(node), self.deadline_s)

    def _load_and_read(self, node: Node) -> ReadingTree:
        """Load a node, and read its probe and its BMC afterwards: both show what the load caused."""
        now = self.clock.now()
        self.started.setdefault(node.name, now)
        arguments = ["--active", ",".join(self.active[node.name]), "--at", now.isoformat()]
        if after := self.after_units.get(node.name):
            arguments += ["--after-unit", after]
        limit_s = self._find_load_limit_s(node) + self.deadline_s
        channels = run_remote_probe(node, [*arguments, *self._arguments(node)], limit_s, self.transports)
        if parse_reading(channels["probe"]) is None:
            _add_read_time(channels, self.clock.now())
        else:  # the load took all the time
            channels |= self._read_probe(node)
        return channels | self._read_bmc(node)

    def _find_load_limit_s(self, node: Node) -> float:
        """Return how long the load of a node may take: longer with parts that take hours by themselves."""
        from assay.node.load_tools.registry import find_long_parts_s  # few passes load a node

        return self.active_deadline_s + find_long_parts_s(self.active[node.name])

    def _read_bmc(self, node: Node) -> ReadingTree:
        self.started.setdefault(node.name, self.clock.now())
        before = self.store.latest(node.name) if self.store else None
        tree = read_bmc_channel(
            node,
            self.fleet.root,
            BMC_PATIENCE * self.deadline_s,
            quirks=self.quirks,
            before=before,
            now=self.clock.now,
            sessions=self.bmc_sessions,
        )
        return {"bmc": tree}

    def _read_probe(self, node: Node) -> ReadingTree:
        self.started.setdefault(node.name, self.clock.now())
        if node.settings.transport == "push":
            self._date_back(node)
        channels = run_remote_probe(node, self._arguments(node), self.deadline_s, self.transports)
        if node.settings.transport != "push":
            _add_read_time(channels, self.clock.now())
        return channels

    def _arguments(self, node: Node) -> list[str]:
        since = ["--since", str(self.since[node.name])] if node.name in self.since else []
        spec = self.fleet.node_specs.get(node.spec)
        reach = f"{node.bmc_address}/{'+'.join(map(str, (node.settings.bmc_port, *OTHER_BMC_PORTS)))}"
        is_asked = spec is not None and spec.bmc.network and node.bmc_address
        return [*since, *(make_probe_arguments(spec) if spec else []), *(["--reach", reach] if is_asked else [])]

    def _date_back(self, node: Node) -> None:
        """Date a node's document to the time when its agent read it: a document is as old as its oldest channel."""
        last = self.store.latest_pushed(node.name) if self.store else None
        if last is not None:
            self.started[node.name] = min(last.at, self.clock.now())
            self.pushed_after[node.name] = last.after_entry


def _add_read_time(channels: ReadingTree, now: datetime) -> None:
    """Note by our clock when the uptime was read: lines of the kernel log are dated by both."""
    host = channels["probe"].get("host")
    if isinstance(host, dict) and "uptime_s" in host:
        host["read_at"] = value(now.isoformat())


def read_bmc_channel(
    node: Node,
    root: Path,
    deadline_s: float,
    *,
    quirks: BmcQuirkSet = NO_QUIRKS,
    before: EvidenceDocument | None = None,
    now: UtcClock = read_utc_now,
    sessions: BmcSessionPool | None = None,
) -> ReadingTree:
    """Return the tree of a node's BMC; one leaf where the node has none, or where it answers nothing.

    One request may take `deadline_s`, a large BMC as a whole up to LONGEST_READ times that.
    `before` is the node's last document. Only newer entries of the event log are read; older ones come from there,
    since entries of a log do not change. `root` is the fleet repository. `sessions`: see `open_bmc`.
    """
    if not node.bmc_address:
        return absent(f"no bmc_address is declared for {node.name}")
    known = _read_before(before)
    try:
        whole_s = LONGEST_READ * deadline_s
        with open_bmc(node, root=root, deadline_s=deadline_s, whole_s=whole_s, quirks=quirks, sessions=sessions) as bmc:
            tree = bmc.read_channel(deadline_s, before=known, now=now)
    except AssayError as error:
        return failed(error.what)
    readings = [reading for reading in _leaves(tree) if reading.kind != "unsupported"]
    reasons = {reading.reason for reading in readings}
    if len(reasons) == 1 and all(reading.kind == "failed" for reading in readings):
        return failed(reasons.pop())
    if "value" in tree["events"]:
        tree["events"] = value(_keep_newest([*known.events, *tree["events"]["value"]]))
    return {name: _replace_unencodable_leaves(branch) for name, branch in tree.items()}


def _replace_unencodable_leaves(tree: Any) -> Any:
    """Return a branch in which every leaf that JSON cannot hold is failed."""
    try:
        encode_canonical_json(tree)
    except ValueError:
        if not isinstance(tree, dict) or parse_reading(tree) is not None:
            return failed("the BMC answered with an infinite number or with invalid Unicode")
        return {
            name.encode(errors="backslashreplace").decode(): _replace_unencodable_leaves(branch)
            for name, branch in tree.items()
        }
    return tree


def _leaves(tree: ReadingTree) -> Iterator[EvidenceReading]:
    for branch in tree.values():
        reading = parse_reading(branch)
        if reading is not None:
            yield reading
        elif isinstance(branch, dict):
            yield from _leaves(branch)


def _keep_newest(events: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the newest events of each log, in their order."""
    left = Counter(event.get("log", "") for event in events)
    kept = []
    for event in events:
        if left[event.get("log", "")] <= MAX_KEPT_EVENTS:
            kept.append(event)
        left[event.get("log", "")] -= 1
    return kept


def _read_before(before: EvidenceDocument | None) -> LogsBefore:
    """Return the cursors and the events of the last document; none where it does not have both."""
    if before is None:
        return NEVER_READ
    cursors = before.read("bmc", "event_log", "cursors").value
    events = before.read("bmc", "events").value
    if not (isinstance(cursors, dict) and isinstance(events, list)):
        return NEVER_READ
    texts = {str(name): text for name, text in cursors.items() if isinstance(text, str)}
    return LogsBefore(texts, tuple(event for event in events if isinstance(event, dict) and set(event) >= _IDENTITY))


@dataclass(frozen=True)
class NodeQuery:
    """A query. `ask` runs in some thread and is given up after `limit_s`. `key` is a node's name and a channel."""

    key: Key
    ask: Callable[[], Any]
    limit_s: float


@dataclass(frozen=True)
class _RunningQuery:
    query: NodeQuery
    parked_at: float
    ends_at: float


def run_queries(
    queries: Iterable[NodeQuery], workers: int = WORKERS, patience_s: float = PARK_AFTER_S
) -> Iterator[tuple[NodeQuery, Any]]:
    """Yield (query, answer) as they come, each exactly once; the answer may be the exception that was raised.

    Queries start in the given order. A query that exceeds its limit by a second answers TimeoutError. Its thread is a
    daemon and is left behind, so a hang in the resolver or the kernel does not hold up the pass or the program's end.

    A query without an answer after `patience_s` mostly waits for the network: it is parked, and the next one takes its
    place, so a dead rack does not delay the others. The number of parked queries is bounded. While this machine is
    overloaded nothing is parked: then queries are slow because of it.

    Threads, not asyncio: 200 subprocesses of 10 ms cost 0.18 CPU s here with threads and 0.25 s with asyncio (Python
    3.11, two cores), and the redfish library is synchronous.
    """
    waiting = deque(queries)
    running: dict[Key, _RunningQuery] = {}
    answers: queue.SimpleQueue[tuple[NodeQuery, Any]] = queue.SimpleQueue()
    while waiting or running:
        while waiting and _may_start(running, workers):
            query = waiting.popleft()
            threading.Thread(target=_answer, args=(query, answers), daemon=True).start()
            now = time.monotonic()
            running[query.key] = _RunningQuery(query, now + patience_s, now + query.limit_s + _GRACE_S)
        now = time.monotonic()
        act_at = min(entry.ends_at for entry in running.values())  # to give a query up
        if waiting:
            act_at = min(act_at, now + _POLL_S)  # to see whether one more may start
        try:
            left_s = act_at - now
            query, answer = answers.get(timeout=min(max(0.0, left_s), _INTERRUPT_S))
        except queue.Empty:
            now = time.monotonic()
            late = next((entry.query for entry in running.values() if entry.ends_at <= now), None)
            if late is None:
                continue
            query, answer = late, TimeoutError(f"no answer within {late.limit_s:g} s")
        if running.pop(query.key, None) is not None:
            yield query, answer


def _may_start(running: dict[Key, _RunningQuery], workers: int) -> bool:
    """Return whether one more query may start: few run, or enough of them are parked."""
    if len(running) < workers:
        return True
    now = time.monotonic()
    active = sum(entry.parked_at > now for entry in running.values())
    return active < workers and len(running) < workers * MAX_PARKED_PER_WORKER and not is_host_overloaded()


def is_host_overloaded() -> bool:
    """Return whether more than four threads for each core of this machine are runnable now."""
    try:
        runnable = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    except OSError:
        return False
    return int(runnable) > 4 * (os.cpu_count() or 1)


def _answer(query: NodeQuery, answers: queue.SimpleQueue[tuple[NodeQuery, Any]]) -> None:
    try:
        answers.put((query, query.ask()))
    except Exception as error:  # any error is the answer of this query alone
        answers.put((query, error))
