"""Proposes the end of a hold that is over, a warning before its end, and reminders."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import OperatorNote
from assay.model.decision import DecisionCause
from assay.model.timestamps import format_duration, format_minute, hours, parse_time


def propose_hold_actions(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the release of a hold that has ended; otherwise a warning before its end, and reminders."""
    hold, state = view.node_state.hold, view.node_state.state
    if hold is None:
        return
    if hold.until and parse_time(hold.until) <= snapshot.now:
        over = DecisionCause("person", hold.id, f"{hold.who} held it until {format_minute(hold.until)}: {hold.reason}")
        yield Proposal(state, "record", "holds", "hold-ends", (over,), (hold.id,), "release")
        return
    if hold.until and _find_warning_time(hold) <= snapshot.now:
        text = f"{hold.who}'s hold ends at {format_minute(hold.until)}: {hold.reason}"
        causes = (DecisionCause("person", hold.id, text),)
        yield Proposal(state, "record", "holds", "hold-ends-soon", causes, (hold.id, hold.until), "none")
    age = snapshot.now - parse_time(hold.at)
    times = int(age / hours(snapshot.policy.holds.remind_hours))
    if times >= 1:
        causes = (DecisionCause("person", hold.id, f"held by {hold.who} for {format_duration(age)}: {hold.reason}"),)
        yield Proposal(state, "record", "holds", "hold-reminder", causes, (hold.id, str(times)), "none")


def _find_warning_time(hold: OperatorNote) -> datetime:
    """Return when to warn that a hold will end: a day before, or for its last quarter if that is shorter."""
    start, end = parse_time(hold.at), parse_time(hold.until)
    return end - min(timedelta(days=1), (end - start) / 4)
