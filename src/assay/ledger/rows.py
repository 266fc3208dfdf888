"""How the nouns become rows, and rows become nouns again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping

from assay.ledger import tables
from assay.model.entry import Entry
from assay.model.outcome import Run

Plain = dict[str, Any]
_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def of_entry(entry: Entry) -> Plain:
    """Return the row of an entry; the ledger gives `seq`."""
    body = _json(entry.body)
    return {"id": entry.id, "at": entry.at, "kind": entry.kind, "node": entry.node, "body": body}


ENTRY = tuple(tables.entries.c[name] for name in ("id", "at", "kind", "node", "body", "seq"))
"""The columns of which `entry` makes one."""


def entry(row: Sequence[Any]) -> Entry:
    """Return the entry of a row of `ENTRY`. Who begins reads the whole history, so this is to be cheap."""
    id_, at, kind, node, body, seq = row
    return Entry(id_, at, kind, node, json.loads(body), seq)


def of_run(run: Run) -> Plain:
    """Return the row of a run."""
    plain = {name: getattr(run, name) for name in Run.__slots__}
    return {**plain, "phases": json.dumps(run.phases), "nodes": json.dumps(run.nodes)}


def run(row: RowMapping) -> Run:
    """Return the run of a row."""
    plain = {name: row[name] for name in Run.__slots__}
    lists = {name: tuple(json.loads(row[name])) for name in ("phases", "nodes")}
    return Run(**{**plain, **lists})
