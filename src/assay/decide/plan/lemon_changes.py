"""The nodes that become lemons, or stop being lemons, with the new weights and threshold of the lemon score."""

from __future__ import annotations

from collections.abc import Iterator

from assay.decide.plan.current_fleet_state import FleetFacts
from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.state.lemon_score import LemonScore, find_lemon
from assay.model.text.text_lists import format_list


def note_lemons(before: FleetRevision, after: FleetRevision, facts: FleetFacts) -> tuple[str, ...]:
    """Return a note on the nodes that a changed lemon score makes lemons, and one on those that it makes none."""
    return tuple(_list_notes(before, after, facts))


def _list_notes(before: FleetRevision, after: FleetRevision, facts: FleetFacts) -> Iterator[str]:
    if before.policy.lemon == after.policy.lemon:
        return
    states = [state for name, state in sorted(facts.node_states.items()) if name in after.fleet.nodes]
    lemons = [(one.node, find_lemon(before.policy, one), find_lemon(after.policy, one)) for one in states]
    line = after.policy_line("lemon")
    if new := [_format(node, score) for node, old, score in lemons if score and not old]:
        yield f"by the new score, a lemon: {format_list(new, 6)} ({line})"
    if gone := [_format(node, old) for node, old, score in lemons if old and not score]:
        yield f"by the new score, no lemon any more: {format_list(gone, 6)} ({line})"


def _format(node: str, score: LemonScore) -> str:
    return f"{node} with {score.points:g} of {score.threshold:g}"
