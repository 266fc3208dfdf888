"""`assay init` creates a fleet repository; `assay upgrade` brings the files that it copied to the installed version."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, argument, option
from assay.decide.plan.inputs import HistoryReport
from assay.declare.home import require_repository
from assay.declare.starter.upgrade_plan import DELETED, FileChange, Status, UpgradePlan
from assay.model.errors import AssayError
from assay.model.facts import fact, shown
from assay.model.text.lists import format_count, format_list
from assay.model.text.safe_text import escape_line

if TYPE_CHECKING:
    from assay.declare.starter.starter_record import SiteFiles

APPLY = "To write this into the working tree: `assay upgrade --apply`"
CONFLICTS = "In each conflict, choose between the marked lines, then `git add` the file. `git status` lists them."
NEXT = (
    "Next: `assay check`, `git commit`, and `assay plan --base HEAD~1` shows what the new version means for the nodes."
)
OWNERS = "Spec files came or went: `assay specs codeowners` makes CODEOWNERS again."
UNDO = "To take it back before you commit: `git reset --hard && git clean -i`"
UNDO_BY_FILE = (
    "To take a file back: `git checkout HEAD -- FILE`. `git reset --hard` would also undo your other changes."
)
ORDER: tuple[Status, ...] = ("updated", "new", "removed", "merged", "kept", "conflict")
"""What needs a person comes last, next to the prompt."""
FOLDED: tuple[Status, ...] = ("updated", "new", "removed")
MOST_OF_A_FOLDER = 3


@fact
class UpgradedFile:
    """What becomes of one file of a fleet repository."""

    path: str
    """The path of the file."""
    status: Status
    """What becomes of it."""
    reason: str
    """Why; "" if there is nothing to say."""
    moved_from: str
    """Where the file stood before; "" if it did not move."""


@fact
class UpgradeAnswer:
    """What an upgrade does to the files of a fleet repository."""

    from_: str = shown("from")
    """The version of assay that the files are of; "" if it finished an upgrade that was broken off."""
    to: str
    """The version of assay that they are brought to; "" if it finished an upgrade that was broken off."""
    applied: bool
    """Whether the files were written; false without --apply."""
    finished: bool
    """Whether this finished an upgrade that was broken off."""
    uncommitted: list[str]
    """Files that are not committed and would be touched."""
    files: list[UpgradedFile]
    """Every file, also those that stay as they are; those with conflicts if it finished an upgrade."""
    history: HistoryReport | None = None
    """What the new version would have done otherwise with the stored history; null if they judge alike, or none is."""


def upgrade(
    fleet: FleetDir = Path(),
    is_applied: Annotated[
        bool, option("--apply", "Write it into the working tree; without this, only show it.")
    ] = False,
    base: Annotated[
        str,
        option("--base REV", "For a fleet without a record: a commit that has the files as `assay init` copied them."),
    ] = "",
    despite_history: Annotated[
        bool, option("--despite-history", "Write it though the stored history speaks against it.")
    ] = False,
    form: OutputFormat = "text",
) -> None:
    """Bring the files that `assay init` copied to this version of assay, and keep what the site changed.

    assay merges three texts of each file: as it was copied, as it is in this repository, and as this version has it.
    The inventory, the fabric designs and every file of your own stay as they are; only what Python files import from
    inner modules of assay is imported from assay.fleetkit. Nothing is committed.

    With a ledger, both versions judge its history, the stored evidence of the last 30 days and the newest runs: which
    nodes the new one would have closed, which of them were proven healthy later, and which faults it no longer sees.
    Beyond `rollouts.history` of the policy as it is now, a person must look, and agree with --despite-history.

    Exit codes: 0 shown or written, without a conflict; 1 there are conflicts to resolve, or history speaks against it;
    2 not done.
    """
    site = _open_site(fleet)
    if is_applied:
        sys.exit(_apply(site, base, form, is_agreed=despite_history))
    plan = _make_plan(site, base)
    history, excess = _judge_history(site, plan)
    uncommitted = _list_uncommitted(site, plan)
    advice = [APPLY] if plan.is_needed else []
    if uncommitted:
        advice.insert(0, f"Not committed: {format_list(uncommitted)}. Commit or stash it before you apply.")
    _print(plan, form, [*_format_history(history, excess), *advice], uncommitted, history=history)
    sys.exit(1 if plan.select("conflict") or (excess and not despite_history) else 0)


def _judge_history(site: SiteFiles, plan: UpgradePlan) -> tuple[HistoryReport | None, str]:
    """Return what the new version would have done with the stored history, and what of it needs a person."""
    from assay.cli.workspace import Workspace

    workspace = Workspace(site.root)
    if not plan.is_needed or not workspace.has_ledger:
        return None, ""
    from assay.act.loop.history_replay import StoredHistory, replay_upgrade
    from assay.observe.evidence_store import EvidenceStore

    evidence = EvidenceStore(workspace.evidence_dir)
    now, is_lab = workspace.clock.now(), workspace.home.is_lab
    stored = StoredHistory(workspace.ledger_location, evidence, workspace.reports_dir, now, is_lab)
    return replay_upgrade(plan, site.root, stored)


def _format_history(history: HistoryReport | None, excess: str) -> Iterator[str]:
    from assay.decide.plan.sections import format_history

    yield from format_history(history)
    if excess:
        yield f"A person must look: {excess}. Whoever agrees adds --despite-history."


def _open_site(fleet: Path) -> SiteFiles:
    """Return the files of a fleet repository. Raises AssayError if it is none, or not in git."""
    from assay.declare.starter.starter_record import SiteFiles

    site = SiteFiles(fleet.resolve())
    require_repository(site.root)
    site.run_git("rev-parse", "--git-dir")
    return site


def _apply(site: SiteFiles, base: str, form: OutputFormat, *, is_agreed: bool) -> int:
    """Write an upgrade, or finish one that was killed, and return the exit code."""
    from assay.declare.starter.upgrade_journal import apply_upgrade, find_broken_off, finish_upgrade

    with lock_upgrades(site.root):
        if find_broken_off(site.root):
            return _print_finished(finish_upgrade(site), form)
        plan = _make_plan(site, base)
        uncommitted = _list_uncommitted(site, plan)
        if uncommitted:
            fix = "commit or stash it first, so that you can tell what the upgrade did; nothing was written"
            raise AssayError(f"not committed: {format_list(uncommitted)}", where=str(site.root), fix=fix)
        history, excess = _judge_history(site, plan)
        if excess and not is_agreed:
            fix = "`assay upgrade` shows it; whoever agrees adds --despite-history. Nothing was written"
            raise AssayError(f"the stored history speaks against it: {excess}", where=str(site.root), fix=fix)
        undo = UNDO if site.is_clean() else UNDO_BY_FILE
        if plan.is_needed:
            apply_upgrade(site, plan)
    notes = [*_format_history(history, excess), *_describe_next_steps(plan, undo)]
    _print(plan, form, notes, [], is_applied=True, history=history)
    return 1 if plan.select("conflict") else 0


def lock_upgrades(root: Path) -> AbstractContextManager[None]:
    """Let one upgrade of a repository run at a time. Raises AssayError while another one does."""
    from assay.ledger.file_locks import hold_file_lock

    refusal = AssayError("another upgrade of this repository is at work", where=str(root), fix="wait for it")
    return hold_file_lock(root / ".assay" / "upgrade.lock", 0, lambda _: refusal)


def _make_plan(site: SiteFiles, base: str) -> UpgradePlan:
    """Return what an upgrade does. Raises AssayError if its base is not known, or is newer than this version."""
    from assay.declare.starter.new_repository import render_starter
    from assay.declare.starter.starter_record import describe_missing_record, find_ci, read_base_commit, read_record
    from assay.declare.starter.upgrade_journal import find_broken_off
    from assay.declare.starter.upgrade_plan import make_upgrade_plan

    if version := find_broken_off(site.root):
        problem = f"an upgrade to {version} was broken off while it wrote"
        raise AssayError(problem, where=str(site.root), fix="`assay upgrade --apply` finishes it")
    site.require_no_conflicts()
    record = read_record(site.root)
    if record and base:
        raise AssayError("the record says what was copied: --base would contradict it", fix="leave --base out")
    if not record and not base:
        raise describe_missing_record(site)
    version, files = render_starter(record.ci if record else find_ci(site))
    record = record or read_base_commit(site, base, files)
    if _order(record.version) > _order(version):
        fix = "install the version that requirements.txt names"
        raise AssayError(f"these files are of assay {record.version}, and this is {version}", fix=fix)
    return make_upgrade_plan(site, record, version, files)


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]] if version[:1].isdigit() else []


def _list_uncommitted(site: SiteFiles, plan: UpgradePlan) -> list[str]:
    return site.list_uncommitted([*plan.list_touched(), *plan.files]) if plan.is_needed else []


def _describe_next_steps(plan: UpgradePlan, undo: str) -> list[str]:
    if not plan.is_needed:
        return []
    came_or_went = [change for change in plan.select("new", "removed") if change.path.startswith("specs/")]
    owners = [OWNERS] if any(not change.path.startswith("specs/schemas/") for change in came_or_went) else []
    return [*([CONFLICTS] if plan.select("conflict") else []), *owners, NEXT, undo]


def _print(
    plan: UpgradePlan,
    form: OutputFormat,
    notes: list[str],
    uncommitted: list[str],
    *,
    is_applied: bool = False,
    history: HistoryReport | None,
) -> None:
    files = [UpgradedFile(change.path, change.status, change.reason, change.old_path) for change in plan.changes]
    answer = UpgradeAnswer(plan.before.version, plan.version, is_applied, False, uncommitted, files, history)
    print_answer(answer, form, [*format_upgrade(plan), *notes])


def _print_finished(conflicts: list[str], form: OutputFormat) -> int:
    files = [UpgradedFile(path, "conflict", "", "") for path in conflicts]
    lines = [f"conflict  {path}" for path in conflicts]
    marked = [CONFLICTS] if conflicts else []
    text = ["Finished the upgrade that was broken off.", *lines, *marked, NEXT, UNDO_BY_FILE]
    print_answer(UpgradeAnswer("", "", True, True, [], files), form, text)
    return 1 if conflicts else 0


def format_upgrade(plan: UpgradePlan) -> list[str]:
    """Return what an upgrade does, and a summary."""
    lines = [line for status in ORDER for line in _format_status(status, plan.select(status))]
    counts = []
    for status in (*ORDER, "unchanged"):
        if number := len(plan.select(status)):
            counts.append(f"{number} {'conflicts' if status == 'conflict' and number > 1 else status}")
    return [*lines, f"assay {plan.before.version} → {plan.version}: {', '.join(counts) or 'no files'}"]


def _format_status(status: Status, changes: Sequence[FileChange]) -> Iterator[str]:
    folders: dict[tuple[str, str], list[FileChange]] = {}
    for change in changes:
        folds = not change.old_path and (status in FOLDED or change.reason == DELETED)
        key = str(PurePosixPath(change.path).parent) if folds else change.path
        folders.setdefault((key, change.reason), []).append(change)
    for (folder, reason), some in folders.items():
        end = f": {reason}" if reason else ""
        if len(some) > MOST_OF_A_FOLDER:
            yield f"{status:<9} {folder}/ ({format_count(len(some), 'file')}){end}"
        else:
            yield from (f"{status:<9} {change.path}{end}" for change in some)


NEXT_STEPS = """\
{folder} is now a fleet repository with {nodes} example nodes. Replace them by your own.
Next:
  cd {folder}
  assay check
  git add --all && git commit --message "Our fleet"
Commands there work on its lab (assay lab up) until you choose the real machines: assay context fleet.
README.md there is a guide for the first hour."""


def init(
    folder: Annotated[Path, argument("DIR", "An empty folder, or one that does not exist yet.")],
    ci: Annotated[
        Literal["github", "gitlab", "both"], option("--ci", "Whose workflows to add: see docs/ci.md.")
    ] = "github",
    burn_in: Annotated[
        Literal["day", "short"], option("--burn-in", "How long a node is loaded before it serves: a day, or 4 hours.")
    ] = "day",
) -> None:
    """Create a fleet repository with an example inventory, specs, suites and playbooks.

    `assay check` accepts it as it is, and its suites run against the lab, which is chosen in it.
    """
    from assay.declare.home import choose_context
    from assay.declare.loader import load_fleet
    from assay.declare.starter.new_repository import create_repository

    create_repository(folder, ci, burn_in)
    choose_context(folder, "lab")
    typer.echo(NEXT_STEPS.format(folder=escape_line(str(folder)), nodes=len(load_fleet(folder).nodes)))
