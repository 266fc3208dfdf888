"""Finds the corrections of a node that are open, and those of certain settings."""

from __future__ import annotations

from collections.abc import Iterable

from assay.decide.state.corrections import ENDINGS, CorrectionRecord
from assay.decide.state.node_state import NodeState


def find_open_correction(node_state: NodeState) -> CorrectionRecord | None:
    """Return the correction of this stay that has not ended, None if there is none.

    It has ended with its last effect, or if the node could not be cordoned for it.
    """
    last = node_state.corrections[-1] if node_state.corrections else None
    if last is None or last.stay_id != node_state.stay_id:
        return None
    standings = {action: _find_standing(node_state, last.decision, action) for action in last.actions}
    if standings[last.actions[-1]] in ENDINGS or standings.get("cordon") == "failed":
        return None
    return last


def _find_standing(node_state: NodeState, decision: str, action: str) -> str:
    effect = node_state.find_effect(decision, action)
    return effect.standing if effect else ""


def list_of_settings(node_state: NodeState, settings: Iterable[str], since: str) -> list[CorrectionRecord]:
    """Return the corrections of any of these settings that began after `since` (ISO 8601), oldest first."""
    wanted = set(settings)
    return [one for one in node_state.corrections if one.at > since and wanted & set(one.settings)]
