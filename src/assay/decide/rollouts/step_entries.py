"""Makes the ledger entries of a rollout's next step. Their ids follow from the rollout, so none is written twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from assay.decide.rollouts.decide_rollouts import RolloutStep
from assay.decide.rollouts.node_progress import NodeProgress
from assay.decide.rollouts.rollout_history import Rollout
from assay.model.entries import rollout_entries as content
from assay.model.entries.operator_entries import MoveEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.timestamps import format_time

RULE_NAMES = {
    "failures": "the rule for failures",
    "hold": "the rule for holds",
    "breaker": "the breaker",
    "plan": "the rule for reviewed plans",
    "age": "the rule for orders' age",
}
SHOWN_ID = 8
"""So many characters of a rollout's id are shown, and are enough to name it."""


def shorten_id(rollout: str) -> str:
    """Return the id of a rollout as people see it."""
    return rollout[:SHOWN_ID]


def make_rollout_entries(rollout: Rollout, step: RolloutStep, at: datetime) -> Iterator[LedgerEntry]:
    """Yield the entries of a step, in their order."""
    stamp = format_time(at)
    for one in step.proven:
        ident = derive_id(content.NodeProvenEntry.kind, rollout.id, one.node)
        yield content.NodeProvenEntry(rollout.id, one.why).make_entry(ident, stamp, one.node)
    if step.finish:
        ident = derive_id(content.RolloutFinishedEntry.kind, rollout.id)
        yield content.RolloutFinishedEntry(rollout.id, step.finish).make_entry(ident, stamp)
    elif stop := step.pause:
        who, ident = RULE_NAMES[stop.rule], derive_id(content.RolloutPausedEntry.kind, rollout.id, str(rollout.pauses))
        paused = content.RolloutPausedEntry(rollout.id, who, stop.reason, stop.rule, stop.nodes)
        yield paused.make_entry(ident, stamp)
    elif step.resume and rollout.pause:
        ident = derive_id(content.RolloutResumedEntry.kind, rollout.id, str(rollout.pauses))
        who = RULE_NAMES[rollout.pause.rule]
        yield content.RolloutResumedEntry(rollout.id, who, step.resume).make_entry(ident, stamp)
    for one in step.orders:
        yield make_order_entry(rollout, one, stamp)


def make_order_entry(rollout: Rollout, one: NodeProgress, stamp: str) -> LedgerEntry:
    """Return the order for one node. A rollout orders a node once."""
    ident = derive_id("rollout order", rollout.id, one.node)
    who = f"rollout {shorten_id(rollout.id)}"
    return MoveEntry(one.member.to, who, one.member.reason, rollout=rollout.id).make_entry(ident, stamp, one.node)
