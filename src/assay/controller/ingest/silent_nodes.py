"""Tells of nodes that should have been heard: their agents, their probes, their BMCs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from assay.controller.context import ControllerContext
from assay.controller.ingest.fault_recording import find_fault_catalog
from assay.lifecycle import ledger_entries
from assay.lifecycle.faults.telemetry_silence import (
    SOURCE_LABELS,
    SilenceWave,
    TelemetrySource,
    judge_silence,
    silence_deadline,
)
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Node
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.reading import parse_reading
from assay.observe.last_seen import ALL_AGENTS, Contact, LastSeen


def open_last_seen(desk: ControllerContext) -> LastSeen:
    """Return what was heard of this fleet."""
    return LastSeen(desk.home / "heard.sqlite")


def record_answers(desk: ControllerContext, seen: Iterable[EvidenceDocument]) -> None:
    """Keep which channels of these nodes were asked now, and which answered. What was pushed long ago is no answer."""
    now, patience = desk.clock.now(), silence_deadline(desk.policy.silence, "probe")
    answered = {
        (evidence.node, channel): not _has_failed(evidence, channel) and now - evidence.at <= patience
        for evidence in seen
        for channel in list_sources(desk.fleet.nodes[evidence.node])
        if channel != "agent" and channel in evidence.channels
    }
    open_last_seen(desk).record_polls(answered, now)


def record_listening(desk: ControllerContext) -> None:
    """Keep that agents can be heard now; said every few seconds by what listens to them."""
    open_last_seen(desk).record_listening(desk.clock.now(), silence_deadline(desk.policy.silence, "agent"))


def record_silence(desk: ControllerContext, situation: FleetSnapshot) -> None:
    """Append the faults of nodes that are silent past their deadline, the ends of such, and waves of silence."""
    words = open_last_seen(desk).contacts()
    desk.ledger.append(*_make_no_listener_entry(desk, words))
    found = judge_silence(situation, find_fault_catalog(desk), list(_list_listeners(desk, situation.nodes, words)))
    entries = [ledger_entries.make_fault_entry(lost, situation.now) for lost in found.faults]
    entries += [
        ledger_entries.make_cleared_entry(_find_node_of_fault(situation, end.fault), end, situation.now)
        for end in found.clearances
    ]
    desk.ledger.append(*entries, *(_make_wave_entry(desk, wave) for wave in found.waves))


def list_sources(node: Node) -> tuple[str, ...]:
    """Return what should be heard of a node: its probe, its BMC and its agent where they are declared."""
    declared = {"bmc": "bmc_address", "agent": "agent_token"}
    return ("probe", *(source for source, variable in declared.items() if node.variables.get(variable)))


def _has_failed(evidence: EvidenceDocument, channel: str) -> bool:
    whole = parse_reading(evidence.channels[channel])
    return whole is not None and whole.kind == "failed"


def _list_listeners(
    desk: ControllerContext, views: Iterable[NodeSnapshot], words: Mapping[tuple[str, str], Contact]
) -> Iterator[TelemetrySource]:
    """Yield what is listened to now. Agents are, while somebody listens to all of them.

    A source that is asked counts as silent for as long as it was asked in vain; time since then is ours, not its.
    """
    listening, now = words.get(ALL_AGENTS), desk.clock.now()
    for view in views:
        for source in list_sources(view.node):
            word = words.get((view.name, source))
            if source != "agent" and word:
                in_vain = word.polled_at - max(word.silent_since, word.last_at or word.silent_since)
                patience = silence_deadline(desk.policy.silence, source)
                yield TelemetrySource(view.name, source, word.last_at, word.silent_since if in_vain > patience else now)
            elif source == "agent" and listening and _is_listening(desk, listening):
                yield TelemetrySource(view.name, source, word.last_at if word else None, listening.silent_since)


def _is_listening(desk: ControllerContext, listening: Contact) -> bool:
    return desk.clock.now() - listening.polled_at <= silence_deadline(desk.policy.silence, "agent")


def _make_no_listener_entry(desk: ControllerContext, words: Mapping[tuple[str, str], Contact]) -> Iterator[LedgerEntry]:
    """Yield one entry, once, when agents are declared and what listened to them has stopped."""
    listening = words.get(ALL_AGENTS)
    if listening is None or _is_listening(desk, listening) or not _has_agents(desk):
        return
    at = listening.polled_at.isoformat()
    reason = f"nobody has listened to them since {at[:19]}; `assay serve` does, and they keep what they have to say"
    yield LedgerEntry(
        derive_id("nobody.listens", at), desk.now, "observe.failed", "", {"channel": "agents", "reason": reason}
    )


def _has_agents(desk: ControllerContext) -> bool:
    return any("agent" in list_sources(node) for node in desk.fleet.nodes.values())


def _make_wave_entry(desk: ControllerContext, wave: SilenceWave) -> LedgerEntry:
    who = SOURCE_LABELS[wave.source].removeprefix("its ").removeprefix("the ")
    reason = (
        f"{len(wave.nodes)} of {wave.total} fell silent together, the first at {wave.since:%Y-%m-%d %H:%M:%S} UTC: more "
        "likely the network or this controller than the nodes, so nothing is held against them"
    )
    ident = derive_id("silence.wave", wave.pool, wave.source, wave.since.isoformat())
    return LedgerEntry(
        ident, desk.now, "observe.failed", "", {"channel": f"{who} of pool {wave.pool}", "reason": reason}
    )


def _find_node_of_fault(situation: FleetSnapshot, fault: str) -> str:
    return next(view.name for view in situation.nodes for known in view.node_state.faults if known.id == fault)
