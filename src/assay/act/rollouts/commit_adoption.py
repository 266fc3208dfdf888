"""Adopts a new commit of the fleet, and starts the rollout that brings the nodes there.

The ledger says which commit was adopted last. The first commit starts no rollout: nobody knows what the nodes had
before. A working tree that is not as committed starts none either. If the commit names the plan with which it was
reviewed, the rollout waits for a person where the plan of now is another.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.node_state_and_outcome_cache import read_node_states
from assay.act.loop.plan_revisions import load_plan_revisions
from assay.act.rollouts.reviewed_plan_gate import PlanReview, review_plan
from assay.act.rollouts.rollout_nodes import NodesByBase, group_rollout_nodes
from assay.decide.plan.service_exits import find_service_exits
from assay.decide.rollouts.rollout_history import ROLLOUT_KINDS, Rollout, project_rollouts
from assay.decide.rollouts.step_entries import RULE_NAMES, shorten_id
from assay.declare.repository import commit_facts
from assay.model.entries.rollout_entries import (
    CommitAdoptedEntry,
    RolloutGroup,
    RolloutPausedEntry,
    RolloutStartedEntry,
    RolloutSupersededEntry,
)
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.text.text_lists import format_count

CARRIED_RULES = ("", "plan")
"""Who paused a rollout so that the one which replaces it waits too: a person, or the rule for reviewed plans."""


def take_up_fleet(context: ControllerContext) -> None:
    """Enrol the machines that are new, and adopt the commit if it is new."""
    enroll_nodes(context)
    adopt_commit(context)


def adopt_commit(context: ControllerContext) -> None:
    """Record the fleet's commit as adopted, and start its rollout if any node must leave service for it.

    All entries are appended together, and their ids follow from the entry before: a second controller adds nothing.
    """
    history, commit = project_rollouts(context.ledger.entries(kinds=ROLLOUT_KINDS)), context.fleet.commit
    last = CommitAdoptedEntry.read(history.adopted).commit if history.adopted else ""
    if not commit or commit == last:
        return
    if why := _find_obstacle(context, last):
        context.progress(f"commit {commit[:12]} starts no rollout: {why}")
        return
    ident = derive_id(CommitAdoptedEntry.kind, history.adopted.id if history.adopted else "", commit)
    uncompared, rollout = "", list[LedgerEntry]()
    try:
        compared = _compare_commits(context, last, history.find_active()) if last else None
    except AssayError as error:
        context.progress(f"no rollout: {last[:12]} and {commit[:12]} cannot be compared: {error}")
        uncompared, compared = error.what, None
    if compared:
        rollout = _make_rollout_entries(context, history.find_active(), last, ident, *compared)
    adopted = CommitAdoptedEntry(commit, last, uncompared)
    context.ledger.append(adopted.make_entry(ident, context.now), *rollout)


def _find_obstacle(context: ControllerContext, last: str) -> str:
    """Return why the commit is not adopted, "" if it may be."""
    root = context.fleet.root
    try:
        changed = commit_facts.find_uncommitted(root)
    except AssayError as error:
        return error.what
    if changed:
        return f"{changed[0]} is not as committed"
    if last and not commit_facts.has_commit(root, last) and not commit_facts.has_whole_history(root):
        return f"this clone does not have {last[:12]}, which was adopted before it: fetch the whole history"
    if last and commit_facts.is_descendant(root, last, context.fleet.commit):
        return f"{last[:12]}, which is newer, was adopted before it. To go back, merge a `git revert`"
    return ""


def _make_rollout_entries(
    context: ControllerContext,
    active: Rollout | None,
    last: str,
    adopted: str,
    exits: NodesByBase,
    review: PlanReview,
) -> list[LedgerEntry]:
    """Return the entries that start a rollout and end the one before, none if no node must leave service."""
    if not exits[last]:
        return []
    groups = group_rollout_nodes(context.policy, exits, last, active, read_node_states(context.ledger))
    rollout = derive_id("rollout", last, context.fleet.commit, adopted)
    end = _make_superseded_entry(context, active, rollout, groups)
    if not groups:
        return [*end]
    started = RolloutStartedEntry(rollout, last, context.fleet.commit, groups, review.digest)
    start = started.make_entry(derive_id(started.kind, rollout), context.now)
    return [start, *end, *_make_pause(context, active, rollout, review)]  # the start reads the orders of the other


def _compare_commits(context: ControllerContext, last: str, active: Rollout | None) -> tuple[NodesByBase, PlanReview]:
    """Return the nodes that must leave service, by the commit that they had before, and the review of the plan."""
    root, commit = context.fleet.root, context.fleet.commit
    earlier = {member.base for member in active.members.values() if not member.proof} if active else set[str]()
    found: NodesByBase = {}
    review = PlanReview()
    for base in sorted({last, *earlier}):
        before, after = load_plan_revisions(root, base, commit)
        found[base] = find_service_exits(before, after)
        if base == last and found[base]:
            review = review_plan(root, base, commit, before, after)
    return found, review


def _make_superseded_entry(
    context: ControllerContext, active: Rollout | None, rollout: str, groups: tuple[RolloutGroup, ...]
) -> Iterator[LedgerEntry]:
    """Yield the end of the rollout that goes over into the new one."""
    if active is None:
        return
    moved = {name for group in groups for name in group.nodes} & active.unproven
    rest = len(active.unproven) - len(moved)
    said = [f"{format_count(len(moved), 'node')} of it go on in rollout {shorten_id(rollout)}"] if moved else []
    said += [f"{format_count(rest, 'node')} need nothing more"] if rest else []
    reason = f"commit {context.fleet.commit[:12]}: {', '.join(said) or 'every node of it was proven'}"
    ended = RolloutSupersededEntry(active.id, rollout if groups else "", reason)
    yield ended.make_entry(derive_id(ended.kind, active.id), context.now)


def _make_pause(
    context: ControllerContext, active: Rollout | None, rollout: str, review: PlanReview
) -> Iterator[LedgerEntry]:
    """Yield the pause of a new rollout: for its plan, or because the one before it waited for a person as well."""
    before = active.pause if active and active.pause and active.pause.rule in CARRIED_RULES else None
    if review.obstacle or (before and before.rule):
        said = [review.obstacle] if review.obstacle else []
        said += [f"the rollout before it was paused by {before.who}: {before.reason}"] if before else []
        paused = RolloutPausedEntry(rollout, RULE_NAMES["plan"], "; ".join(said), "plan")
    elif before:
        paused = RolloutPausedEntry(rollout, before.who, before.reason)
    else:
        return
    yield paused.make_entry(derive_id(paused.kind, rollout, "0"), context.now)
