"""A run's results as one JSON document, written as it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from assay.harness.results.compare import KINDS
from assay.harness.results.differences import Differences
from assay.harness.results.result import Result
from assay.harness.store.tables import VERDICTS

ENCODE = json.JSONEncoder(ensure_ascii=False).encode


def json_document(result: Result) -> Iterator[str]:
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


def differences(found: Differences) -> Iterator[str]:
    """Yield a comparison: both runs, counts by kind, what appeared and vanished, flaps, movements, every change."""
    comparison = found.comparison
    about = {
        "old": asdict(found.old),
        "new": asdict(found.new),
        "counts": {kind: comparison.counts[kind] for kind in KINDS},
        "deciding": {kind: comparison.deciding[kind] for kind in KINDS},
        "worse": comparison.worse,
        "both": comparison.both,
        "apart": {"old": comparison.apart[0], "new": comparison.apart[1]},
        "checks": {"appeared": comparison.appeared, "vanished": comparison.vanished},
        "nodes": {"appeared": comparison.nodes_appeared, "vanished": comparison.nodes_vanished},
        "flapping": [asdict(one) for one in found.flapping],
        "moved": [asdict(one) for one in found.moved],
    }
    yield from _document(about, "changes", (asdict(one) for one in comparison.changes()))


def _document(about: dict[str, Any], name: str, entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a document with one long list as its last entry, a line for each entry of that."""
    yield f"{ENCODE(about)[:-1]}, {ENCODE(name)}: ["
    comma = ""
    for entry in entries:
        yield comma + ENCODE(entry)
        comma = ", "
    yield "]}"
