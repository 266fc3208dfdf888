"""Holds a merge to the plan that was reviewed: plans it again from the adopted commit, and says what differs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.act.loop.plan_revisions import load_plan_revisions
from assay.act.rollouts.reviewed_plans import ReviewedPlan, find_reviewed_plan
from assay.decide.plan.change_plan import make_change_plan
from assay.decide.plan.content_differences import list_content_differences
from assay.decide.plan.current_fleet_state import FleetFacts
from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.plan_content import PlanContent
from assay.declare.repository.git import run_git
from assay.model.errors import AssayError

MAX_DIFFERENCES_SHOWN = 12
SHOWN_DIGEST = len("sha256:") + 12


@dataclass(frozen=True, slots=True)
class PlanReview:
    """The digest of the reviewed plan, "" without one, and why the rollout waits for a person, "" if it need not."""

    digest: str = ""
    obstacle: str = ""


def review_plan(root: Path, base: str, commit: str, before: FleetRevision, after: FleetRevision) -> PlanReview:
    """Compare the plan of now, from the adopted `base` to the `commit`, with the one that was reviewed."""
    reviewed = find_reviewed_plan(root, commit)
    if reviewed is None:
        is_required = "required" in (before.policy.rollouts.reviewed_plan, after.policy.rollouts.reviewed_plan)
        return PlanReview(obstacle=_describe_missing_plan(commit) if is_required else "")
    present = make_change_plan(before, after, FleetFacts()).content
    if present.digest == reviewed.digest:
        return PlanReview(reviewed.digest)
    said = _describe_differences(root, base, commit, reviewed, present)
    digests = f"reviewed {reviewed.digest[:SHOWN_DIGEST]}, now {present.digest[:SHOWN_DIGEST]}"
    return PlanReview(reviewed.digest, f"the plan is not the reviewed one ({digests}): {said}")


def _describe_missing_plan(commit: str) -> str:
    return f"the policy requires a reviewed plan (rollouts.reviewed_plan), and commit {commit[:12]} names none"


def _describe_differences(root: Path, base: str, commit: str, reviewed: ReviewedPlan, present: PlanContent) -> str:
    content = reviewed.content or _plan_from_parent(root, base, commit, reviewed.digest)
    if content is None:
        return f"only the digest of the other is recorded; `assay plan --base {base[:12]}` shows the plan of now"
    differences = list_content_differences(content, present)
    shown = differences[:MAX_DIFFERENCES_SHOWN]
    more = len(differences) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def _plan_from_parent(root: Path, base: str, commit: str, digest: str) -> PlanContent | None:
    """Return the reviewed content, if it is that of the merge alone: the adopted base is older or newer than that."""
    found = run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^1^{{commit}}")
    parent = "" if found.returncode else found.stdout.decode().strip()
    if parent in ("", base):
        return None
    try:
        content = make_change_plan(*load_plan_revisions(root, parent, commit), FleetFacts()).content
    except AssayError:
        return None
    return content if content.digest == digest else None
