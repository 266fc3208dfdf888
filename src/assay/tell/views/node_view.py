"""One node: its state and why, what happened to it, what was measured on it, and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, project_node_assets
from assay.decide.state.entry_messages import EntryFormatter
from assay.decide.state.node_state import NodeState
from assay.model.entries.assets import PartsSeenEntry
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import format_time
from assay.tell.views.burn_in_status import format_burn_in
from assay.tell.views.node_explanation import ExplainAnswer, ExplainedDecision, explain_node, format_notes
from assay.tell.views.node_measurements import LimitedSeries, list_peers, list_series
from assay.tell.views.node_status import Standing, find_standing
from assay.tell.views.records import RecordSource
from assay.tell.views.sources import find_commit_at

SUBJECTS_OF_KINDS = {
    **dict.fromkeys(("hold", "release", "certified", "move", "zap.asked", "breaker.cleared", "photos.taken"), "people"),
    **dict.fromkeys(("transition", "node.enrolled", "node.renamed", "node.left"), "state"),
}
"""What an entry of the timeline is about, by its kind; for other kinds it is the first word of the kind."""
DECISIONS_SHOWN, TIMELINE_SHOWN, SERIES_SHOWN = 8, 150, 24
WINDOW = timedelta(days=3)
"""How far back measurements go."""


@dataclass(frozen=True, slots=True)
class TimelineItem:
    """Something that happened at a time (ISO 8601 UTC). `about` is such as fault, effect or people."""

    at: str
    about: str
    text: str


def build_timeline(
    entries: Sequence[LedgerEntry], last: int, catalog: FaultCatalog | None = None
) -> tuple[TimelineItem, ...]:
    """Return the `last` entries about a node in words, newest first."""
    formatter = EntryFormatter(catalog)
    return tuple(
        TimelineItem(entry.at, SUBJECTS_OF_KINDS.get(entry.kind, entry.kind.partition(".")[0]), formatter.format(entry))
        for entry in sorted(entries, key=lambda entry: entry.at)[: -last - 1 : -1]
    )


@dataclass(frozen=True, slots=True)
class InstalledAt:
    """A part with a serial number, its place in the node, and since when it is known to be there (ISO 8601)."""

    place: str
    kind: str
    serial: str
    since: str


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node of the ledger; `node` is None if the inventory no longer has it.

    `answer` is that of `assay explain`, `notes` its lines. `chain` has its decisions, newest first, each with the
    commit of the fleet repository at its time, "" if that is unknown.
    """

    state: NodeState
    node: Node | None
    standing: Standing
    answer: ExplainAnswer
    chain: tuple[tuple[ExplainedDecision, str], ...]
    notes: tuple[str, ...]
    timeline: tuple[TimelineItem, ...]
    series: tuple[LimitedSeries, ...]
    parts: tuple[InstalledAt, ...]


def build_node_view(source: RecordSource, name: str) -> NodeRecord | None:
    """Return the view of a node, None if the ledger has none of this name."""
    state = next((state for state in source.read_node_states() if state.node == name), None)
    if state is None:
        return None
    fleet, ledger, now = source.fleet, source.ledger_for_reading, source.clock.now()
    node = fleet.nodes.get(name)
    policy = fleet.policy_of_state.get(state.state)
    entries = ledger.entries(name)
    outcomes = ledger.outcomes(node=name, since=format_time(now - WINDOW))
    assets = [entry for entry in entries if entry.kind in ASSET_ENTRY_KINDS]
    answer = explain_node(source, state, DECISIONS_SHOWN)
    adopted = ledger.entries(kinds=[CommitAdoptedEntry.kind])
    installed, dates = sorted(project_node_assets(assets).parts.items()), _date_parts(assets)
    of_peers = ledger.latest(nodes=list_peers(fleet, node)) if node else ()
    return NodeRecord(
        state=state,
        node=node,
        standing=find_standing(state, policy, is_unread=answer.unread_since is not None),
        answer=answer,
        chain=tuple((made, find_commit_at(adopted, made.at, fleet.commit)) for made in reversed(answer.chain)),
        notes=(*format_burn_in(state), *format_notes(answer)),
        timeline=build_timeline(entries, TIMELINE_SHOWN, source.fleet.sound_fault_catalog),
        series=tuple(list_series(outcomes, of_peers)[:SERIES_SHOWN]),
        parts=tuple(
            InstalledAt(place, part.kind, part.serial, dates.get((place, part.serial), "")) for place, part in installed
        ),
    )


def _date_parts(entries: Iterable[LedgerEntry]) -> dict[tuple[str, str], str]:
    """Return when each part was first seen at its place, after another one was there: by place and serial number."""
    return {
        (place, part.serial): entry.at
        for entry in entries
        if entry.kind == PartsSeenEntry.kind
        for place, part in PartsSeenEntry.read(entry).parts.items()
    }
