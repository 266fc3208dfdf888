"""The corrections of one node: settings that it got, or gets, where it is, without leaving service.

A correction at once is one effect. One on an idle node has three: cordon, configure, uncordon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.model.decision import CONFIGURE, CONFIGURE_IDLE, ActionName
from assay.model.entries.node_entries import DecisionEntry
from assay.model.facts import frozen

SETTING_CAUSE = "setting"
"""The kind of the causes that name a decision's settings."""
ENDINGS = ("verified", "failed")


@frozen
class CorrectionRecord:
    """One correction: the `decision` behind it, the `settings` by their paths in the node spec, the faults it answers.

    `needs_idle`: only while no job runs on the node. `stay_id` is the stay in which it was decided. `ended_at` is when
    it was done or failed, and `ended_seq` the number of that entry; those of the decision while it has not ended.
    `is_verified`: a reading showed the settings.
    """

    decision: str
    at: str
    stay_id: str
    settings: tuple[str, ...]
    faults: tuple[str, ...]
    needs_idle: bool
    reason: str
    ended_at: str
    ended_seq: int
    is_verified: bool = False

    @property
    def actions(self) -> Sequence[ActionName]:
        """Its actions, in their order."""
        return ("cordon", CONFIGURE, "uncordon") if self.needs_idle else (CONFIGURE,)

    @property
    def params(self) -> Mapping[str, Any]:
        """What the action must know."""
        return {"settings": list(self.settings), "idle": self.needs_idle}


def make_correction(decision: DecisionEntry, at: str, seq: int, stay_id: str) -> CorrectionRecord:
    """Return the correction that a decision asks for."""
    causes = decision.causes
    return CorrectionRecord(
        decision=decision.decision,
        at=at,
        stay_id=stay_id,
        settings=tuple(dict.fromkeys(cause.id for cause in causes if cause.kind == SETTING_CAUSE)),
        faults=tuple(ident for cause in causes for ident in cause.fault_ids),
        needs_idle=decision.remedy == CONFIGURE_IDLE,
        reason="; ".join(cause.text for cause in causes if cause.kind == SETTING_CAUSE),
        ended_at=at,
        ended_seq=seq,
    )


def end_correction(
    corrections: tuple[CorrectionRecord, ...], action: str, decision: str, standing: str, at: str, seq: int
) -> tuple[CorrectionRecord, ...]:
    """Return the corrections after the action of a decision has come to that standing: one may be done or failed."""
    if action != CONFIGURE or standing not in ENDINGS:
        return corrections
    is_verified = standing == "verified"
    return tuple(
        replace(correction, ended_at=at, ended_seq=seq, is_verified=is_verified)
        if correction.decision == decision
        else correction
        for correction in corrections
    )
