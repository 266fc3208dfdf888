"""How the nouns become rows, and rows become nouns again."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import RowMapping

from assay.model.entry import Entry
from assay.model.outcome import Run

Row = dict[str, Any]
_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def of_entry(entry: Entry) -> Row:
    """Return the row of an entry; the ledger gives `seq`."""
    body = _json(entry.body)
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
