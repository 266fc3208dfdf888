"""A replay's answer as plain data: decisions, what they cost, and how another policy would have differed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from assay.lifecycle.fold import said
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment
from assay.model.policy import LifecyclePolicy
from assay.trends.replay.events import EPOCH, History
from assay.trends.replay.played import Made, Played
from assay.trends.replay.rules import Rules


def answer(history: History, rules: Rules, played: Played, against: Played | None = None) -> dict[str, Any]:
    """Return the whole answer. Two policies are measured up to the same moment, when both have come to rest."""
    until = max(played.until, against.until) if against else played.until
    told = _Told(history.in_seconds, until)
    whole = {
        "policy": played.policy.name,
        "events": len(history.events),
        "from": told.time(played.start),
        "until": told.time(until),
        **told.of(played),
        "assumed": rules.pace.as_json(),
        "unknown_faults": _unknown(history, rules),
        "unread_fields": list(history.unread),
    }
    return whole | ({"against": told.difference(played, against)} if against else {})


def seconds_out(policy: LifecyclePolicy, story: Story, until: datetime) -> float:
    """Return how long a node was out of service up to `until`, from the first time that it was in it."""
    states = [story.moves[0].origin if story.moves else story.state, *(move.target for move in story.moves)]
    times = [moment(story.enrolled_at), *(moment(move.at) for move in story.moves), until]
    served, out = False, 0.0
    for state, begin, end in zip(states, times, times[1:], strict=False):
        if policy.states[state].in_service:
            served = True
        elif served:
            out += (end - begin).total_seconds()
    return out


class _Told:
    """One way to tell times: in seconds where the history did, else in ISO 8601."""

    def __init__(self, in_seconds: bool, until: datetime) -> None:
        self._in_seconds, self._until = in_seconds, until

    def time(self, at: datetime) -> float | str:
        """Return a time as the history writes them."""
        return _plain((at - EPOCH).total_seconds()) if self._in_seconds else at.isoformat()

    def of(self, played: Played) -> dict[str, Any]:
        """Return what came of one policy."""
        out = {name: seconds_out(played.policy, story, self._until) for name, story in sorted(played.stories.items())}
        return {
            "decisions": [self._decision(one) for one in played.made],
            "nodes": {name: _plain(seconds) for name, seconds in out.items()},
            "totals": {
                "seconds_out": _plain(sum(out.values())),
                "actions": _actions(played.stories.values()),
                "tickets": played.tickets,
            },
            "breaker_trips": [
                {"time": self.time(trip.at), "pool": trip.pool, "because": trip.because, "nodes": list(trip.nodes)}
                for trip in played.trips
            ],
        }

    def difference(self, played: Played, other: Played) -> dict[str, Any]:
        """Return what came of another policy, as far as it differs from this one."""
        here, there = self.of(played), self.of(other)
        return {
            "policy": other.policy.name,
            "totals": there["totals"],
            "breaker_trips": there["breaker_trips"],
            "seconds_out_more": _plain(here["totals"]["seconds_out"] - there["totals"]["seconds_out"]),
            "nodes": {
                name: {"seconds_out": seconds, "against": there["nodes"][name]}
                for name, seconds in here["nodes"].items()
                if seconds != there["nodes"][name]
            },
            "decisions": {
                "only_here": _only(here["decisions"], there["decisions"]),
                "only_there": _only(there["decisions"], here["decisions"]),
            },
        }

    def _decision(self, one: Made) -> dict[str, Any]:
        decision = one.decision
        return {
            "time": self.time(one.at),
            "node": decision.node,
            "from": decision.from_state,
            "to": decision.to_state,
            "timing": decision.timing,
            "because": said(decision.because),
            "rule": decision.rule,
            "remedy": decision.remedy,
            "blockers": list(decision.blockers),
        }


def _only(these: list[dict[str, Any]], those: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the decisions that the others lack: on the same node at the same time, to the same effect."""
    known = {_effect(one) for one in those}
    return [one for one in these if _effect(one) not in known]


def _effect(one: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(one[key] for key in ("time", "node", "from", "to", "timing", "remedy"))


def _actions(stories: Iterable[Story]) -> dict[str, int]:
    """Return how often each action was begun."""
    return dict(sorted(Counter(effect.action for story in stories for effect in story.effects).items()))


def _unknown(history: History, rules: Rules) -> list[str]:
    """Return the faults that no catalogue knows: they are treated as it says of the rest."""
    names = {event.fault for event in history.events if event.kind == "fault"}
    return sorted(name for name in names if rules.catalog.class_of(name) is None)


def _plain(seconds: float) -> float:
    """Return seconds, without a fraction where there is none."""
    rounded = round(seconds, 6)
    return int(rounded) if rounded == int(rounded) else rounded
