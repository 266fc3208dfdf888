"""Adopts a new commit of the fleet, and starts the rollout that brings the nodes there, in groups.

The ledger says which commit was adopted last. The first commit starts no rollout: nobody knows what the nodes had
before. A working tree that is not as committed starts none either. If the commit names the plan with which it was
reviewed, the rollout waits for a person where the plan of now is another. A trailer of the commit says so, or a note of
it or of its branch; a note may hold the plan itself. Nodes of a rollout that still runs fold in.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.plan_inputs import load_earlier_revisions, load_facts_at, load_plan_revisions
from assay.act.loop.projections import read_node_states
from assay.decide.plan.change_plan import make_change_plan
from assay.decide.plan.inputs import NO_FACTS, FleetFacts, FleetRevision
from assay.decide.plan.review import (
    PLAN_TRAILER,
    PlanContent,
    find_new_exits,
    format_plan_line,
    list_content_differences,
    parse_plan_content,
)
from assay.decide.plan.rollout_nodes import ServiceExit, find_service_exits
from assay.decide.rollouts.decide_rollouts import make_order_entry, withdraw_orders
from assay.decide.rollouts.node_progress import is_brought
from assay.decide.rollouts.rollout_history import (
    ROLLOUTS,
    RULE_NAMES,
    Rollout,
    RolloutHistory,
    RolloutMember,
    shorten_id,
)
from assay.decide.state.node_state import NodeState
from assay.declare.repository import signed_commits
from assay.declare.repository.git import read_git_error, run_git
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.rollouts import (
    CommitAdoptedEntry,
    EarlierOrder,
    RolloutGroup,
    RolloutPausedEntry,
    RolloutStartedEntry,
    RolloutSupersededEntry,
)
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.lists import format_count, format_list, format_nodes
from assay.model.timestamps import format_time

NOTES_REF = "refs/notes/assay-plan"
DIGEST_LINE = re.compile(rf"^{PLAN_TRAILER}: (sha256:[0-9a-f]{{64}})(?: at (\d{{1,18}}))?[ \t]*\r?$", re.MULTILINE)
IDENTITY = ("-c", "user.name=assay", "-c", "user.email=assay@localhost")
"""Who writes a note where git knows nobody, as on a runner."""


@frozen
class ReviewedPlan:
    """The digest of a reviewed plan, and its content, None where only the digest is recorded.

    `position` is how far the ledger was when the facts in it were read, 0 for a plan without facts.
    """

    digest: str
    content: PlanContent | None = None
    position: int = 0


def find_reviewed_plan(root: Path, commit: str) -> ReviewedPlan | None:
    """Return the plan with which a commit was reviewed, None without one. A trailer counts before a note."""
    notes = [plan for text in _list_notes(root, commit) if (plan := read_plan_record(text))]
    named = read_plan_record(_run(root, "show", "-s", "--format=%B", commit))
    if named is None:
        return notes[0] if notes else None
    return next((plan for plan in notes if plan.digest == named.digest and plan.content), named)


def read_plan_record(text: str) -> ReviewedPlan | None:
    """Return the plan that a commit message or a note records, None without one. Of several lines, the last counts."""
    lines = list(DIGEST_LINE.finditer(text))
    if not lines:
        return None
    digest, position = lines[-1].groups("0")
    return ReviewedPlan(digest, _read_content(text[lines[-1].end() :], digest), int(position))


def _read_content(text: str, digest: str) -> PlanContent | None:
    """Return the content that follows the line, None if it is not there, or is not that of the digest."""
    try:
        content = parse_plan_content(json.loads(text))
    except (AssayError, ValueError):
        return None
    return content if content.digest == digest else None


def store_reviewed_plan(root: Path, commit: str, content: PlanContent, position: int = 0) -> None:
    """Write the plan as the note of a commit; an earlier one is replaced. Raises AssayError if git refuses it."""
    text = f"{format_plan_line(content.digest, position)}\n\n{json.dumps(content.as_json(), ensure_ascii=False)}\n"
    known = run_git(root, "var", "GIT_COMMITTER_IDENT").returncode == 0
    words = ("notes", f"--ref={NOTES_REF}", "add", "--force", "--file=-", commit)
    run = run_git(root, *(() if known else IDENTITY), *words, stdin=text.encode("utf-8", "surrogateescape"))
    if run.returncode:
        raise AssayError(f"git does not store the plan: {read_git_error(run)}", where=str(root))


def _list_notes(root: Path, commit: str) -> Iterator[str]:
    """Yield the notes of a commit, and of the branches that it merges."""
    _, *parents = _run(root, "rev-list", "--parents", "--max-count=1", commit).split() or [""]
    for noted in (commit, *parents[1:]):
        if note := _run(root, "notes", f"--ref={NOTES_REF}", "show", noted):
            yield note


def _run(root: Path, *words: str) -> str:
    """Return what git says, "" if it has no such thing."""
    run = run_git(root, *words)
    return "" if run.returncode else run.stdout.decode(errors="replace")


MAX_DIFFERENCES_SHOWN = 12
SHOWN_DIGEST = len("sha256:") + 12


@frozen
class PlanReview:
    """The digest of the reviewed plan, "" without one, and why the rollout waits for a person, "" if it need not."""

    digest: str = ""
    obstacle: str = ""


def review_plan(
    context: ControllerContext, base: str, commit: str, before: FleetRevision, after: FleetRevision
) -> PlanReview:
    """Compare the plan of now, from the adopted `base` to the `commit`, with the one that was reviewed.

    That one is made again with the facts that its reviewer saw: the ledger has them. Where the fleet has changed since,
    only a node that leaves service now, and did not then, is another plan.
    """
    root = context.fleet.root
    reviewed = find_reviewed_plan(root, commit)
    if reviewed is None:
        is_required = "required" in (before.policy.rollouts.reviewed_plan, after.policy.rollouts.reviewed_plan)
        missing = f"the policy requires a reviewed plan (rollouts.reviewed_plan), and commit {commit[:12]} names none"
        return PlanReview(obstacle=missing if is_required else "")
    ledger, now = context.ledger, context.clock.now()
    facts = load_facts_at(ledger, before.fleet, reviewed.position, now) if reviewed.position else NO_FACTS
    then = _plan_content(root, before, after, facts)
    if then.digest == reviewed.digest:
        is_known, latest = reviewed.position > 0, ledger.head()
        present = (
            _plan_content(root, before, after, load_facts_at(ledger, before.fleet, latest, now)) if is_known else then
        )
        exits = find_new_exits(then, present)
        difference = "; ".join(list_content_differences(then, present)[:MAX_DIFFERENCES_SHOWN]) if exits else ""
        gone = f"the fleet is not as it was reviewed, {format_nodes(exits)} would leave service too: {difference}"
        return PlanReview(reviewed.digest, gone if exits else "")
    difference = _describe_differences(root, base, commit, reviewed, then, facts)
    digests = f"reviewed {reviewed.digest[:SHOWN_DIGEST]}, now {then.digest[:SHOWN_DIGEST]}"
    return PlanReview(reviewed.digest, f"the plan is not the reviewed one ({digests}): {difference}")


def _plan_content(root: Path, before: FleetRevision, after: FleetRevision, facts: FleetFacts) -> PlanContent:
    return make_change_plan(before, after, facts, load_earlier_revisions(root, facts, after.name)).content


def _describe_differences(
    root: Path, base: str, commit: str, reviewed: ReviewedPlan, present: PlanContent, facts: FleetFacts
) -> str:
    content = reviewed.content or _plan_from_parent(root, base, commit, reviewed.digest, facts)
    if content is None:
        return f"only the digest of the other is recorded; `assay plan --base {base[:12]}` shows the plan of now"
    differences = list_content_differences(content, present)
    shown = differences[:MAX_DIFFERENCES_SHOWN]
    more = len(differences) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def _plan_from_parent(root: Path, base: str, commit: str, digest: str, facts: FleetFacts) -> PlanContent | None:
    """Return the reviewed content, if it is that of the merge alone: the adopted base is older or newer than that."""
    answer = run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^1^{{commit}}")
    parent = "" if answer.returncode else answer.stdout.decode().strip()
    if parent in ("", base):
        return None
    try:
        content = _plan_content(root, *load_plan_revisions(root, parent, commit), facts)
    except AssayError:
        return None
    return content if content.digest == digest else None


NodesByBase = dict[str, dict[str, ServiceExit]]
"""The nodes that must leave service, by name, by the commit that they had before."""


_FoldedNode = tuple[ServiceExit | None, str, EarlierOrder]
"""What a node needs, None for nothing; the commit that it had before, and what becomes of an earlier order."""


def group_rollout_nodes(
    policy: LifecyclePolicy,
    exits: NodesByBase,
    last: str,
    earlier: Rollout | None,
    states: Mapping[str, NodeState],
) -> tuple[RolloutGroup, ...]:
    """Return the groups of a rollout from the commit `last`.

    A node of the `earlier` rollout, which was aborted or is replaced by this one, and that has not left for it, counts
    from the commit that it had before that rollout. One that has left goes on: with a new order if the newer commit
    changes more for it, else with the order that it has.
    """
    groups: dict[tuple[ServiceExit, str, EarlierOrder], list[str]] = defaultdict(list)
    members = {name: member for name, member in earlier.members.items() if not member.proof} if earlier else {}
    for name in dict.fromkeys([*exits[last], *members]):
        folded: _FoldedNode = (exits[last].get(name), last, "")
        if earlier and name in members and name in states:
            folded = _fold_in(policy, exits, last, earlier, members[name], states[name])
        need, base, order = folded
        if need is not None:
            groups[need, base, order].append(name)
    return tuple(
        RolloutGroup(need.to, need.reason, base, tuple(names), order) for (need, base, order), names in groups.items()
    )


def _fold_in(
    policy: LifecyclePolicy, exits: NodesByBase, last: str, earlier: Rollout, member: RolloutMember, state: NodeState
) -> _FoldedNode:
    """Return what a node of the earlier rollout needs now. What was aborted keeps no order."""
    need, order = exits[last].get(member.node), state.move_request
    if not member.has_left(policy, state):
        return exits[member.base].get(member.node), member.base, ""
    if need is None:
        return ServiceExit(member.to, member.reason) if earlier.is_active else None, member.base, "kept"
    if policy.is_in_service(state.state):
        return need, last, ""
    is_persons = order is not None and order.to == need.to and not order.rollout  # it brings the newer one
    return need, last, "kept" if is_persons and earlier.is_active else "replaced"


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
    history, commit = read_projection(context.ledger, ROLLOUTS), context.fleet.commit
    last = CommitAdoptedEntry.read(history.adopted).commit if history.adopted else ""
    if not commit or (commit == last and not context.fleet.dirty):
        return
    if obstacle := _find_obstacle(context, last):
        context.progress(f"commit {commit[:12]} starts no rollout: {obstacle}")
    if obstacle or commit == last:
        return
    ident = derive_id(CommitAdoptedEntry.kind, history.adopted.id if history.adopted else "", commit)
    uncompared, rollout = "", list[LedgerEntry]()
    try:
        earlier = _find_unfinished(context, history)
        newest = next(reversed(history.rollouts.values()), None)
        compared = _compare_commits(context, last, earlier, newest) if last else None
    except AssayError as error:
        context.progress(f"no rollout: {last[:12]} and {commit[:12]} cannot be compared: {error}")
        uncompared, compared = error.what, None
    if compared:
        rollout = _make_rollout_entries(context, earlier, last, ident, *compared)
    adopted = CommitAdoptedEntry(commit, last, uncompared)
    context.ledger.append(adopted.make_entry(ident, context.now), *rollout)


def _find_obstacle(context: ControllerContext, last: str) -> str:
    """Return why the commit is not adopted, "" if it may be."""
    root = context.fleet.root
    try:
        changed = signed_commits.find_uncommitted(root)
    except AssayError as error:
        return error.what
    if changed:
        return f"{format_list(changed, 4)} is not as committed. Nodes are judged by what it says now"
    if last and not signed_commits.has_commit(root, last) and not signed_commits.has_whole_history(root):
        return f"this clone does not have {last[:12]}, which was adopted before it: fetch the whole history"
    if last not in ("", context.fleet.commit) and signed_commits.is_descendant(root, last, context.fleet.commit):
        return f"{last[:12]}, which is newer, was adopted before it. To go back, merge a `git revert`"
    return ""


def _make_rollout_entries(
    context: ControllerContext,
    earlier: Rollout | None,
    last: str,
    adopted: str,
    exits: NodesByBase,
    review: PlanReview,
    takes_back: bool,
) -> list[LedgerEntry]:
    """Return the entries that start a rollout and end the one before, none if no node must leave service."""
    if not exits[last]:
        return []
    states, stamp = read_node_states(context.ledger), format_time(context.now)
    groups = group_rollout_nodes(context.policy, exits, last, earlier, states)
    active = earlier if earlier and earlier.is_active else None
    rollout = derive_id("rollout", last, context.fleet.commit, adopted)
    end = [*_make_superseded_entry(context, active, rollout, groups)]
    if active:
        kept = {name for group in groups if group.earlier == "kept" for name in group.nodes}
        reason = f"rollout {shorten_id(active.id)} is over: commit {context.fleet.commit[:12]} replaces its change"
        left = [state for name, state in states.items() if name not in kept]
        end += withdraw_orders(context.policy, left, active.id, reason, stamp)
    if not groups:
        return end
    started = RolloutStartedEntry(rollout, last, context.fleet.commit, groups, review.digest, takes_back)
    start = started.make_entry(derive_id(started.kind, rollout), context.now)
    pause = _make_pause(context, active, rollout, review)
    orders = _replace_orders(context.policy, rollout, groups, states, stamp)
    return [start, *end, *pause, *orders]  # the start reads the other's orders


def _replace_orders(
    policy: LifecyclePolicy,
    rollout: str,
    groups: tuple[RolloutGroup, ...],
    states: Mapping[str, NodeState],
    stamp: str,
) -> Iterator[LedgerEntry]:
    """Yield new orders to nodes that are on their way for an earlier change: there they get, and say, the newest.

    A node that has just got what an earlier commit declares is ordered to get the newest, before checks compare it.
    """
    for group in groups:
        for name in group.nodes:
            state = states.get(name)
            order = state.move_request if state else None
            is_replaced = group.earlier == "replaced" and order and order.rollout and order.to == group.to
            if is_replaced or (state and not order and is_brought(policy, state, group.to)):
                yield make_order_entry(rollout, name, group.to, group.reason, stamp)


def _find_unfinished(context: ControllerContext, history: RolloutHistory) -> Rollout | None:
    """Return the rollout whose nodes may not have the adopted commit; an aborted one only while git has its commits."""
    last = history.find_unfinished()
    root = context.fleet.root
    if last and not last.is_active and not all(signed_commits.has_commit(root, base) for base in _list_bases(last)):
        return None
    return last


def _list_bases(rollout: Rollout) -> set[str]:
    return {member.base for member in rollout.members.values() if not member.proof}


def _compare_commits(
    context: ControllerContext, last: str, previous: Rollout | None, newest: Rollout | None
) -> tuple[NodesByBase, PlanReview, bool]:
    """Return the nodes that must leave service, by the commit that they had before, and the review of the plan.

    And whether none of these nodes would need the commit if the `newest` rollout had not been.
    """
    root, commit = context.fleet.root, context.fleet.commit
    earlier = _list_bases(previous) if previous else set[str]()
    exits: NodesByBase = {}
    review = PlanReview()
    for base in sorted({last, *earlier}):
        before, after = load_plan_revisions(root, base, commit)
        exits[base] = find_service_exits(before, after)
        if base == last and exits[base]:
            review = review_plan(context, base, commit, before, after)
    # what was itself taken back comes as any other change
    if not exits[last] or newest is None or newest.takes_back or not signed_commits.has_commit(root, newest.base):
        return exits, review, False
    needs = find_service_exits(*load_plan_revisions(root, newest.base, commit))
    return exits, review, exits[last].keys().isdisjoint(needs)


def _make_superseded_entry(
    context: ControllerContext, active: Rollout | None, rollout: str, groups: tuple[RolloutGroup, ...]
) -> Iterator[LedgerEntry]:
    """Yield the end of the rollout that goes over into the new one."""
    if active is None:
        return
    moved = {name for group in groups for name in group.nodes} & active.unproven
    rest = len(active.unproven) - len(moved)
    go = "goes" if len(moved) == 1 else "go"
    parts = [f"{format_count(len(moved), 'node')} of it {go} on in rollout {shorten_id(rollout)}"] if moved else []
    parts += [f"{format_count(rest, 'node')} need nothing more"] if rest else []
    reason = f"commit {context.fleet.commit[:12]}: {', '.join(parts) or 'every node of it was proven'}"
    ended = RolloutSupersededEntry(active.id, rollout if groups else "", reason)
    yield ended.make_entry(derive_id(ended.kind, active.id), context.now)


def _make_pause(
    context: ControllerContext, active: Rollout | None, rollout: str, review: PlanReview
) -> Iterator[LedgerEntry]:
    """Yield the pause of a new rollout: for its plan, or because the one before it waited for a person as well."""
    before = active.pause if active and active.pause and active.pause.rule in CARRIED_RULES else None
    if review.obstacle or (before and before.rule):
        reasons = [review.obstacle] if review.obstacle else []
        reasons += [f"the rollout before it was paused by {before.who}: {before.reason}"] if before else []
        paused = RolloutPausedEntry(rollout, RULE_NAMES["plan"], "; ".join(reasons), "plan")
    elif before:
        paused = RolloutPausedEntry(rollout, before.who, before.reason)
    else:
        return
    yield paused.make_entry(derive_id(paused.kind, rollout, "0"), context.now)
