"""How the nouns become rows, and rows become nouns again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping

from assay.model.entry import Entry
from assay.model.outcome import Measurement, Outcome, Recorded, Run

Row = dict[str, Any]


def of_entry(entry: Entry) -> Row:
    """Return the row of an entry; the ledger gives `seq`."""
    body = json.dumps(entry.body, sort_keys=True, ensure_ascii=False)
    return {"id": entry.id, "at": entry.at, "kind": entry.kind, "node": entry.node, "body": body}


def entry(row: RowMapping) -> Entry:
    """Return the entry of a row."""
    return Entry(row["id"], row["at"], row["kind"], row["node"], json.loads(row["body"]), row["seq"])


def of_run(run: Run) -> Row:
    """Return the row of a run."""
    plain = {name: getattr(run, name) for name in Run.__slots__}
    return {**plain, "phases": json.dumps(run.phases), "nodes": json.dumps(run.nodes)}


def run(row: RowMapping) -> Run:
    """Return the run of a row."""
    plain = {name: row[name] for name in Run.__slots__}
    lists = {name: tuple(json.loads(row[name])) for name in ("phases", "nodes")}
    return Run(**{**plain, **lists})


APART = ("phases", "measurements")
OF_REPORTS = ("known", "observed", "artefacts")
"""What a run says beside its outcomes; who decides asks the specs of the day for it."""
OUTCOME_PLAIN = tuple(name for name in Outcome.__slots__ if name not in (*APART, *OF_REPORTS))


def of_outcome(outcome: Outcome, run_seq: int, run_at: str) -> Row:
    """Return the row of an outcome of the run with number `run_seq`."""
    plain = {name: getattr(outcome, name) for name in OUTCOME_PLAIN}
    measured = seconds(outcome.evidence_at or run_at)
    return {**plain, "phases": json.dumps(outcome.phases), "run": run_seq, "measured_s": measured}


def of_measurement(measurement: Measurement, outcome_seq: int) -> Row:
    """Return the row of a measurement of the outcome with number `outcome_seq`."""
    return {**{name: getattr(measurement, name) for name in Measurement.__slots__}, "outcome": outcome_seq}


def recorded(row: RowMapping, measured: Iterable[RowMapping]) -> Recorded:
    """Return the outcome of a row (with its run's `run_id` and `run_at`) and the rows of its measurements."""
    plain = {name: row[name] for name in OUTCOME_PLAIN}
    numbers = tuple(Measurement(**{name: one[name] for name in Measurement.__slots__}) for one in measured)
    outcome = Outcome(**plain, phases=tuple(json.loads(row["phases"])), measurements=numbers)
    return Recorded(row["run_id"], row["run_at"], outcome)


def seconds(at: str) -> float:
    """Return an ISO 8601 time as seconds since 1970, so that times written differently still sort."""
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
