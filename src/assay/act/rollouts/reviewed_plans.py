"""Finds the plan with which a commit was reviewed, in git: a trailer of the commit, or a note of it or of its branch.

Both carry the line `Assay-Plan: sha256:…`. A note may also hold the plan itself, so that differences can be named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.decide.plan.review import PLAN_TRAILER, PlanContent, parse_plan_content
from assay.declare.repository.git import read_git_error, run_git
from assay.model.errors import AssayError

NOTES_REF = "refs/notes/assay-plan"
DIGEST_LINE = re.compile(rf"^{PLAN_TRAILER}: (sha256:[0-9a-f]{{64}})[ \t]*\r?$", re.MULTILINE)
IDENTITY = ("-c", "user.name=assay", "-c", "user.email=assay@localhost")
"""Who writes a note where git knows nobody, as on a runner."""


@dataclass(frozen=True, slots=True)
class ReviewedPlan:
    """The digest of a reviewed plan, and its content, None where only the digest is recorded."""

    digest: str
    content: PlanContent | None = None


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
    return ReviewedPlan(lines[-1][1], _read_content(text[lines[-1].end() :], lines[-1][1])) if lines else None


def _read_content(text: str, digest: str) -> PlanContent | None:
    """Return the content that follows the line, None if it is not there, or is not that of the digest."""
    try:
        content = parse_plan_content(json.loads(text))
    except (AssayError, ValueError):
        return None
    return content if content.digest == digest else None


def store_reviewed_plan(root: Path, commit: str, content: PlanContent) -> None:
    """Write the plan as the note of a commit; an earlier one is replaced. Raises AssayError if git refuses it."""
    text = f"{PLAN_TRAILER}: {content.digest}\n\n{json.dumps(content.as_json(), ensure_ascii=False)}\n"
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
