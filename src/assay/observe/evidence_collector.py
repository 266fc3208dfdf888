"""Collects the evidence of many nodes at once: every channel of every node, each with a deadline of its own.

Who is asked first: in each pool the node whose evidence is oldest, and of every pool one in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, zip_longest

from assay.model.clock import Clock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.reading import ReadingTree, failed
from assay.observe.evidence_store import EvidenceStore
from assay.observe.prometheus.prometheus_transport import PrometheusTransport
from assay.observe.query_pool import WORKERS, NodeQuery, run_queries
from assay.observe.transports.transport_choice import TransportRegistry, run_remote_probe
from assay.redfish.bmc_evidence import read_bmc_channel
from assay.redfish.quirks import BmcQuirkSet


def order_by_overdue(nodes: Iterable[Node], seen_at: Callable[[str], float]) -> list[Node]:
    """Return the nodes in the order to ask them. `seen_at` gives a time that grows, 0 for one never seen.

    So a small pool does not wait for a large one, and in no pool does anyone wait who has waited longest.
    """
    pools: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: seen_at(node.name)):
        pools.setdefault(node.pool, []).append(node)
    return [node for node in chain.from_iterable(zip_longest(*pools.values())) if node is not None]


ACTIVE_DEADLINE_S = 600.0


def collect_evidence(
    fleet: Fleet,
    names: Sequence[str],
    *,
    clock: Clock,
    since: Mapping[str, int | str] | None = None,
    active: Mapping[str, Collection[str]] | None = None,
    deadline_s: float = 10,
    active_deadline_s: float = ACTIVE_DEADLINE_S,
    progress: Callable[[str], None] | None = None,
    workers: int = WORKERS,
    store: EvidenceStore | None = None,
) -> dict[str, EvidenceDocument]:
    """Return the evidence of each named node, in the order of `names`; for the rest see `stream_evidence`.

    `progress` is told each node when its last channel is in.
    """
    each = stream_evidence(
        fleet,
        names,
        clock=clock,
        since=since,
        active=active,
        deadline_s=deadline_s,
        active_deadline_s=active_deadline_s,
        workers=workers,
        store=store,
    )
    found: dict[str, EvidenceDocument] = {}
    with closing(each):
        for evidence in each:
            found[evidence.node] = evidence
            if progress is not None:
                progress(evidence.node)
    return {name: found[name] for name in dict.fromkeys(names)}


def stream_evidence(
    fleet: Fleet,
    names: Sequence[str],
    *,
    clock: Clock,
    since: Mapping[str, int | str] | None = None,
    active: Mapping[str, Collection[str]] | None = None,
    deadline_s: float = 10,
    active_deadline_s: float = ACTIVE_DEADLINE_S,
    workers: int = WORKERS,
    store: EvidenceStore | None = None,
) -> Generator[EvidenceDocument]:
    """Yield the evidence of each named node when its last channel is in; a dead or hung channel reads failed.

    `since` is a cursor into a node's kernel log, `SEQ@BOOT_ID` (or SEQ, for the boot that runs). `active` names the
    active parts to run per node, within `active_deadline_s`; on such a node the probe reads again when they are
    over, so that it sees what they brought about. `store` has what was collected before, of which the oldest is asked
    for first, and what agents have pushed. Deadlines are real seconds; times are of `clock`. What still runs is ended
    with the iterator. Raises Trouble only for names that the fleet does not have.
    """
    unknown = [name for name in names if name not in fleet.nodes]
    if unknown:
        raise AssayError(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    names = list(dict.fromkeys(names))
    transports = TransportRegistry(store, PrometheusTransport(fleet.monitorings, fleet.root))
    one = _CollectionPass(fleet, clock, transports, since or {}, active or {}, deadline_s, active_deadline_s)
    order = order_by_overdue([fleet.nodes[name] for name in names], store.stored_at if store else lambda _: 0.0)
    questions = [question for node in order for question in one.questions(node)]
    try:
        for name, channels in _join_channels(questions, workers):
            yield EvidenceDocument(name, one.begun[name], channels)
    finally:
        transports.commands.end_all()


@dataclass(frozen=True)
class _CollectionPass:
    """What one pass asks of every node, and when (by `clock`) it began to ask each."""

    fleet: Fleet
    clock: Clock
    transports: TransportRegistry
    since: Mapping[str, int | str]
    active: Mapping[str, Collection[str]]
    deadline_s: float
    active_deadline_s: float
    begun: dict[str, datetime] = field(default_factory=dict)
    quirks: BmcQuirkSet = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quirks", BmcQuirkSet(self.fleet.quirks.values()))

    def questions(self, node: Node) -> Iterator[NodeQuery]:
        """Yield the questions to one node: its BMC and its probe."""
        active_s = self.active_deadline_s if self.active.get(node.name) else 0.0
        yield NodeQuery(
            (node.name, "bmc"), lambda: self._bmc(node), self.deadline_s * self.quirks.largest_deadline_factor
        )
        yield NodeQuery((node.name, "probe"), lambda: self._probe(node), active_s + self.deadline_s)

    def _bmc(self, node: Node) -> ReadingTree:
        self.begun.setdefault(node.name, self.clock.now())
        before = self.transports.store.latest(node.name) if self.transports.store else None
        return {
            "bmc": read_bmc_channel(
                node, self.fleet.root, self.deadline_s, quirks=self.quirks, before=before, now=self.clock.now
            )
        }

    def _probe(self, node: Node) -> ReadingTree:
        now = self.clock.now()
        self.begun.setdefault(node.name, now)
        if node.settings.transport == "push":
            self._date_back(node)
        made: ReadingTree = {}
        if parts := ",".join(sorted(self.active.get(node.name, ()))):
            made = run_remote_probe(
                node, ["--active", parts, "--at", now.isoformat()], self.active_deadline_s, self.transports
            )
        passive = ["--since", str(self.since[node.name])] if node.name in self.since else []
        return made | run_remote_probe(node, passive, self.deadline_s, self.transports)

    def _date_back(self, node: Node) -> None:
        """Date a node's evidence to when its agent read it: a document is as old as its oldest part."""
        last = self.transports.store.latest_pushed(node.name) if self.transports.store else None
        if last is not None:
            self.begun[node.name] = min(last.at, self.clock.now())


def _join_channels(questions: Sequence[NodeQuery], workers: int) -> Iterator[tuple[str, dict[str, ReadingTree]]]:
    """Yield each node with its channels when the last of them is in."""
    left = Counter(question.key[0] for question in questions)
    channels: dict[str, dict[str, ReadingTree]] = {name: {} for name in left}
    for question, answer in run_queries(questions, workers):
        name, channel = question.key
        channels[name] |= {channel: failed(_reason(answer))} if isinstance(answer, BaseException) else answer
        left[name] -= 1
        if not left[name]:
            yield name, channels.pop(name)


def _reason(error: BaseException) -> str:
    """Return a reason for what should not have been raised, without what the exception may quote."""
    return str(error) if isinstance(error, TimeoutError) else f"the collector broke: {type(error).__name__}"
