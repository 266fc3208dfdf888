"""`assay plan --base REV`: what merging a change would do to the fleet."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, ServerError, TokenFile
from assay.cli.options import FleetDir, option
from assay.cli.workspace import Workspace
from assay.ledger.errors import LedgerError
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.decide.plan.change_plan import ChangePlan


def plan(
    base: Annotated[
        str, option("--base REV", "The revision to merge into: a branch, a tag or a commit.", show_default=False)
    ],
    head: Annotated[
        str, option("--head REV", "The revision to merge. Default: the working tree.", show_default=False)
    ] = "",
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "markdown"],
        option("--format", "text for people, json for machines, markdown for a pull request.", show_default=False),
    ] = "text",
    server: Server = "",
    token_file: TokenFile = None,
    authority: ServerAuthority = None,
    store: Annotated[
        bool, option("--store", "Record the plan as reviewed: in a git note of the head, which must be a commit.")
    ] = False,
) -> None:
    """Compare two revisions of the fleet repository: the changes, the work they cause, and the policy's limits.

    Parts of the base that cannot be read are named, and do not block the plan of their repair.

    Where each node is now, who holds it, what is under way and how long things take, the ledger says, or with --server
    an `assay serve`. Without both, the plan says so: it has no waves and no hours. With a ledger, also list the nodes
    that the new limits or policy would have moved in the last 30 days. If the ledger cannot be read, or the server does
    not answer, the plan is made without it and says so.

    If fault classes, relations or checks change, both revisions judge the stored evidence of the last 30 days, what the
    ledger recorded of logs, and the newest runs: which nodes the head would have closed, which of them were proven
    healthy later, and which faults it no longer sees. Beyond the policy's `rollouts.history`, the plan refuses.

    With --store, `assay reconcile` holds the merge of this head to this plan: if another plan results then, the rollout
    waits for a person. The note is in refs/notes/assay-plan; push that ref if another clone applies the merge.

    Exit codes: 0 the limits allow it; 1 they do not; 2 the head, git, the ledger or the server cannot be read.
    """
    from assay.act.loop.plan_inputs import (
        load_earlier_revisions,
        load_plan_facts,
        load_plan_revisions,
        take_server_facts,
    )
    from assay.decide.plan.change_plan import make_change_plan
    from assay.decide.plan.inputs import FleetFacts
    from assay.declare.yaml import ParseCache
    from assay.observe.evidence_store import EvidenceStore

    if not fleet.is_dir():
        raise AssayError(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    gc.disable()  # everything read stays alive until the end; collecting garbage takes a quarter of the time
    workspace, cache = Workspace(fleet.resolve()), ParseCache()
    before, after = (
        replace(each, fleet=replace(each.fleet, is_lab=workspace.home.is_lab))
        for each in load_plan_revisions(workspace.root, base, head, cache)
    )
    unread = None
    try:
        if server:
            facts = take_server_facts(FleetServer(server, token_file, authority).read_facts(), before, after)
        else:
            evidence, now = EvidenceStore(workspace.evidence_dir), workspace.clock.now()
            facts = load_plan_facts(workspace.ledger_location, before, after, now, evidence)
            if not facts.missing:
                from assay.act.loop import history_replay  # it judges runs, and loads pytest

                stored = history_replay.StoredHistory(
                    workspace.ledger_location, evidence, workspace.reports_dir, now, before.fleet.is_lab
                )
                history = history_replay.replay_stored_history(workspace.root, head, before, after, stored)
                facts = replace(facts, history=history)
    except (LedgerError, ServerError) as error:
        facts, unread = FleetFacts(missing=error.what), error
    change_plan = make_change_plan(before, after, facts, load_earlier_revisions(workspace.root, facts, head, cache))
    typer.echo(format_fleet_plan(change_plan, format_))
    if store:
        _store_plan(workspace.root, head, change_plan)
    if unread:
        fix = "states of nodes, running work and the last 30 days are missing in this plan; do not merge by it"
        raise AssayError(f"{unread}", fix=fix) from unread
    sys.exit(1 if change_plan.refused else 0)


def _store_plan(root: Path, head: str, change_plan: ChangePlan) -> None:
    """Write the plan as a note of its head. Raises AssayError if the head is a folder that is not as committed."""
    from assay.act.rollouts.commit_adoption import NOTES_REF, store_reviewed_plan
    from assay.declare.repository.git import resolve_commit
    from assay.declare.repository.signed_commits import find_uncommitted

    if not head and (changed := find_uncommitted(root)):
        raise AssayError(f"the plan is not stored: {changed[0]} is not as committed", fix="commit it first")
    commit = resolve_commit(root, head or "HEAD")
    store_reviewed_plan(root, commit, change_plan.content, change_plan.facts.position)
    typer.echo(f"stored as the reviewed plan of {commit[:12]} in {NOTES_REF}", err=True)


def format_fleet_plan(change_plan: ChangePlan, form: str) -> str:
    """Return a plan as text, json or markdown."""
    from assay.decide.plan.output_formats import format_plan_json, format_plan_markdown, format_plan_text

    formats: dict[str, Callable[[ChangePlan], str]] = {
        "text": format_plan_text,
        "json": format_plan_json,
        "markdown": format_plan_markdown,
    }
    return formats[form](change_plan)
