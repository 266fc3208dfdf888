"""What a hold forbids, as cordons of others and the profile do; its end, a warning before it, and reminders."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.decide.moves.foreign_cordons import find_foreign_hold
from assay.decide.moves.proposals import Proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import OperatorNote
from assay.model.decision import DecisionCause
from assay.model.timestamps import format_duration, format_minute, hours, parse_time


def find_prohibition(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> DecisionCause | None:
    """Return what forbids this to automation: a hold, others who closed the node, or the profile."""
    hold, profile = view.node_state.hold, view.profile
    if hold:
        return DecisionCause("person", hold.id, f"held by {hold.who}: {hold.reason}")
    if proposal.takes_out and not profile.acts_on_faults:
        return DecisionCause("profile", profile.name, f"profile {profile.name}: faults are tracked, not acted on")
    if why := find_foreign_hold(snapshot, view, proposal):
        return why
    needed = set(snapshot.policy.states[proposal.to].entry if proposal.to != view.node_state.state else [])
    if proposal.timing == "pending":
        needed |= set(snapshot.policy.actions_while_pending(proposal.rule_name))
    if missing := sorted(needed - set(profile.actions)):
        return DecisionCause("profile", profile.name, f"profile {profile.name} does not allow: {', '.join(missing)}")
    return None


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
