"""What a run was told to do, as its file says it: enough to go on with it, and to refuse where that is not possible."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.harness.begun import content_hash, versions
from assay.harness.store.read import Stored
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.outcome import Run

ENDED = "ended"
"""Says of a run that it came to its end: `whole`, or `in part` where shards were lost or late."""
WHOLE, IN_PART = "whole", "in part"
AGAIN = "begin a new run: assay validate"


@dataclass(frozen=True)
class Order:
    """One run, the folder of `evidence` that it judges, what pytest is told on top, and into how many shards it is cut.

    `specs` and `seen` are digests of the specs and of the evidence when it began, `typed` what a person asked for.
    """

    run: Run
    evidence: Path
    extra: tuple[str, ...]
    shards: int
    specs: str
    seen: str
    typed: str = ""

    @classmethod
    def given(cls, fleet: Fleet, run: Run, evidence: Path, extra: Sequence[str], shards: int, typed: str) -> Order:
        """Return the order of a new run."""
        return cls(run, evidence, tuple(extra), shards, _specs(fleet), _seen(fleet, evidence, run.nodes), typed)

    @classmethod
    def of(cls, stored: Stored) -> Order:
        """Return the order of a run that has begun. Raises Trouble for a file that no `assay validate` has made."""
        about = stored.about
        if "shards" not in about:
            raise Trouble("was not made by `assay validate`", where=str(stored.path), fix=AGAIN)
        extra = tuple(json.loads(about["extra"]))
        typed = about.get("selection", "")
        words = Path(about["evidence"]), extra, int(about["shards"]), about["specs"], about["seen"], typed
        return cls(stored.run, *words)

    def about(self) -> Mapping[str, str]:
        """Return the order for the run's file."""
        return {
            **versions(),
            "evidence": str(self.evidence),
            "extra": json.dumps(self.extra, ensure_ascii=False),
            "shards": str(self.shards),
            "specs": self.specs,
            "seen": self.seen,
            "selection": self.typed,
        }

    def must_still_hold(self, fleet: Fleet) -> None:
        """Raise Trouble where going on would judge by other specs, suites or evidence than the run began with."""
        now = {
            "the spec commit": (self.run.spec_commit, fleet.commit),
            "the specs": (self.specs, _specs(fleet)),
            "the suites": (self.run.suite_hash, content_hash(fleet.root / "suites")),
            "the evidence": (self.seen, _seen(fleet, self.evidence, self.run.nodes)),
        }
        for what, (then, found) in now.items():
            if then != found:
                was = f" from {then[:12]} to {found[:12]}" if what == "the spec commit" else ""
                raise Trouble(f"{what} changed{was} since run {self.run.id} began", fix=f"change it back, or {AGAIN}")


def _specs(fleet: Fleet) -> str:
    return content_hash(fleet.root / "inventory", fleet.root / "specs")


def _seen(fleet: Fleet, evidence: Path, nodes: Collection[str]) -> str:
    """Return a digest of which documents there are of these nodes, and of what is no node: each change makes a file."""
    chosen, summed = set(nodes), hashlib.sha256()
    for path in sorted(evidence.glob("*.json")):
        if (path.stem in chosen or path.stem not in fleet.nodes) and path.exists():
            about = path.stat()
            summed.update(f"{path.name} {about.st_mtime_ns} {about.st_size}\n".encode())
    return summed.hexdigest()
