"""The life of a node: its stays in states with what led there, its way through the policy's graph, and its timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from assay.decide.state.entry_messages import EntryFormatter
from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_builder import describe_causes
from assay.decide.state.policy_graph_svg import StatePath
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import format_duration, parse_time

SUBJECTS_OF_KINDS = {
    **dict.fromkeys(("hold", "release", "certified", "move", "zap.asked", "breaker.cleared", "photos.taken"), "people"),
    **dict.fromkeys(("transition", "node.enrolled", "node.renamed", "node.left"), "state"),
}
"""What an entry of the timeline is about, by its kind; for other kinds it is the first word of the kind."""


@dataclass(frozen=True, slots=True)
class StateStay:
    """A stay in one state. `until` is "" for the present one; `why` is what led there, `rule` as `file:line name`."""

    state: str
    since: str
    until: str
    why: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class TimelineItem:
    """Something that happened at a time (ISO 8601 UTC). `about` is such as fault, effect or people."""

    at: str
    about: str
    text: str


def list_stays(state: NodeState, decisions: Iterable[LedgerEntry]) -> list[StateStay]:
    """Return the stays of a node, oldest first. `decisions` are its entries of that kind."""
    made = {entry.id: DecisionEntry.read(entry) for entry in decisions}
    causes = {one.decision: describe_causes(one.causes) for one in made.values()}
    moves = state.transitions
    begins = [(moves[0].origin if moves else state.state, state.enrolled_at, "", "")]
    begins += [(move.target, move.at, causes.get(move.decision, ""), move.rule) for move in moves]
    ends = [*(at for _, at, _, _ in begins[1:]), ""]
    return [StateStay(name, at, until, why, rule) for (name, at, why, rule), until in zip(begins, ends, strict=True)]


def make_state_path(stays: Sequence[StateStay], now: datetime) -> StatePath:
    """Return the way of a node through its states, with how often and how long it was in each."""
    times = Counter(stay.state for stay in stays)
    spans: dict[str, timedelta] = {}
    for stay in stays:
        ended = parse_time(stay.until) if stay.until else now
        spans[stay.state] = spans.get(stay.state, timedelta()) + max(ended - parse_time(stay.since), timedelta())
    notes = {
        name: f"{f'{times[name]} times, ' if times[name] > 1 else ''}{format_duration(spans[name])}" for name in spans
    }
    taken = frozenset((before.state, after.state) for before, after in pairwise(stays))
    return StatePath(stays[-1].state, notes, taken)


def build_timeline(
    entries: Sequence[LedgerEntry], outcomes: Sequence[RecordedOutcome], last: int
) -> tuple[TimelineItem, ...]:
    """Return the `last` things that happened to a node, newest first: its entries, and checks whose verdict changed."""
    formatter = EntryFormatter()
    items = [TimelineItem(entry.at, _find_subject(entry), formatter.format(entry)) for entry in entries]
    items += _list_verdict_changes(outcomes)
    return tuple(sorted(items, key=lambda item: item.at)[::-1][:last])


def _find_subject(entry: LedgerEntry) -> str:
    return SUBJECTS_OF_KINDS.get(entry.kind, entry.kind.partition(".")[0])


def _list_verdict_changes(outcomes: Iterable[RecordedOutcome]) -> Iterator[TimelineItem]:
    known: dict[tuple[str, str], str] = {}
    for recorded in outcomes:
        outcome = recorded.outcome
        key = (outcome.check, outcome.subject)
        before, known[key] = known.get(key, "pass"), outcome.verdict
        if outcome.verdict != before and "skip" not in (before, outcome.verdict):
            words: Mapping[str, str] = {"pass": "passes again", "fail": "fails", "error": "cannot be judged"}
            name = outcome.check.rpartition("::")[2].removeprefix("test_")
            reason = f": {outcome.reason}" if outcome.reason else ""
            yield TimelineItem(recorded.at, "outcome", f"{name} {words[outcome.verdict]} on {outcome.subject}{reason}")
