"""The runs that there are, a line each, newest first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.harness.results.lines import when
from assay.harness.results.result import WORDS, Result
from assay.harness.store.read import Stored
from assay.model.outcome import Run
from assay.model.spans import counted


@dataclass(frozen=True)
class Listed:
    """A run in the list, with how many outcomes of each verdict it has, and how many of them count."""

    run: Run
    ended: bool
    counts: dict[str, int]
    deciding: int


def as_text(runs: Sequence[Path], most: int) -> Iterator[str]:
    """Yield the first `most` of the runs as lines, and how many more there are."""
    for path in runs[:most]:
        one = _listed(path)
        said = [f"{count} {WORDS[verdict]}" for verdict, count in one.counts.items() if count]
        ended = "" if one.ended else ", has not ended"
        changes = "+changes" if one.run.dirty else ""
        phases = ",".join(one.run.phases) or "every phase"
        yield (
            f"{one.run.id}  {when(one.run.at)}  {one.run.who:<10} {(one.run.spec_commit[:12] or 'no commit') + changes}"
            f"  {counted(len(one.run.nodes), 'node')}, {phases}: {', '.join(said) or 'nothing judged'}{ended}"
        )
    if len(runs) > most:
        yield f"… and {len(runs) - most} older; `--most {len(runs)}` lists them all"


def as_json(runs: Sequence[Path], most: int) -> Iterator[str]:
    """Yield them as one JSON document."""
    yield json.dumps({"runs": [asdict(_listed(path)) for path in runs[:most]], "of": len(runs)}, ensure_ascii=False)


def _listed(path: Path) -> Listed:
    with Stored.open(path) as stored:
        result = Result(stored)
        counts = {verdict: result.counts[verdict] for verdict in WORDS}
        return Listed(stored.run, result.ended, counts, result.deciding.total())
