"""The queues of effects, how long the engine that works on them keeps running, and how many workflows wait in them.

Each pool has a queue in which each rack is a partition; the policy's limits pace it over all controllers of a ledger. A
rack that two pools share counts in both. This module imports nothing of DBOS, which takes 0.4 s to import: it counts by
reading DBOS' table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from assay.act.actions.action import ActionContext
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

DBOS_SCHEMA, DBOS_FILE = "assay_dbos", "dbos.sqlite"
"""Where DBOS keeps its tables: a schema beside a ledger on PostgreSQL, else a file in `.assay/`."""
QUEUE_POLL_S, LOOP_QUEUE_POLL_S = 0.2, 0.5
"""Seconds between two looks into a queue, of a single round and of a loop. One look costs about 2.5 ms of CPU time."""
_engine_stacks: list[ExitStack] = []


@contextmanager
def keep_engine_running() -> Iterator[None]:
    """Keep an engine that starts inside this block running until the block ends."""
    with ExitStack() as stack:
        _engine_stacks.append(stack)
        try:
            yield
        finally:
            _engine_stacks.remove(stack)


def find_engine_stack() -> ExitStack | None:
    """Return the stack of the innermost `keep_engine_running`, None outside of one."""
    return _engine_stacks[-1] if _engine_stacks else None


@frozen
class QueueLimits:
    """A pool's queue: how many effects run at once in the pool and in a rack, and how many may start in a minute."""

    queue: str
    pool_at_once: int
    rack_at_once: int
    per_minute: int


def list_queue_limits(fleet: Fleet, policy: LifecyclePolicy) -> list[QueueLimits]:
    """Return the queue of every pool."""
    limits = policy.limits
    at_once = limits.effects_at_once
    pools = sorted({node.pool for node in fleet.nodes.values()})
    return [
        QueueLimits(format_queue_name(pool), at_once.pool, min(at_once.rack, at_once.pool), limits.per_minute)
        for pool in pools
    ]


def format_queue_name(pool: str) -> str:
    """Return the name of a pool's queue."""
    return f"effects {pool}"


def format_partition_key(node: Node) -> str:
    """Return a node's partition in its pool's queue."""
    return f"{node.site}/{node.rack}"


CONNECT_TIMEOUT_S = 5


@frozen
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
    columns = "coalesce(queue_name, 'none'), status, count(*), min(created_at)"
    unfinished = "status IN ('PENDING', 'ENQUEUED', 'DELAYED')"
    return f"SELECT {columns} FROM {table} WHERE {unfinished} GROUP BY queue_name, status"  # noqa: S608 — names of our own
