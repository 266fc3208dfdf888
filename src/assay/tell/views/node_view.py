"""One node: its state and why, its life, what was measured on it, and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assay.act.loop.unknown_jobs import read_unknown_jobs
from assay.decide.drift.sync_report import NodeSync
from assay.decide.state.asset_history import (
    ASSET_ENTRY_KINDS,
    InstalledPart,
    describe_returned_part,
    find_returned_parts,
    project_node_assets,
)
from assay.decide.state.node_state import NodeState
from assay.decide.state.policy_graph_svg import draw_path_svg
from assay.model.entries.asset_entries import PartsSeenEntry
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.entries.rollout_entries import CommitAdoptedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.timestamps import format_time
from assay.tell.views.burn_in_status import format_burn_in
from assay.tell.views.explanation import explain_decisions
from assay.tell.views.node_explanation import describe_lemon_score, format_recent_news, format_requirements
from assay.tell.views.node_life import StateStay, TimelineItem, build_timeline, list_stays, make_state_path
from assay.tell.views.node_measurements import LimitedSeries, list_peers, list_series
from assay.tell.views.node_rollout import find_node_rollout, format_node_rollout
from assay.tell.views.node_standing import Standing, find_standing
from assay.tell.views.node_status import NodeStatus, node_status_as_json
from assay.tell.views.node_sync import find_node_sync
from assay.tell.views.record_source import RecordSource
from assay.tell.views.spec_source import find_commit_at
from assay.tell.views.trust_view import NodeTrust, find_node_trust

DECISIONS_SHOWN, TIMELINE_SHOWN, SERIES_SHOWN = 8, 150, 24
WINDOW = timedelta(days=3)
"""How far back measurements and changed verdicts go."""


@dataclass(frozen=True, slots=True)
class InstalledAt:
    """A part with a serial number, its place in the node, and since when it is known to be there (ISO 8601)."""

    place: str
    kind: str
    serial: str
    since: str


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node of the ledger; `node` is None if the inventory no longer has it. `graph` is a SVG.

    `status` and `chain` are the objects of `assay explain --format json`; each decision of the chain has the `commit`
    of the fleet repository at its time, "" if that is unknown. `notes` are its lines, `lemon` its score. `sync` is how
    it compares with the repository, `trust` how far automation may go; None if nothing says.
    """

    state: NodeState
    node: Node | None
    standing: Standing
    status: NodeStatus
    chain: list[dict[str, Any]]
    notes: tuple[str, ...]
    lemon: dict[str, Any] | None
    stays: tuple[StateStay, ...]
    graph: str
    timeline: tuple[TimelineItem, ...]
    series: tuple[LimitedSeries, ...]
    parts: tuple[InstalledAt, ...]
    sync: NodeSync | None
    trust: NodeTrust | None


def build_node_view(source: RecordSource, name: str) -> NodeRecord | None:
    """Return the view of a node, None if the ledger has none of this name."""
    state = next((one for one in source.read_node_states() if one.node == name), None)
    if state is None:
        return None
    fleet, ledger, now = source.fleet, source.ledger_for_reading, source.clock.now()
    node = fleet.nodes.get(name)
    policy = next((one for one in fleet.policies.values() if state.state in one.states), None)
    entries = ledger.entries(name)
    outcomes = ledger.outcomes(node=name, since=format_time(now - WINDOW))
    stays = list_stays(state, [entry for entry in entries if entry.kind == DecisionEntry.kind])
    assets = [entry for entry in entries if entry.kind in ASSET_ENTRY_KINDS]
    chain, notes = _explain(source, state)
    installed, dates = sorted(project_node_assets(assets).parts.items()), _date_parts(assets)
    of_peers = ledger.latest(nodes=list_peers(fleet, node)) if node else ()
    returned = [describe_returned_part(entry) for entry in find_returned_parts(assets)]
    unknown = read_unknown_jobs(source.data_dir).get(name)
    return NodeRecord(
        state=state,
        node=node,
        standing=find_standing(state, policy),
        status=node_status_as_json(state, returned, unknown),
        chain=chain,
        notes=notes,
        lemon=describe_lemon_score(source, state),
        stays=tuple(stays),
        graph=draw_path_svg(policy, make_state_path(stays, now)) if policy else "",
        timeline=build_timeline(entries, outcomes, TIMELINE_SHOWN),
        series=tuple(list_series(outcomes, of_peers)[:SERIES_SHOWN]),
        parts=tuple(_place_part(place, part, dates) for place, part in installed),
        sync=find_node_sync(source, state),
        trust=find_node_trust(fleet, state),
    )


def _place_part(place: str, part: InstalledPart, dates: Mapping[tuple[str, str], str]) -> InstalledAt:
    return InstalledAt(place, part.kind, part.serial, dates.get((place, part.serial), ""))


def _date_parts(entries: Iterable[LedgerEntry]) -> dict[tuple[str, str], str]:
    """Return when each part was first seen at its place, after another one was there: by place and serial number."""
    return {
        (place, part.serial): entry.at
        for entry in entries
        if entry.kind == PartsSeenEntry.kind
        for place, part in PartsSeenEntry.read(entry).parts.items()
    }


def _explain(source: RecordSource, state: NodeState) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the chain of evidence with the commits of its decisions, newest first, and the notes of `explain`."""
    chain, requirements, news = explain_decisions(source, state, DECISIONS_SHOWN)
    adopted = source.ledger_for_reading.entries(kinds=[CommitAdoptedEntry.kind])
    for decision in chain:
        decision["commit"] = find_commit_at(adopted, decision["at"], source.fleet.commit)
    rollout = find_node_rollout(source, state.node)
    rolling = format_node_rollout(rollout) if rollout else ()
    lines = (*format_burn_in(state), *format_requirements(requirements), *rolling, *format_recent_news(source, news))
    return chain[::-1], lines
