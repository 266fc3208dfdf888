"""What was declared at a commit: its files, and what the fleet's outcomes must have been judged by.

The latter is kept for the fleet that was asked for last: all suites are read to find it, which takes a tenth of a
second, and a page explains many nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.declare.repository.git import DECLARED_FOLDERS, run_git
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry

if TYPE_CHECKING:
    from assay.declare.spec_values_read_by_checks import JudgingHashes
    from assay.model.fleet import Fleet


_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_PLACE = re.compile(r"^([\w./-]+\.ya?ml|[\w./-]+\.py):(\d+)\b")
MAX_BYTES = 1024 * 1024


@frozen
class SpecPlace:
    """A line of a file below the fleet's root."""

    path: str
    line: int


def parse_place(text: str) -> SpecPlace | None:
    """Return the place with which a rule or the source of a limit begins, such as `specs/a.yaml:41 name`."""
    match = _PLACE.match(text)
    return SpecPlace(match[1], int(match[2])) if match and is_shown(match[1]) else None


def is_shown(path: str) -> bool:
    """Whether a path is below a declared folder, and names no other place."""
    parts = path.split("/")
    return parts[0] in DECLARED_FOLDERS and not {"", ".", ".."} & set(parts)


def find_commit_at(adopted: Iterable[LedgerEntry], at: str, otherwise: str) -> str:
    """Return the commit to which the fleet was brought at a time, by entries in order; `otherwise` if none says."""
    before = [CommitAdoptedEntry.read(entry).commit for entry in adopted if entry.at <= at]
    return before[-1] if before else otherwise


def read_spec_lines(root: Path, commit: str, path: str) -> list[str] | None:
    """Return the lines of a file at a commit; None if there is no such file, or it is not one that may be shown."""
    if not _COMMIT.fullmatch(commit) or not is_shown(path):
        return None
    try:
        run = run_git(root, "show", "--no-textconv", f"{commit}:{path}")
    except AssayError:
        return None
    if run.returncode or len(run.stdout) > MAX_BYTES:
        return None
    return run.stdout.decode(errors="replace").splitlines()


Kept = TypeVar("Kept")


class LastFleetCache(Generic[Kept]):
    """Keeps what `make` gives for one fleet. A fleet that was read again is another one. Safe for threads."""

    def __init__(self, make: Callable[[Fleet], Kept]) -> None:
        self._make = make
        self._kept: tuple[Fleet, Kept] | None = None

    def find(self, fleet: Fleet) -> Kept:
        """Return what belongs to a fleet."""
        kept = self._kept
        if kept is None or kept[0] is not fleet:
            self._kept = kept = fleet, self._make(fleet)
        return kept[1]


def read_judging_hashes(fleet: Fleet) -> JudgingHashes:
    """Return the hashes of a fleet, with those of its cables."""
    from assay.declare.spec_values_read_by_checks import JudgingHashes
    from assay.fabric.design.node_cables import digest_node_cables

    return JudgingHashes(fleet, digest_node_cables)


JUDGING_HASHES = LastFleetCache(read_judging_hashes)
