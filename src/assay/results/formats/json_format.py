"""A run's results as one JSON document, written as it is read.

A run's outcomes as JSON, a line each, as they are read: a million of them need no memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from assay.results.comparison.comparison_summary import RunDifferences
from assay.results.comparison.run_comparison import CHANGE_KINDS
from assay.results.run_summary import RunSummary
from assay.results.store.schema import VERDICTS

ENCODE_JSON = json.JSONEncoder(ensure_ascii=False).encode


def format_json(result: RunSummary) -> Iterator[str]:
    """Yield a run: `run`, `ended`, `remark` (why it is not to be relied on, or ""), `counts`, `deciding`, `outcomes`.

    `deciding` is how many failures and errors count.
    """
    about = {
        "run": asdict(result.run),
        "ended": result.ended,
        "remark": result.remark,
        "counts": {verdict: result.counts[verdict] for verdict in VERDICTS},
        "deciding": sum(result.deciding.values()),
    }
    yield from _document(about, "outcomes", (one.as_json() for one in result.outcomes()))


def format_json_comparison(found: RunDifferences) -> Iterator[str]:
    """Yield a comparison: both runs, counts by kind, what appeared and vanished, flaps, movements, every change."""
    comparison = found.comparison
    about = {
        "old": asdict(found.old),
        "new": asdict(found.new),
        "counts": {kind: comparison.counts[kind] for kind in CHANGE_KINDS},
        "deciding": {kind: comparison.deciding[kind] for kind in CHANGE_KINDS},
        "worse": comparison.worse,
        "both": comparison.both,
        "apart": {"old": comparison.apart[0], "new": comparison.apart[1]},
        "checks": {"appeared": comparison.appeared, "vanished": comparison.vanished},
        "nodes": {"appeared": comparison.nodes_appeared, "vanished": comparison.nodes_vanished},
        "flapping": [asdict(one) for one in found.flaky],
        "moved": [asdict(one) for one in found.shifted],
    }
    yield from _document(about, "changes", (asdict(one) for one in comparison.changes()))


def _document(about: dict[str, Any], name: str, entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a document with one long list as its last entry, a line for each entry of that."""
    yield f"{ENCODE_JSON(about)[:-1]}, {ENCODE_JSON(name)}: ["
    comma = ""
    for entry in entries:
        yield comma + ENCODE_JSON(entry)
        comma = ", "
    yield "]}"


def format_jsonl(result: RunSummary) -> Iterator[str]:
    """Yield a line for each outcome; `run` says of which run."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    run = result.run.id
    for outcome in result.outcomes():
        yield encode({"run": run, **outcome.as_json()})
