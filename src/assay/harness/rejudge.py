"""Judges a stored run again: by its own specs, which must come to the same in every byte, or by others.

Nothing is recorded: what comes out lies in a temporary folder, for as long as somebody looks at it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from assay.fleet.git import commit_of
from assay.fleet.load import load_fleet
from assay.harness.begun import content_hash, versions
from assay.harness.far import Far
from assay.harness.order import Order
from assay.harness.processes import Processes
from assay.harness.rejudge_inputs import lay_out_commit, lay_out_evidence
from assay.harness.results.same import Sameness, sameness
from assay.harness.run import Means, validate
from assay.harness.shards import Shard
from assay.harness.store.read import Stored
from assay.harness.suites import JUDGED_AGAIN
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.outcome import Run

HERE = "."
"""In place of a revision: the working folder as it is."""


@dataclass(frozen=True)
class Rejudged:
    """A run (`old`, its file) and what it came to when it was judged again (`new`) by the specs of `rev`.

    `itself` says that these are the specs that it was judged by; `programs` what judges otherwise than it did then.
    """

    old: Path
    new: Path
    rev: str
    itself: bool
    same: Sameness
    programs: tuple[str, ...]


class Then:
    """The clock of a run: it stands at the time when that began, so that nothing expires which had not expired."""

    def __init__(self, at: str) -> None:
        self._at = datetime.fromisoformat(at)

    def now(self) -> datetime:
        """Return the time of the run."""
        return self._at

    def sleep(self, seconds: float) -> None:
        """Do nothing, as this time does not pass."""


class Again(Processes):
    """Processes that know only what the ledger knew before a run."""

    def __init__(self, jobs: int, run: str) -> None:
        super().__init__(jobs)
        self._run = run

    def start(self, shards: Sequence[Shard], deadline_s: float) -> None:
        """Begin with the first; the others follow as these end."""
        bound = {JUDGED_AGAIN: self._run}
        super().start([replace(one, environment={**one.environment, **bound}) for one in shards], deadline_s)


@contextmanager
def rejudged(
    root: Path,
    file: Path,
    store: Path,
    rev: str = "",
    *,
    ledger: str = "",
    jobs: int = 1,
    progress: Callable[[Far], None] | None = None,
) -> Iterator[Rejudged]:
    """Judge the run in `file` again, on the evidence in `store`, with passes from `ledger` (path or URL).

    `rev` is a commit, HERE for the folder `root` as it is, "" for the commit that the run was judged by. Raises Trouble
    where the run does not follow from a commit, or where there is nothing to judge. `progress` hears how far it is.
    """
    with Stored.open(file) as stored:
        order, documents = Order.of(stored), stored.documents()
        about = stored.about
    with tempfile.TemporaryDirectory(prefix="assay-rejudge-") as scratch:
        home = Path(scratch)
        fleet = _fleet(root, order, rev, home / "fleet")
        evidence = lay_out_evidence(order.evidence, store, {name: one[0] for name, one in documents.items()}, home)
        result = validate(
            fleet,
            evidence,
            nodes=order.run.nodes,
            phases=order.run.phases,
            reports=home / "reports",
            ledger=None,
            clock=Then(order.run.at),
            extra=order.extra,
            means=Means(Again(jobs, order.run.id), progress=progress, baseline=ledger),
        )
        result.stored.close()
        new = result.stored.path
        told = "the working folder" if rev == HERE else rev or f"commit {order.run.spec_commit[:12]}"
        itself = not rev or (rev != HERE and commit_of(root, rev) == order.run.spec_commit and not order.run.dirty)
        yield Rejudged(file, new, told, itself, sameness(file, new), tuple(_programs(about)))


def _fleet(root: Path, order: Order, rev: str, into: Path) -> Fleet:
    """Return the fleet of a revision, laid out in a folder. Raises Trouble."""
    if rev == HERE:
        return load_fleet(root)
    if not rev:
        _must_follow_from_a_commit(order.run)
    lay_out_commit(root, commit_of(root, rev or order.run.spec_commit), into)
    if not rev and content_hash(into / "suites") != order.run.suite_hash:
        raise _not_of_a_commit(order.run, "files in suites/ that git does not keep")
    return load_fleet(into)


def _must_follow_from_a_commit(run: Run) -> None:
    if run.dirty or not run.spec_commit:
        raise _not_of_a_commit(run, "changes that were not committed" if run.dirty else "a folder without git")


def _not_of_a_commit(run: Run, what: str) -> Trouble:
    fix = "`--spec .` judges its evidence by the folder as it is now, `--spec REV` by a commit"
    return Trouble(f"run {run.id} was judged with {what}, so no commit gives it again", fix=fix)


def _programs(about: dict[str, str]) -> Iterator[str]:
    """Yield what judged then in another version than now."""
    for name, version in versions().items():
        if about.get(name, version) != version:
            yield f"{name} was {about[name]}, is {version}"
