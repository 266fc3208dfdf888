"""The chain behind a node's state: outcome or fault → rule → decision → effects → verification, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.ledger.store import Ledger
    from assay.lifecycle.story import Story
    from assay.model.outcome import Recorded

Plain = dict[str, Any]


def chain(ledger: Ledger, story: Story, last: int) -> list[Plain]:
    """Return the `last` decisions about a node (0: all), oldest first, each with its causes and effects spelled out."""
    entries = ledger.entries(story.node, kinds=["decision"])
    links = []
    for entry in entries[-last:] if last else entries:
        body = entry.body
        links.append(
            {
                "at": entry.at,
                **{name: body[name] for name in ("decision", "from", "to", "timing", "rule", "remedy", "blockers")},
                "because": [_cause(ledger, story, cause) for cause in body["because"]],
                "effects": _effects(story, body["decision"]),
            }
        )
    return links


def _cause(ledger: Ledger, story: Story, cause: Mapping[str, str]) -> Plain:
    if cause["kind"] == "fault":
        return {**cause, **_fault(story, cause["id"])}
    if cause["kind"] == "outcome":
        return {**cause, **_outcome(ledger, story, cause["id"])}
    return dict(cause)


def _fault(story: Story, fault: str) -> Plain:
    for known in story.faults:
        if known.id == fault:
            names = ("fault_class", "subject", "severity", "blame", "count", "first_seen", "last_seen", "detail")
            return {name.removeprefix("fault_"): getattr(known, name) for name in names}
    return {}


def _outcome(ledger: Ledger, story: Story, cause: str) -> Plain:
    """Return the outcome behind a cause; a whole phase that passed is spelled out as its checks."""
    run, _, what = cause.partition("/")
    recorded = ledger.outcomes(run=run, node=story.node)
    for one in recorded:
        if one.id == cause:
            return _judged(one)
    return {"run": run, "checks": [_judged(one) for one in recorded if what in one.outcome.phases]}


def _judged(one: Recorded) -> Plain:
    outcome = one.outcome
    names = ("check", "subject", "verdict", "reason", "evidence", "evidence_at")
    return {"run": one.run, **{name: getattr(outcome, name) for name in names}}


def _effects(story: Story, decision: str) -> list[Plain]:
    names = ("id", "action", "standing", "at", "reason")
    return [{name: getattr(effect, name) for name in names} for effect in story.effects if effect.decision == decision]
