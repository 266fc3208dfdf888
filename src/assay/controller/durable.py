"""What carries an effect across a killed process: a DBOS workflow per effect, in SQLite beside the ledger.

The ledger is the truth about what was meant and what was proved; DBOS only remembers which step comes next and
takes it up again at the next launch. Importing this module imports DBOS (about 0.5 s), so import it late.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from dbos import DBOS, DBOSConfig, SetWorkflowID

from assay.actions.action import Context, Intent
from assay.actions.catalogue import action
from assay.controller import effect as steps

_at_work: list[Context] = []
UNFINISHED = ["PENDING", "ENQUEUED"]


@contextmanager
def durable(ctx: Context) -> Iterator[list[str]]:
    """Launch DBOS for one pass; yield the ids of the effects that an earlier process left unfinished.

    Those are already being carried on when this yields; `wait_for` them before deciding anything. The names of
    application version and executor are fixed: whoever works on this ledger next takes up what was left.
    """
    settings: DBOSConfig = {
        "name": "assay",
        "system_database_url": f"sqlite:///{ctx.home / 'dbos.sqlite'}",
        "application_version": "1",
        "executor_id": "assay",
        "log_level": "CRITICAL",
        "enable_otlp": False,
    }
    _at_work.append(ctx)
    DBOS(config=settings)
    try:
        DBOS.launch()
        yield [found.workflow_id for found in DBOS.list_workflows(status=UNFINISHED)]
    finally:
        DBOS.destroy()
        _at_work.remove(ctx)


def wait_for(workflow: str) -> None:
    """Wait until a workflow that was taken up again has ended."""
    DBOS.retrieve_workflow(workflow).get_result(polling_interval_sec=0.1)


def carry(intent: Intent, attempt: int = 1) -> None:
    """Carry one effect to its end, or as far as it gets. Attempts after the first continue an open one."""
    workflow = intent.effect if attempt == 1 else f"{intent.effect}.{attempt}"
    wish = {name: getattr(intent, name) for name in ("effect", "action", "node", "decision", "reason", "params")}
    with SetWorkflowID(workflow):
        _carry(json.dumps(wish, default=dict))


def attempts(effect: str) -> int:
    """Return how many times an effect has been carried so far."""
    return len(DBOS.list_workflows(workflow_id_prefix=effect))


@DBOS.workflow(name="effect")
def _carry(wish: str) -> None:
    _begin(wish)
    _prove(wish, _bring_about(wish))


@DBOS.step(name="begin")
def _begin(wish: str) -> None:
    _journalled(wish)


@DBOS.step(name="bring about")
def _bring_about(wish: str) -> str:
    intent = _journalled(wish)
    return steps.bring_about(_at_work[-1], action(intent.action), intent)


@DBOS.step(name="prove")
def _prove(wish: str, wrong: str) -> None:
    intent = _journalled(wish)
    steps.prove(_at_work[-1], action(intent.action), intent, wrong)


def _journalled(wish: str) -> Intent:
    """Return the intent as the ledger has it, with what was true before; journal it where it has none yet."""
    intent = Intent(**json.loads(wish))
    return steps.begin(_at_work[-1], action(intent.action), intent)
