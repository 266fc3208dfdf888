"""Records when nodes were last heard, and the faults of those whose agent, probe or BMC is silent for too long."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from assay.decide.faults.telemetry_silence import (
    SOURCE_LABELS,
    SilenceWave,
    TelemetrySource,
    judge_silence,
    list_unread,
    silence_deadline,
)
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import JudgedTimes, Times
from assay.ledger.store import Ledger
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.reading import parse_reading
from assay.model.timestamps import format_time, parse_time
from assay.observe.last_seen import ALL_AGENTS, CONTACTS_FILE, Contact, LastSeen

if TYPE_CHECKING:
    from assay.act.loop.context import ControllerContext


def open_last_seen(context: ControllerContext) -> LastSeen:
    """Return the store of when each node of this fleet was last heard, `.assay/heard.sqlite`."""
    return LastSeen(context.home / CONTACTS_FILE)


def read_unread_nodes(fleet: Fleet, home: Path, states: Collection[NodeState], now: datetime) -> dict[str, str]:
    """Return the nodes in service whose last reading is too old, and when it was, as `list_unread`."""
    answered = LastSeen(home / CONTACTS_FILE).last_answers([state.node for state in states])
    return list_unread(states, fleet.policies.values(), answered, now)


_judged = WeakKeyDictionary[Ledger, tuple[JudgedTimes, int]]()
"""What each ledger's runs up to a number say. Two threads may add the same run: that changes no answer."""


def read_unknown_times(
    fleet: Fleet, ledger: Ledger, states: Iterable[NodeState], begin: datetime, now: datetime, unread: Mapping[str, str]
) -> dict[str, Times]:
    """Return when nobody knew how each node was since `begin`: no run judged it for longer than `silence` allows.

    And since when it is `unread`, "" for ever. A process reads each run once.
    """
    longest = silence_deadline(fleet.policy.silence, "probe")
    judged, after = _judged.get(ledger, (JudgedTimes(now, longest), 0))
    if judged.longest != longest or begin - longest < judged.since:
        judged, after = JudgedTimes(begin - longest, longest), 0
    head = ledger.outcomes_head()
    for run in ledger.iter_runs(after, judged.since.isoformat()[:19]):
        judged.add(run, fleet.nodes)
    _judged[ledger] = judged, head
    dark = {node: [(parse_time(since), now)] for node, since in unread.items()}
    return {state.node: [*judged.list_gaps(state, now), *dark.get(state.node, ())] for state in states}


def read_reading_times(home: Path, states: Collection[NodeState]) -> dict[str, str]:
    """Return when the probe of each node answered last: ISO 8601 UTC. A node that was never read is missing."""
    answered = LastSeen(home / CONTACTS_FILE).last_answers([state.node for state in states])
    probed = {node: at for (node, source), at in answered.items() if source == "probe"}
    return {node: format_time(datetime.fromtimestamp(at, UTC)) for node, at in probed.items()}


def read_last_observed(context: ControllerContext) -> dict[str, float]:
    """Return when each node was last polled, in seconds of the fleet's clock since 1970."""
    polled: dict[str, float] = {}
    for (node, source), contact in open_last_seen(context).contacts().items():
        if source != "agent":
            polled[node] = max(polled.get(node, 0.0), contact.polled_at.timestamp())
    return polled


def record_answers(context: ControllerContext, collected: Iterable[EvidenceDocument]) -> None:
    """Store which channels of these nodes were polled now, and which answered. Old pushed evidence is no answer."""
    now, deadline = context.clock.now(), silence_deadline(context.policy.silence, "probe")
    answered = {}
    for evidence in collected:
        for channel in list_sources(context.fleet.nodes[evidence.node]):
            if channel != "agent" and channel in evidence.channels:
                whole = parse_reading(evidence.channels[channel])
                has_failed = whole is not None and whole.kind == "failed"
                answered[evidence.node, channel] = not has_failed and now - evidence.at <= deadline
    open_last_seen(context).record_polls(answered, now)


def record_listening(context: ControllerContext) -> None:
    """Store that agents can be heard now. The server calls it every few seconds."""
    deadline = silence_deadline(context.policy.silence, "agent")
    open_last_seen(context).record_listening(context.clock.now(), deadline)


def record_silence(context: ControllerContext, snapshot: FleetSnapshot) -> None:
    """Append the faults of nodes that are silent past their deadline, the ends of such faults, and waves of silence."""
    contacts = open_last_seen(context).contacts()
    context.ledger.append(*_make_no_listener_entry(context, contacts))
    sources = list(_list_telemetry_sources(context, snapshot.nodes, contacts))
    judgement = judge_silence(snapshot, context.fleet.fault_catalog, sources)
    nodes = {fault.id: view.name for view in snapshot.nodes for fault in view.node_state.faults}
    entries = [decision_and_fault_entries.make_fault_entry(fault, snapshot.now) for fault in judgement.faults]
    entries += [
        decision_and_fault_entries.make_cleared_entry(nodes[end.fault], end, snapshot.now)
        for end in judgement.clearances
    ]
    context.ledger.append(*entries, *(_make_wave_entry(context, wave) for wave in judgement.waves))


def list_sources(node: Node) -> tuple[str, ...]:
    """Return what a node should be heard through: its probe, and the BMC and agent that the inventory declares."""
    declared = {"bmc": node.bmc_address, "agent": node.settings.agent_token}
    return ("probe", *(source for source, setting in declared.items() if setting))


def _list_telemetry_sources(
    context: ControllerContext, views: Iterable[NodeSnapshot], contacts: Mapping[tuple[str, str], Contact]
) -> Iterator[TelemetrySource]:
    """Yield the sources that can be heard now; agents only while a server listens to them.

    A polled source counts as silent for as long as polls failed. Time without polls is the controller's, not its own.
    """
    listening, now = contacts.get(ALL_AGENTS), context.clock.now()
    for view in views:
        for source in list_sources(view.node):
            contact = contacts.get((view.name, source))
            if source != "agent" and contact:
                unanswered = contact.polled_at - max(contact.silent_since, contact.last_at or contact.silent_since)
                is_silent = unanswered > silence_deadline(context.policy.silence, source)
                since = contact.silent_since if is_silent else now
                yield TelemetrySource(view.name, source, contact.last_at, since)
            elif source == "agent" and listening and _is_listening(context, listening):
                yield TelemetrySource(view.name, source, contact.last_at if contact else None, listening.silent_since)


def _is_listening(context: ControllerContext, listening: Contact) -> bool:
    return context.clock.now() - listening.polled_at <= silence_deadline(context.policy.silence, "agent")


def _make_no_listener_entry(
    context: ControllerContext, contacts: Mapping[tuple[str, str], Contact]
) -> Iterator[LedgerEntry]:
    """Yield one entry, once, when the server that listened to declared agents has stopped."""
    listening = contacts.get(ALL_AGENTS)
    has_agents = any("agent" in list_sources(node) for node in context.fleet.nodes.values())
    if listening is None or _is_listening(context, listening) or not has_agents:
        return
    at = listening.polled_at.isoformat()
    reason = f"no server has listened to them since {at[:19]}; start `assay serve`: the agents buffer what they have"
    ident = derive_id("nobody.listens", at)
    yield ObservationFailedEntry("agents", reason).make_entry(ident, context.now)


def _make_wave_entry(context: ControllerContext, wave: SilenceWave) -> LedgerEntry:
    source = SOURCE_LABELS[wave.source].removeprefix("its ").removeprefix("the ")
    reason = (
        f"{len(wave.nodes)} of {wave.total} fell silent together, the first at {wave.since:%Y-%m-%d %H:%M:%S} UTC: "
        "more likely the network or this controller than the nodes, so nothing is held against them"
    )
    ident = derive_id("silence.wave", wave.pool, wave.source, wave.since.isoformat())
    return ObservationFailedEntry(f"{source} of pool {wave.pool}", reason).make_entry(ident, context.now)
