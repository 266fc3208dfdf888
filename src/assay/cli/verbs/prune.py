"""`assay prune`: deletes runs that are older than the policy wants, and says what is lost with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Who, find_operator_name
from assay.cli.options import FleetDir, OutputFormat, option
from assay.cli.verbs.ledger_copies import seal_removals
from assay.cli.workspace import Workspace
from assay.model.facts import fact
from assay.model.text.lists import format_count
from assay.model.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.model.specs.serving import RetentionRules
    from assay.validate.results.retention import EvidencePlan, PrunePlan, UnprunedRun


@fact
class PrunedEvidence:
    """Evidence that was deleted, or would be."""

    documents: int
    """How many documents."""
    bytes: int
    """Their size in bytes."""
    kept_all: str
    """Why all evidence is kept; "" if not all is."""


@fact
class PruneAnswer:
    """What is older than the policy wants and was deleted, or would be."""

    deleted: bool
    """Whether it was deleted; false without --yes."""
    runs: list[str]
    """The ids of the runs."""
    artefacts: int
    """How many files of failures that only these runs have."""
    outcomes: int
    """How many outcomes in the ledger."""
    bytes: int
    """The size of runs, artefacts and archives in bytes."""
    archives: list[str]
    """The archives of `collect` that are older than `runs_days`, without those that may be of an open incident."""
    evidence: PrunedEvidence
    """The evidence."""
    rejudgeable: int
    """How many of these runs `assay rejudge` could judge again until now."""
    kept: tuple[UnprunedRun, ...]
    """The runs that are kept although they are old."""


MAX_NAMED = 20


def prune(
    yes: Annotated[bool, option("--yes", "Delete. Without it, only show what would be deleted.")] = False,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Delete runs, outcomes and evidence that are older than `retention` of the policy, and what only such runs kept.

    History keeps the outcomes of deleted runs. Runs that have not ended, that cannot be read or that history lacks are
    kept, and named. In the ledger, the newest outcomes stay. Evidence stays while a node's newest document, a run, an
    outcome or an entry refers to it. Archives of `collect` go with runs, but none of an open incident. Entries note
    what was deleted of outcomes and evidence.

    Exit codes: 0 done, or shown; 2 something could not be read or deleted.
    """
    from assay.validate.results.retention import plan_pruning

    workspace = Workspace(fleet.resolve())
    if yes:
        workspace.announce()
    rules = workspace.fleet.policy.retention
    plan = plan_pruning(workspace.reports_dir, rules, workspace.clock.now())
    evidence = _plan_evidence(workspace, rules, plan)
    head = workspace.ledger.head() if yes and workspace.has_ledger else 0
    outcomes = _prune_ledger(workspace, rules, who) if yes else _count_in_ledger(workspace, rules)
    documents = len(evidence.objects)
    archives = _list_old_archives(workspace, rules)
    size = plan.size + sum(archive.stat().st_size for archive in archives)
    if yes:
        plan.execute()
        for archive in archives:
            archive.unlink(missing_ok=True)
        documents = _prune_evidence(workspace, evidence, who)
    answer = PruneAnswer(
        deleted=yes,
        runs=[run.parent.name for run in plan.runs],
        artefacts=len(plan.artefacts),
        outcomes=outcomes,
        bytes=size,
        archives=[archive.name for archive in archives],
        evidence=PrunedEvidence(documents=documents, bytes=evidence.size, kept_all=evidence.kept_all),
        rejudgeable=plan.rejudgeable,
        kept=tuple(plan.kept),
    )
    print_answer(answer, form, [*_format_text(answer, rules), *_format_evidence(answer, rules)])
    if yes and outcomes:
        seal_removals(workspace, head, who)


def _list_old_archives(workspace: Workspace, rules: RetentionRules) -> list[Path]:
    """Return the archives to delete. What no entry proves stays, and what was written since an open incident began."""
    from assay.act.remedies.dossier_build import locate_diagnostics
    from assay.decide.faults.incidents import list_open_incidents
    from assay.model.decision import COLLECT

    old = list[Path]()
    if rules.runs_days is None or not workspace.has_ledger:
        return old
    before = format_time(workspace.clock.now() - timedelta(days=rules.runs_days))
    for state in workspace.read_node_states():
        incidents = list_open_incidents(workspace.fleet.fault_relations, state)
        begun = min((incident.first_seen for incident in incidents), default="")
        for effect in state.effects:
            if effect.action == COLLECT and effect.standing == "verified" and effect.at < before:
                path = locate_diagnostics(workspace.reports_dir, state.node, effect.id)
                old += [path] if path.exists() and (not begun or effect.at < begun) else []
    return old


def _plan_evidence(workspace: Workspace, rules: RetentionRules, plan: PrunePlan) -> EvidencePlan:
    from assay.validate.results.retention import EvidencePlan, plan_evidence_pruning

    if rules.evidence_days is None:
        return EvidencePlan()
    if not workspace.has_ledger:
        return EvidencePlan(kept_all="there is no ledger here, which would say what its outcomes refer to")
    now = workspace.clock.now()
    before = now - timedelta(days=rules.outcomes_days) if rules.outcomes_days is not None else None
    named = workspace.ledger.iter_named_evidence(before)
    return plan_evidence_pruning(workspace.evidence_dir, workspace.reports_dir, plan.runs, named, rules, now)


def _prune_evidence(workspace: Workspace, plan: EvidencePlan, who: str) -> int:
    """Note in the ledger that evidence is deleted, then delete it; return how many documents."""
    from assay.model.entries.node_entries import EvidencePrunedEntry
    from assay.model.ledger_entry import derive_id
    from assay.validate.results.retention import restore_set_aside

    restore_set_aside(workspace.evidence_dir)
    if not plan.objects:
        return 0
    at, before = workspace.clock.now().isoformat(), datetime.fromtimestamp(plan.before_s, UTC).isoformat()
    entry = EvidencePrunedEntry(before, len(plan.objects), plan.size, find_operator_name(who))
    workspace.ledger.append(entry.make_entry(derive_id(entry.kind, before, at), at))
    return plan.execute()


def _count_in_ledger(workspace: Workspace, rules: RetentionRules) -> int:
    if rules.outcomes_days is None or not workspace.has_ledger:
        return 0
    return workspace.ledger.count_prunable(workspace.clock.now() - timedelta(days=rules.outcomes_days))


def _prune_ledger(workspace: Workspace, rules: RetentionRules, who: str) -> int:
    """Delete the ledger's old outcomes, and return how many."""
    if not _count_in_ledger(workspace, rules):
        return 0
    now = workspace.clock.now()
    return workspace.ledger.prune_outcomes(
        now - timedelta(days=rules.outcomes_days or 0.0), find_operator_name(who), now
    )


def _format_text(pruned: PruneAnswer, rules: RetentionRules) -> Iterator[str]:
    if rules.runs_days is None:
        yield "the policy keeps every run: it has no retention.runs_days"
    for kept in pruned.kept:
        yield f"kept {kept.run}: {kept.why}"
    for run in pruned.runs[:MAX_NAMED]:
        yield f"{'deleted' if pruned.deleted else 'would delete'} {run}"
    if len(pruned.runs) > MAX_NAMED:
        yield f"… and {len(pruned.runs) - MAX_NAMED} more"
    outcomes = format_count(pruned.outcomes, "outcome")
    of_ledger = f" and {outcomes} in the ledger" if rules.outcomes_days is not None else ""
    total = f"{format_count(len(pruned.runs), 'run')} and {format_count(pruned.artefacts, 'artefact')}{of_ledger}"
    if pruned.archives:
        total = f"{format_count(len(pruned.archives), 'archive')} of `collect`, {total}"
    yield f"{total}, {pruned.bytes / 1e6:.1f} MB{'' if pruned.deleted else '; nothing is deleted without --yes'}"
    if pruned.rejudgeable:
        runs = format_count(pruned.rejudgeable, "run")
        verb = "can" if pruned.deleted else "could"
        yield f"`assay rejudge` {verb} judge {runs} of them no more; their outcomes stay in history"
    if pruned.outcomes:
        yield "a check that counts growth since its last pass counts from zero when a run of that time is judged again"


def _format_evidence(pruned: PruneAnswer, rules: RetentionRules) -> Iterator[str]:
    evidence = pruned.evidence
    if evidence.kept_all:
        yield f"kept all evidence: {evidence.kept_all}"
    elif rules.evidence_days is not None:
        size = f"{format_count(evidence.documents, 'document')} of evidence, {evidence.bytes / 1e6:.1f} MB"
        yield f"{size}{'' if pruned.deleted else '; nothing is deleted without --yes'}"
        if evidence.documents:
            yield "nothing can judge them again; no run, outcome or entry that stays refers to them"
