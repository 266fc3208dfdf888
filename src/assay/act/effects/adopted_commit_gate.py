"""Holds back what a spec declares while another controller works with a newer commit than this one.

A clone that was not fetched yet still says what the fleet was before. By that spec, a node that has the new firmware
would look wrong, and be flashed back.
"""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectIntent
from assay.declare.repository import commit_facts
from assay.model.decision import DECLARED_ACTIONS
from assay.model.entries.rollout_entries import CommitAdoptedEntry


def find_newer_commit(context: ActionContext, intent: EffectIntent) -> str:
    """Return the adopted commit that the fleet of this controller is behind, "" if this effect need not wait.

    A commit that this clone does not have counts as newer.
    """
    ours = context.fleet.commit
    if intent.action not in DECLARED_ACTIONS or not ours:
        return ""
    entries = context.ledger.entries(kinds=[CommitAdoptedEntry.kind])
    adopted = CommitAdoptedEntry.read(entries[-1]).commit if entries else ours
    if adopted == ours or commit_facts.is_descendant(context.fleet.root, ours, adopted):
        return ""
    return adopted


def describe_wait(commit: str) -> str:
    """Return why an effect waits for a commit."""
    return f"another controller works with the newer commit {commit[:12]}, so assay waits until this clone has it"
