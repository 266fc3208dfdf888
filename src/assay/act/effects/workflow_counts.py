"""Counts the workflows in DBOS' queues by reading its table, without importing DBOS or starting it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from assay.act.actions.action import ActionContext
from assay.act.effects.workflow_queues import DBOS_FILE, DBOS_SCHEMA

CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class WorkflowCount:
    """How many workflows of a queue have a status; the oldest was made at `oldest_s` (real seconds since 1970)."""

    queue: str
    status: str
    count: int
    oldest_s: float


def count_unfinished_workflows(context: ActionContext) -> list[WorkflowCount]:
    """Return the unfinished workflows by queue and status; none where DBOS never ran, or its tables do not answer."""
    rows = _read_server(context) if context.ledger.is_shared else _read_file(context.home / DBOS_FILE)
    return [WorkflowCount(queue, status, count, oldest_ms / 1000) for queue, status, count, oldest_ms in rows]


def _read_file(path: Path) -> list[Any]:
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=CONNECT_TIMEOUT_S)) as data:
            return data.execute(_make_query("workflow_status")).fetchall()
    except sqlite3.Error:
        return []


def _read_server(context: ActionContext) -> list[Any]:
    url = context.ledger.server_url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_TIMEOUT_S})
    try:
        with engine.connect() as connection:
            return list(connection.execute(text(_make_query(f"{DBOS_SCHEMA}.workflow_status"))).all())
    except SQLAlchemyError:
        return []
    finally:
        engine.dispose()


def _make_query(table: str) -> str:
    what = "coalesce(queue_name, 'none'), status, count(*), min(created_at)"
    unfinished = "status IN ('PENDING', 'ENQUEUED', 'DELAYED')"
    return f"SELECT {what} FROM {table} WHERE {unfinished} GROUP BY queue_name, status"  # noqa: S608 — names of our own
