"""Pause and resume: what a person may order for a rollout that goes on."""

from __future__ import annotations

from collections.abc import Iterable

from assay.act.orders.operator_order import OperatorIdentity
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.rollouts.step_entries import shorten_id
from assay.model.entries.rollout_entries import RolloutPausedEntry, RolloutResumedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, derive_id


def find_active_rollout(rollouts: Iterable[Rollout], ident: str) -> Rollout:
    """Return the rollout for an order. Raises AssayError unless exactly one begins so and has not ended."""
    found = find_rollout(rollouts, ident)
    if not found.is_active:
        raise AssayError(f"rollout {shorten_id(found.id)} has ended: {found.end_reason}")
    return found


def find_rollout(rollouts: Iterable[Rollout], ident: str) -> Rollout:
    """Return the rollout whose id begins so. Raises AssayError unless there is exactly one."""
    found = [one for one in rollouts if ident and one.id.startswith(ident)]
    if len(found) != 1:
        what = "there is no rollout" if not found else f"{len(found)} rollouts begin with"
        raise AssayError(f"{what} {ident}", fix="`assay rollout` lists them")
    return found[0]


def pause_rollout(found: Rollout, operator: OperatorIdentity) -> LedgerEntry:
    """Return the entry that pauses a rollout. Raises AssayError if it is paused already."""
    if found.status == "paused" and found.pause:
        raise AssayError(f"it is paused already, by {found.pause.who}: {found.pause.reason}")
    entry = RolloutPausedEntry(found.id, operator.who, operator.reason)
    return entry.make_entry(derive_id(entry.kind, found.id, str(found.pauses)), operator.at)


def resume_rollout(found: Rollout, operator: OperatorIdentity) -> LedgerEntry:
    """Return the entry that resumes a rollout. Raises AssayError if it is not paused."""
    if found.status != "paused":
        raise AssayError("it is not paused", fix=f"assay rollout show {shorten_id(found.id)}")
    entry = RolloutResumedEntry(found.id, operator.who, operator.reason)
    return entry.make_entry(derive_id(entry.kind, found.id, str(found.pauses)), operator.at)
