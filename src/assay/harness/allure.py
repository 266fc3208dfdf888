"""Outcomes as Allure results: stable identities, and the labels that a fleet engineer filters by."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from assay.harness.told import plainly
from assay.model.fleet import Fleet
from assay.model.outcome import Measurement, Outcome, Run
from assay.model.subject import Subject

STATUS = {"pass": "passed", "fail": "failed", "error": "broken", "skip": "skipped"}


def labels(fleet: Fleet, node: str, subject: str, phases: Iterable[str], fault: str) -> Iterator[tuple[str, str]]:
    """Yield the labels of an outcome: pool, rack, node, every phase, fault class, commit of the specs."""
    place = fleet.nodes.get(node)
    parsed = Subject.parse(subject)
    yield "pool", place.pool if place else parsed.scope
    yield "rack", place.rack if place else parsed.name.removeprefix("rack-")
    yield "node", node or parsed.name
    for phase in phases:
        yield "phase", phase
    if fault:
        yield "fault", fault
    yield "spec", f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}"


def write_results(folder: Path, fleet: Fleet, told: Iterable[tuple[Run, Outcome]]) -> int:
    """Write one result file for each outcome, in the format that Allure 2 and 3 read; return how many."""
    folder.mkdir(parents=True)
    count = 0
    for run, outcome in told:
        (folder / f"{uuid.uuid4()}-result.json").write_text(json.dumps(result(fleet, run, outcome)))
        count += 1
    return count


def result(fleet: Fleet, run: Run, outcome: Outcome) -> dict[str, Any]:
    """Return the result of an outcome. Its identity is check and subject; nothing that varies is a parameter."""
    start = int(datetime.fromisoformat(run.at).timestamp() * 1000)
    module, _, function = outcome.check.partition("::")
    marks = [*labels(fleet, outcome.node, outcome.subject, outcome.phases, outcome.fault), ("run", run.id)]
    return {
        "uuid": str(uuid.uuid4()),
        "historyId": _md5(f"{outcome.check}[{outcome.subject}]"),
        "testCaseId": _md5(outcome.check),
        "fullName": outcome.check,
        "name": f"{function}[{outcome.subject}]",
        "titlePath": module.split("/"),
        "status": STATUS[outcome.verdict],
        "statusDetails": {"message": outcome.reason} if outcome.reason else {},
        "stage": "finished",
        "start": start,
        "stop": start + int(outcome.duration_s * 1000),
        "parameters": [{"name": "subject", "value": outcome.subject}],
        "labels": [{"name": name, "value": value} for name, value in marks],
        "steps": [_step(measurement, start) for measurement in outcome.measurements],
        "description": f"Evidence {outcome.evidence[:12]} of {outcome.evidence_at}" if outcome.evidence else "",
    }


def measured(measurement: Measurement) -> str:
    """Return a measurement as one line: what, how much, and the limit with its line."""
    low, high = measurement.at_least, measurement.at_most
    bounds = [f"at least {plainly(low)}"] if low is not None else []
    bounds += [f"at most {plainly(high)}"] if high is not None else []
    limit = f" ({' and '.join(bounds)}{'; ' if measurement.source else ''}{measurement.source})" if bounds else ""
    return f"{measurement.name} {plainly(measurement.value)} {measurement.unit}".rstrip() + limit


def _step(measurement: Measurement, at: int) -> dict[str, Any]:
    low, high, value = measurement.at_least, measurement.at_most, measurement.value
    held = (low is None or value >= low) and (high is None or value <= high)
    status = "passed" if held else "failed"
    return {"name": measured(measurement), "status": status, "stage": "finished", "start": at, "stop": at}


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
