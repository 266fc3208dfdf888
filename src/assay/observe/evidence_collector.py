"""Collects the evidence of many nodes at once: both channels of every node, each with a deadline of its own.

In each pool the node with the oldest evidence is asked first, and the pools take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, zip_longest
from typing import TypedDict, Unpack

from assay.adapters.bmc.quirks import BmcQuirkSet
from assay.adapters.bmc.request_time import LONGEST_READ
from assay.adapters.bmc.session_pool import BmcSessionPool
from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import ReadingTree, failed, parse_reading, value
from assay.model.specs.node.host_settings import make_probe_arguments
from assay.observe.bmc_evidence import read_bmc_channel
from assay.observe.evidence_store import EvidenceStore
from assay.observe.query_pool import WORKERS, NodeQuery, run_queries
from assay.observe.transports.transport_choice import TransportRegistry, run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext

DEADLINE_S = 10.0
ACTIVE_DEADLINE_S = 600.0


class CollectionOptions(TypedDict, total=False):
    """What a pass reads, and its limits. Deadlines are real seconds.

    - `since`: node → cursor into its kernel log, `SEQ@BOOT_ID` (or SEQ, for the running boot).
    - `active`: node → the active parts to run there, in order, within `active_deadline_s`, or what long parts take
      beyond that. The passive readings of such a node come afterwards, so that they show the effects.
    - `store`: holds earlier documents, whose age decides the order, and the documents that agents pushed.
    - `bmc_sessions`: keeps sessions with BMCs until the next pass.
    - `after_entry`: the number of the ledger's newest entry, read before the pass; each document carries it.
    """

    since: Mapping[str, int | str]
    active: Mapping[str, Collection[str]]
    deadline_s: float
    active_deadline_s: float
    workers: int
    store: EvidenceStore | None
    bmc_sessions: BmcSessionPool | None
    after_entry: int | None


def collect_evidence(
    fleet: Fleet,
    names: Sequence[str],
    *,
    clock: Clock,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[CollectionOptions],
) -> dict[str, EvidenceDocument]:
    """Return the evidence of each named node, in the order of `names`. See `stream_evidence`.

    `progress` is called with each node's name when its document is complete.
    """
    found: dict[str, EvidenceDocument] = {}
    with closing(stream_evidence(fleet, names, clock=clock, **options)) as documents:
        for evidence in documents:
            found[evidence.node] = evidence
            if progress is not None:
                progress(evidence.node)
    return {name: found[name] for name in dict.fromkeys(names)}


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
            channels[name] |= {channel: failed(_reason(answer))} if isinstance(answer, BaseException) else answer
            left[name] -= 1
            if not left[name]:
                after_entry = self.pushed_after.get(name, self.after_entry)
                yield EvidenceDocument(name, self.started[name], channels.pop(name), after_entry)

    def _queries(self, node: Node) -> Iterator[NodeQuery]:
        """Yield the queries of one node: to its BMC and to its probe."""
        bmc_s = LONGEST_READ * self.deadline_s * self.quirks.largest_deadline_factor
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
            self.deadline_s,
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
        return [*since, *(make_probe_arguments(spec) if spec else [])]

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


def _reason(error: BaseException) -> str:
    """Return the reason for an unexpected error, without its text: that may quote a secret."""
    return str(error) if isinstance(error, TimeoutError) else f"the collector broke: {type(error).__name__}"
