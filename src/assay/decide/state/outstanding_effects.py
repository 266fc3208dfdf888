"""The effects that decisions ask for and that no reading has settled yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from assay.decide.moves.cordons import list_recordon_effects
from assay.decide.moves.corrections import find_open_correction
from assay.decide.state.correction_record import CorrectionRecord
from assay.decide.state.node_state import NodeState
from assay.model.decision import CONFIGURE, WIPE
from assay.model.facts import frozen
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@frozen
class OutstandingEffect:
    """One effect to start or to settle. Its id follows from decision and action (`derive_effect_id`)."""

    decision: str
    action: str
    reason: str
    is_started: bool
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)


def list_outstanding_effects(policy: LifecyclePolicy, node_state: NodeState) -> list[OutstandingEffect]:
    """Return the outstanding effects of a node, in their order. Tickets are no effects.

    After a failed action, no other action follows, because each needs the one before it; but a node whose settings
    failed is opened again, one whose drives were not wiped gets its dossier, and one that could not be looked at gets
    its repair. If a person certifies the node after the failure, assay tries the action again. On a held node, only
    started effects are outstanding. A drain that a person takes for done is outstanding no more, and is only verified.
    """
    outstanding: list[OutstandingEffect] = []
    correction, needs_dossier_only = find_open_correction(node_state), False
    for requested_by, action, reason in _list_requested_effects(policy, node_state, correction):
        decision = node_state.find_request(requested_by, action)
        effect = node_state.find_effect(decision, action)
        if effect and effect.standing == "failed":
            needs_dossier_only |= action == WIPE
            if action in (CONFIGURE, WIPE) or effect.is_harmless_failure:
                continue
            break
        if needs_dossier_only and action != "dossier":
            break
        if effect and node_state.takes_for_empty(effect):
            continue
        if action != "ticket" and not (effect and effect.standing == "verified") and (effect or not node_state.hold):
            params = correction.params if correction and action == CONFIGURE else {}
            outstanding.append(OutstandingEffect(decision, action, reason, effect is not None, params))
    return outstanding


def _list_requested_effects(
    policy: LifecyclePolicy, node_state: NodeState, correction: CorrectionRecord | None
) -> list[tuple[str, str, str]]:
    """Return the requested effects: decision, action and reason.

    First comes the removal of a withdrawn cordon, then a cordon that somebody removed, then the others.
    """
    pending = node_state.pending
    reason = "; ".join(cause.text for cause in pending.because) if pending else node_state.reason
    recordons = list_recordon_effects(policy, node_state, reason)
    if pending:
        actions = policy.actions_while_pending(pending.rule)
        return [*recordons, *((pending.decision, action, reason) for action in actions)]
    withdrawn = node_state.withdrawn
    undo = [(withdrawn.by, "uncordon", withdrawn.reason)] if withdrawn and withdrawn.cordoned else []
    state = policy.states[node_state.state]
    is_enrolled = node_state.decision == node_state.stay_id  # no decision led here, but the entry asks for its actions
    entry = (state.first_actions if is_enrolled else state.entry) if node_state.decision else []
    corrects = [(correction.decision, action, correction.reason) for action in correction.actions] if correction else []
    return [*undo, *recordons, *((node_state.decision, action, reason) for action in entry), *corrects]
