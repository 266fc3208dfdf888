"""Reads the public sets of failures: InfiniteHBD-Trace (a site's nodes) and TitanGPULife (a machine's GPUs).

None is shipped. `fault_trace.json` is from github.com/stepfun-ai/InfiniteHBD-Trace (Apache-2.0), or a CSV with the
columns `node_id, event_time, event_type, Class`. `gc_full.csv` and `gc_summary_loc.csv` are from
github.com/olcf/TitanGPULife, which has no licence and asks to be cited: Ostrouchov and others, GPU Lifetimes on Titan
Supercomputer, SC 2020.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from assay.trends.parts.part_stays import FailedPart, PartStay
from assay.trends.parts.service_returns import ServiceReturn

TRACE_FILES = ("fault_trace.json", "fault_trace.csv")
TITAN_FILES = ("gc_full.csv", "gc_summary_loc.csv")
TITAN_PLACE = re.compile(r"c(\d+-\d+)c(\d)s(\d)n(\d)")
DAY_S = 86_400


class NodeTrace(NamedTuple):
    """When nodes failed and came back, in days since the first event."""

    failures: list[FailedPart]
    returns: list[ServiceReturn]


class TitanLives(NamedTuple):
    """Where GPUs were, and when they failed, in days since 1970. A position is cage and node; a rack, a cabinet."""

    stays: list[PartStay]
    failures: list[FailedPart]


def read_trace(folder: Path) -> NodeTrace | None:
    """Return the trace of nodes, None where there is none."""
    path = next((folder / name for name in TRACE_FILES if (folder / name).exists()), None)
    if path is None:
        return None
    failures, returns = [], []
    for event in _list_events(path):
        node, at, what = str(event["node_id"]), float(event["event_time"]), str(event["Class"])
        if event["event_type"] == "fault_start":
            failures.append(FailedPart(at, node, "", what))
        else:
            returns.append(ServiceReturn(at, node, "", what))
    return NodeTrace(sorted(failures), sorted(returns))


def _list_events(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as lines:
            yield from csv.DictReader(lines)
        return
    for event in json.loads(path.read_text(encoding="utf-8")):
        yield {**event, "Class": event["fault_type"]["Class"]}


def read_titan(folder: Path) -> TitanLives | None:
    """Return the stays and failures of GPUs, None where there are none."""
    full, summary = (folder / name for name in TITAN_FILES)
    if not (full.exists() and summary.exists()):
        return None
    with summary.open(newline="", encoding="utf-8") as lines:
        batches = {row["SN"]: row["batch"] for row in csv.DictReader(lines)}
    stays, failures = [], []
    with full.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["event"]:
                failures.append(FailedPart(_parse_day(row["remove"]), row["location"], "gpu", row["event"]))
            if row["insert"]:
                stays.append(_make_stay(row, batches[row["SN"]]))
    return TitanLives(stays, sorted(failures))


def _make_stay(row: dict[str, str], batch: str) -> PartStay:
    found = TITAN_PLACE.fullmatch(row["location"])
    assert found is not None, row["location"]
    cabinet, cage, _, node = found.groups()
    traits = ("gpu", row["SN"], "k20x", batch, f"c{cabinet}", f"cage {cage}, node {node}")
    return PartStay(row["location"], "gpu", *traits, _parse_day(row["insert"]), _parse_day(row["remove"]))


def _parse_day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() / DAY_S
