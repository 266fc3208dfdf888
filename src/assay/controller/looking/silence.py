"""Tells of nodes that should have been heard: their agents, their probes, their BMCs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from assay.controller.desk import Desk
from assay.controller.looking.faults import catalog_of
from assay.lifecycle import journal
from assay.lifecycle.silent import WHO, Ear, Wave, deadline, silences
from assay.lifecycle.situation import NodeView, Situation
from assay.model.entry import Entry, derived_id
from assay.model.evidence import Evidence
from assay.model.fleet import Node
from assay.model.reading import as_reading
from assay.observe.heard import ALL_AGENTS, Heard, Word


def heard_of(desk: Desk) -> Heard:
    """Return what was heard of this fleet."""
    return Heard(desk.home / "heard.sqlite")


def note_answers(desk: Desk, seen: Iterable[Evidence]) -> None:
    """Keep which channels of these nodes were asked now, and which answered. What was pushed long ago is no answer."""
    now, patience = desk.clock.now(), deadline(desk.policy.silence, "probe")
    answered = {
        (evidence.node, channel): not _failed(evidence, channel) and now - evidence.at <= patience
        for evidence in seen
        for channel in sources(desk.fleet.nodes[evidence.node])
        if channel != "agent" and channel in evidence.channels
    }
    heard_of(desk).looked(answered, now)


def note_listening(desk: Desk) -> None:
    """Keep that agents can be heard now; said every few seconds by what listens to them."""
    heard_of(desk).listened(desk.clock.now(), deadline(desk.policy.silence, "agent"))


def look_for_silence(desk: Desk, situation: Situation) -> None:
    """Append the faults of nodes that are silent past their deadline, the ends of such, and waves of silence."""
    words = heard_of(desk).words()
    desk.ledger.append(*_nobody_listens(desk, words))
    found = silences(situation, catalog_of(desk), list(_ears(desk, situation.nodes, words)))
    entries = [journal.fault(lost, situation.now) for lost in found.lost]
    entries += [journal.cleared(_node_of(situation, end.fault), end, situation.now) for end in found.back]
    desk.ledger.append(*entries, *(_told(desk, wave) for wave in found.waves))


def sources(node: Node) -> tuple[str, ...]:
    """Return what should be heard of a node: its probe, its BMC and its agent where they are declared."""
    declared = {"bmc": "bmc_address", "agent": "agent_token"}
    return ("probe", *(source for source, variable in declared.items() if node.variables.get(variable)))


def _failed(evidence: Evidence, channel: str) -> bool:
    whole = as_reading(evidence.channels[channel])
    return whole is not None and whole.kind == "failed"


def _ears(desk: Desk, views: Iterable[NodeView], words: Mapping[tuple[str, str], Word]) -> Iterator[Ear]:
    """Yield what is listened to now. Agents are, while somebody listens to all of them.

    A source that is asked counts as silent for as long as it was asked in vain; time since then is ours, not its.
    """
    listening, now = words.get(ALL_AGENTS), desk.clock.now()
    for view in views:
        for source in sources(view.node):
            word = words.get((view.name, source))
            if source != "agent" and word:
                in_vain = word.looked - max(word.since, word.at or word.since)
                patience = deadline(desk.policy.silence, source)
                yield Ear(view.name, source, word.at, word.since if in_vain > patience else now)
            elif source == "agent" and listening and _goes_on(desk, listening):
                yield Ear(view.name, source, word.at if word else None, listening.since)


def _goes_on(desk: Desk, listening: Word) -> bool:
    return desk.clock.now() - listening.looked <= deadline(desk.policy.silence, "agent")


def _nobody_listens(desk: Desk, words: Mapping[tuple[str, str], Word]) -> Iterator[Entry]:
    """Yield one entry, once, when agents are declared and what listened to them has stopped."""
    listening = words.get(ALL_AGENTS)
    if listening is None or _goes_on(desk, listening) or not _has_agents(desk):
        return
    at = listening.looked.isoformat()
    reason = f"nobody has listened to them since {at[:19]}; `assay serve` does, and they keep what they have to say"
    yield Entry(
        derived_id("nobody.listens", at), desk.now, "observe.failed", "", {"channel": "agents", "reason": reason}
    )


def _has_agents(desk: Desk) -> bool:
    return any("agent" in sources(node) for node in desk.fleet.nodes.values())


def _told(desk: Desk, wave: Wave) -> Entry:
    who = WHO[wave.source].removeprefix("its ").removeprefix("the ")
    reason = (
        f"{len(wave.nodes)} of {wave.of} fell silent together, the first at {wave.since:%Y-%m-%d %H:%M:%S} UTC: more "
        "likely the network or this controller than the nodes, so nothing is held against them"
    )
    ident = derived_id("silence.wave", wave.pool, wave.source, wave.since.isoformat())
    return Entry(ident, desk.now, "observe.failed", "", {"channel": f"{who} of pool {wave.pool}", "reason": reason})


def _node_of(situation: Situation, fault: str) -> str:
    return next(view.name for view in situation.nodes for known in view.story.faults if known.id == fault)
