"""Shows an upgrade for people: one line for each file, and one for several of a folder that fare alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from assay.declare.starter.upgrade_plan import DELETED, FileChange, Status, UpgradePlan
from assay.model.text.text_lists import format_count

if TYPE_CHECKING:
    from assay.cli.answers.declaration_answers import UpgradeAnswer, UpgradedFile

ORDER: tuple[Status, ...] = ("updated", "new", "removed", "merged", "kept", "conflict")
"""What needs a person comes last, next to the prompt."""
FOLDED: tuple[Status, ...] = ("updated", "new", "removed")
MOST_OF_A_FOLDER = 3


def format_upgrade(plan: UpgradePlan) -> list[str]:
    """Return what an upgrade does, and a summary."""
    lines = [line for status in ORDER for line in _format_status(status, plan.select(status))]
    counts = [(len(plan.select(status)), status) for status in (*ORDER, "unchanged")]
    told = ", ".join(f"{number} {_plural(number, status)}" for number, status in counts if number)
    return [*lines, f"assay {plan.before.version} → {plan.version}: {told or 'no files'}"]


def format_upgrade_json(plan: UpgradePlan, is_applied: bool, uncommitted: Sequence[str]) -> UpgradeAnswer:
    """Return the same for machines, with every file."""
    files: list[UpgradedFile] = [
        {"path": change.path, "status": change.status, "reason": change.reason, "moved_from": change.old_path}
        for change in plan.changes
    ]
    return {
        "from": plan.before.version,
        "to": plan.version,
        "applied": is_applied,
        "finished": False,
        "uncommitted": [*uncommitted],
        "files": files,
    }


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


def _plural(number: int, status: Status) -> str:
    return "conflicts" if status == "conflict" and number > 1 else status
