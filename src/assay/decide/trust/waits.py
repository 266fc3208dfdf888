"""What waits for a person on a node: decisions and effects at `suggest`, orders that are too old, what `watch` saw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.decide.trust.gate import find_effect_obstacle
from assay.decide.trust.record import HeldDecision
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.trust_rules import Trust


@dataclass(frozen=True, slots=True)
class TrustWait:
    """One thing that waits for a person, or that assay only watches.

    `id`: what `assay approve` and `assay decline` name. `node`: the name of the node. `kind`: decision, effect, order;
    would: it takes no yes, because assay only watches there. `since`: ISO 8601 UTC. `text`: what would be done, and why
    it waits. `actions`: what would be done. `said`: the last yes or no, with the name of who said it, "" without one.
    `undo`: what undoes it, in words.
    """

    id: str
    node: str
    kind: Literal["would", "decision", "effect", "order"]
    since: str
    text: str
    actions: tuple[str, ...] = ()
    said: str = ""
    undo: str = ""


def list_trust_waits(policy: LifecyclePolicy, trust: Trust, node_state: NodeState) -> list[TrustWait]:
    """Return what waits on a node, the newest decision to each state only."""
    record, node = node_state.trust, node_state.node
    held = {decision.to: decision for decision in record.held if _is_current(trust, node_state, decision)}
    waits = []
    for decision in held.values():
        step, *actions = decision.told
        kind: Literal["would", "decision"] = "would" if step == "watch" else "decision"
        waits.append(TrustWait(decision.decision, node, kind, decision.at, decision.text, tuple(actions)))
    waits += _list_effect_waits(policy, trust, node_state)
    return [_add_word(node_state, wait) for wait in waits]


def _is_current(trust: Trust, node_state: NodeState, held: HeldDecision) -> bool:
    """Whether what a decision would answer is still there, and its trust step is what it was."""
    open_faults = {fault.id for fault in node_state.faults if fault.is_open and not node_state.is_repaired(fault)}
    is_same_step = trust.find(node_state.pool, held.told[1:]).step == held.told[0]
    return is_same_step and (not held.faults or bool(open_faults & set(held.faults)))


def _list_effect_waits(policy: LifecyclePolicy, trust: Trust, node_state: NodeState) -> Iterator[TrustWait]:
    """Yield the first of what is decided and waits: an order or a pending decision that is too old, or an effect."""
    node = node_state.node
    record = node_state.trust
    request = node_state.move_request
    behind = record.find_order(node_state.pending.decision) if node_state.pending else None
    order = request.id if request else behind.order if behind else ""
    if late := record.find_outlived(order):
        yield TrustWait(order, node, "order", request.at if request else behind.at if behind else "", late)
        return
    for effect in list_outstanding_effects(policy, node_state):
        obstacle, ident = find_effect_obstacle(trust, node_state, effect.decision, effect.action)
        if obstacle and not effect.is_started:
            kind: Literal["would", "effect"] = "effect" if ident else "would"
            words = (node_state.since, f"{effect.action} {obstacle}", (effect.action,))
            yield TrustWait(ident or effect.decision, node, kind, *words)
            return


def _add_word(node_state: NodeState, wait: TrustWait) -> TrustWait:
    consent = node_state.trust.find_consent(wait.id)
    if consent is None:
        return wait
    words = f"{consent.who} said {'yes' if consent.is_yes else 'no'} at {consent.at[:16]}: {consent.reason}"
    return replace(wait, said=words)
