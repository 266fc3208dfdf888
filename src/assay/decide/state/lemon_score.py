"""The lemon score: what a node has cost in its whole life, and why. Pure: it follows from the node's state.

A machine with another serial number has a state of its own, so it starts at zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from assay.decide.state.node_state import NodeState
from assay.model.facts import fact, frozen
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.repeated_faults import LemonLimits

WITHDRAWN_WAIT = "withdrawn wait"


@fact
class LemonReason:
    """One event that counts."""

    what: str
    """What counts."""
    at: str
    """When: ISO 8601 UTC."""
    weight: float
    """How many points it counts."""
    because: str
    """What was behind it."""


@frozen
class LemonScore:
    """The points of a node, oldest reason first, and from how many points on a node is a lemon."""

    threshold: float
    reasons: tuple[LemonReason, ...]

    @property
    def points(self) -> float:
        """The sum of all reasons."""
        return sum(reason.weight for reason in self.reasons)

    @property
    def is_lemon(self) -> bool:
        """Whether the node has reached the threshold."""
        return self.points >= self.threshold

    def __str__(self) -> str:
        counts: dict[str, list[float]] = defaultdict(list)
        for reason in self.reasons:
            counts[reason.what].append(reason.weight)
        worst = sorted(counts.items(), key=lambda item: (-sum(item[1]), item[0]))
        parts = ", ".join(f"{len(weights)} × {word} ({sum(weights):g})" for word, weights in worst)
        return f"lemon score {self.points:g} of {self.threshold:g}" + (f": {parts}" if parts else "")


def compute_lemon_score(policy: LifecyclePolicy, node_state: NodeState) -> LemonScore | None:
    """Return the score of a node by the policy's weights, None if the policy has no score."""
    lemon = policy.lemon
    if lemon is None:
        return None
    fresh = max((move.at for move in node_state.transitions if move.target in lemon.fresh_after), default="")
    faults = {fault.id: f"{fault.fault_class} on {fault.subject}" for fault in node_state.faults}
    reasons = [
        *_list_arrivals(lemon, node_state, faults, fresh),
        *(event for event in _list_actions(lemon, node_state) if event.at > fresh),
        *(event for event in _list_withdrawn_waits(lemon, node_state, faults) if event.at > fresh),
    ]
    return LemonScore(lemon.threshold, tuple(sorted(reasons, key=lambda reason: reason.at)))


def find_lemon(policy: LifecyclePolicy, node_state: NodeState) -> LemonScore | None:
    """Return the score of a node that is a lemon, None for any other node."""
    score = compute_lemon_score(policy, node_state)
    return score if score and score.is_lemon else None


def _list_arrivals(
    lemon: LemonLimits, node_state: NodeState, faults: Mapping[str, str], fresh: str
) -> list[LemonReason]:
    """Return the arrivals in states that count. Those in a state of `fresh_after` count for ever."""
    weights = lemon.weights.states
    return [
        LemonReason(move.target, move.at, weights[move.target], _name_faults(faults, move.faults))
        for move in node_state.transitions
        if weights.get(move.target) and (move.at > fresh or move.target in lemon.fresh_after)
    ]


def _list_actions(lemon: LemonLimits, node_state: NodeState) -> list[LemonReason]:
    weights: dict[str, float] = {str(action): weight for action, weight in lemon.weights.actions.items()}
    return [
        LemonReason(effect.action, effect.at, weights[effect.action], effect.reason)
        for effect in node_state.effects
        if effect.answers_fault and effect.standing == "verified" and weights.get(effect.action)
    ]


def _list_withdrawn_waits(lemon: LemonLimits, node_state: NodeState, faults: Mapping[str, str]) -> list[LemonReason]:
    """Return the waits whose cause went away by itself, each once, however often it did."""
    weight = lemon.weights.withdrawn_waits
    waits = {flap.decision: flap for flap in reversed(node_state.flaps)} if weight else {}
    return [
        LemonReason(WITHDRAWN_WAIT, flap.at, weight, _name_faults(faults, (flap.fault,))) for flap in waits.values()
    ]


def _name_faults(faults: Mapping[str, str], idents: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(faults[ident] for ident in idents if ident in faults))
