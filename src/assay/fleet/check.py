"""Finds every mistake in a fleet repository: what does not fit a schema, and what makes no sense."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.fleet.draft import Draft
from assay.fleet.problem import Problem
from assay.fleet.rules.book import rules


@dataclass(frozen=True)
class Report:
    """What was looked at, and what is wrong with it, in order of file and line."""

    problems: list[Problem]
    nodes: int
    specs: int

    @property
    def well(self) -> bool:
        """Whether nothing is wrong now; a notice tells of what will be."""
        return all(problem.severity == "notice" for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, as `assay check --format json` prints it."""
        return {"problems": [problem.as_json() for problem in self.problems], "nodes": self.nodes}


def examine(root: Path, now: datetime | None = None) -> Report:
    """Look at the repository at `root` as of `now` (the machine's own where none is given). Mistakes never raise."""
    draft = Draft(root.absolute(), now=now)
    found = list(draft.problems)
    for rule in rules().values():
        found += rule.problems(draft)
    return Report(sorted(set(found)), len(draft.hosts), len(draft.specs))


def problems(root: Path, now: datetime | None = None) -> list[Problem]:
    """Return every mistake in the repository at `root`, in order of file and line."""
    return examine(root, now).problems
