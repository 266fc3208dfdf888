"""The page of a node: why it is where it is, what happened to it, what was measured on it, and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from markupsafe import Markup

from assay.act.orders.orders import list_node_orders
from assay.act.tickets.repair_history import REPAIRS, select_repairs
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, project_node_assets
from assay.decide.state.entry_messages import EntryFormatter
from assay.decide.state.node_state import NodeState
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.assets import PartsSeenEntry
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.page import draw_polyline
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import format_time, parse_epoch_seconds
from assay.tell.pages.fabric_pages import list_drawn_faults, list_node_ports
from assay.tell.pages.page_frame import PageRequest, link, render_frame
from assay.tell.views.burn_in_status import format_burn_in
from assay.tell.views.next_step import list_open_tickets
from assay.tell.views.node_explanation import ExplainAnswer, ExplainedDecision, explain_node, format_notes
from assay.tell.views.node_measurements import LimitedSeries, list_peers, list_series
from assay.tell.views.node_status import Standing, find_standing
from assay.tell.views.node_sync import STATE_WORDS
from assay.tell.views.records import LiveRecords, RecordSource
from assay.tell.views.sources import find_commit_at, parse_place

SUBJECTS_OF_KINDS = {
    **dict.fromkeys(("hold", "release", "certified", "move", "zap.asked", "breaker.cleared"), "people"),
    **dict.fromkeys(("transition", "node.enrolled", "node.renamed", "node.left"), "state"),
}
"""What an entry of the timeline is about, by its kind; for other kinds it is the first word of the kind."""
DECISIONS_SHOWN, TIMELINE_SHOWN, SERIES_SHOWN = 8, 150, 24
WINDOW = timedelta(days=3)
"""How far back measurements go."""


@frozen
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


@frozen
class InstalledAt:
    """A part with a serial number, its place in the node, and since when it is known to be there (ISO 8601)."""

    place: str
    kind: str
    serial: str
    since: str


@frozen
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


SPARK = (150.0, 34.0)
REPAIRS_SHOWN = 10


@frozen
class Sparkline:
    """The geometry of a series in a field of the size SPARK: its line, its last point, its limit, its peers' band."""

    points: str
    last: tuple[str, str]
    limits: tuple[str, ...]
    band: tuple[str, str] | None


def render_node_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page, None if the ledger has no node of this name."""
    view = build_node_view(records, request.path_params["name"])
    if view is None:
        return None
    commit, fabric = records.fleet.commit, (view.node.settings.fabric or "") if view.node else ""
    return render_frame(
        "node.html.j2",
        request,
        view=view,
        orders=list(filter(request.visitor.may_order, list_node_orders(records.fleet, view.state))),
        lines=[(series, draw_sparkline(series)) for series in view.series],
        source_link=link_source,
        commit=commit,
        tickets=[*list_open_tickets(records.read_tickets()).get(view.state.node, {}).values()],
        rollouts=[each for each in records.read_rollouts().rollouts.values() if view.state.node in each.members][::-1],
        adapters=list_node_ports(records, view.state.node, fabric) if fabric else [],
        faults=list_drawn_faults(records, fabric=fabric, node=view.state.node) if fabric else [],
        drawn=Markup,
        sync_words=STATE_WORDS,
        repairs=select_repairs(read_projection(records.ledger_for_reading, REPAIRS), view.state.node)[:REPAIRS_SHOWN],
    )


def link_source(text: str, commit: str) -> str:
    """Return the address of the line with which a rule or a source begins, "" if it names none."""
    place = parse_place(text)
    return f"{link(f'/source/{commit}/{place.path}')}#L{place.line}" if place and commit else ""


def draw_sparkline(series: LimitedSeries) -> Sparkline:
    """Return the geometry of a series: the field holds its points, its limits and what its peers measured."""
    limits = [limit for limit in (series.at_least, series.at_most) if limit is not None]
    peers = [series.peers.low, series.peers.high] if series.peers else []
    values = [value for _, value in series.points]
    low, high = min((*values, *limits, *peers)), max((*values, *limits, *peers))
    spare = (high - low) * 0.08 or 1.0
    y = (low - spare, high + spare)
    times = [parse_epoch_seconds(at) for at, _ in series.points]
    x = (times[0], times[-1])
    line = draw_polyline(zip(times, values, strict=True), SPARK, x, y)
    left, _, top = line.rpartition(" ")[2].partition(",")

    def height(value: float) -> str:
        return f"{SPARK[1] - (value - y[0]) * SPARK[1] / (y[1] - y[0]):.1f}"

    band = None
    if series.peers:
        thick = (series.peers.high - series.peers.low) * SPARK[1] / (y[1] - y[0])
        band = (height(series.peers.high), f"{max(thick, 1.5):.1f}")
    return Sparkline(line, (left, top), tuple(map(height, limits)), band)
