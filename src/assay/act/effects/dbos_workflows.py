"""Runs effects as DBOS workflows, so that they are paced over all controllers and survive a killed one.

DBOS holds the queues, their limits and how far each workflow got: in `.assay/dbos.sqlite`, or in a schema of its own
beside a ledger on PostgreSQL. The ledger alone holds what was meant and what was verified, and when a failed attempt
is retried. What a step returns is plain JSON, so that a renamed class breaks no running workflow.
Importing this module imports DBOS (about 0.4 s), so import it late.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from sqlalchemy.exc import SQLAlchemyError

from assay.act.actions.action import ActionContext, EffectIntent, load_action
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects import effect_journal
from assay.act.effects.workflow_queues import (
    DBOS_FILE,
    DBOS_SCHEMA,
    LOOP_QUEUE_POLL_S,
    QUEUE_POLL_S,
    QueueLimits,
    find_engine_stack,
    format_partition_key,
    format_queue_name,
)
from assay.act.loop.background_worker import IntervalThrottle
from assay.act.loop.rack_leases import list_live_controllers
from assay.ledger.leases import current_process
from assay.ledger.store import Ledger
from assay.model.errors import AssayError

STOP_CHECK_S = 0.5
WORKFLOW_RETENTION = timedelta(days=30)
"""How long ended workflows stay, to show who ran an effect and how often. Our own choice: the ledger keeps effects."""
RETENTION_INTERVAL_S = 600.0
DELETE_BATCH_SIZE = 1000
ENDED_STATUSES = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
UNFINISHED_STATUSES = ["PENDING", "ENQUEUED", "DELAYED"]
Result = TypeVar("Result")


@contextmanager
def _translate_database_errors() -> Iterator[None]:
    """Turn an error of the engine's database into an AssayError, which never holds the ledger's password."""
    try:
        yield
    except SQLAlchemyError as error:
        raise AssayError(
            f"effects cannot be carried: {getattr(error, 'orig', error)}",
            where=f"the engine's own tables ({DBOS_SCHEMA} beside a ledger on PostgreSQL, else .assay/dbos.sqlite)",
            fix="it needs a database that answers, where the ledger's user may make a schema",
        ) from error


class _Engine:
    """The running engine: the context that its workflows use, and its queues. DBOS allows one in a process."""

    def __init__(self, context: ActionContext) -> None:
        self.context = context
        self.stopping = threading.Event()
        self._registered: set[QueueLimits] = set()
        self._throttle = IntervalThrottle()

    @_translate_database_errors()
    def prepare(self, context: ActionContext, limits: Collection[QueueLimits]) -> None:
        """Use the newest context and queue limits, take up the workflows of dead controllers, and forget old ones."""
        self.context = context
        for queue in set(limits) - self._registered:
            DBOS.register_queue(
                queue.queue,
                global_concurrency=queue.pool_at_once,
                partition_concurrency=queue.rack_at_once,
                limiter={"limit": queue.per_minute, "period": 60.0},
                polling_interval_sec=LOOP_QUEUE_POLL_S if find_engine_stack() else QUEUE_POLL_S,
                on_conflict="always_update",
            )
            self._registered.add(queue)
        resume_orphaned_workflows(context.ledger)
        if self._throttle.is_due("retention", RETENTION_INTERVAL_S):
            delete_old_workflows(context.ledger)


_engines: list[_Engine] = []
_start_lock = threading.Lock()


@contextmanager
def hold_engine(context: ActionContext, limits: Collection[QueueLimits]) -> Iterator[None]:
    """Run DBOS while the block lasts, or longer inside `keep_engine_running`."""
    stack = find_engine_stack()
    with _start_lock:
        if _engines:
            _engines[0].prepare(context, limits)
        elif stack:
            stack.enter_context(_launch_engine(context, limits))
    if stack or _engines:
        yield
    else:
        with _launch_engine(context, limits):
            yield


@contextmanager
def _launch_engine(context: ActionContext, limits: Collection[QueueLimits]) -> Iterator[None]:
    file = f"sqlite:///{context.home / DBOS_FILE}"
    settings: DBOSConfig = {
        "name": "assay",
        "system_database_url": context.ledger.server_url if context.ledger.is_shared else file,
        "dbos_system_schema": DBOS_SCHEMA,
        "application_version": "1",  # a new release takes up the workflows of the one before
        "executor_id": current_process(),
        "log_level": "CRITICAL",
        "enable_otlp": False,
        # Nobody is notified, and the end of the engine waits for it: a loop ends once, and each look costs CPU time.
        "notification_listener_polling_interval_sec": 1.0 if find_engine_stack() else 0.1,
    }
    engine = _Engine(context)
    _engines.append(engine)
    DBOS(config=settings)
    try:
        with _translate_database_errors():
            DBOS.launch()
        engine.prepare(context, limits)
        yield
    finally:
        engine.stopping.set()
        DBOS.destroy()
        _engines.clear()


@_translate_database_errors()
def resume_orphaned_workflows(ledger: Ledger) -> None:
    """Put workflows of dead controllers back into their queues, once over all controllers.

    DBOS recovers the workflows of an executor when that starts again. Ours have a new name each time, and on
    PostgreSQL another controller takes over, so the controllers' leases decide who is dead.
    """
    if not _find_orphaned_workflows(ledger):
        return
    with ledger.exclusive_section("taking up"):
        for workflow, queue in _find_orphaned_workflows(ledger):
            DBOS.resume_workflow(workflow, queue_name=queue)


def _find_orphaned_workflows(ledger: Ledger) -> list[tuple[str, str | None]]:
    running = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
    live = list_live_controllers(ledger) if running else set()
    return [(workflow.workflow_id, workflow.queue_name) for workflow in running if workflow.executor_id not in live]


@_translate_database_errors()
def delete_old_workflows(ledger: Ledger) -> int:
    """Delete some workflows that started before the retention and have ended; return how many.

    Time is this machine's. Of the controllers of a ledger, one deletes at a time.
    """
    started_before = (datetime.now(UTC) - WORKFLOW_RETENTION).isoformat()
    if not _find_old_workflows(started_before):
        return 0
    with ledger.exclusive_section("forgetting"):
        old = _find_old_workflows(started_before)
        DBOS.delete_workflows(old)
    return len(old)


def _find_old_workflows(started_before: str) -> list[str]:
    workflows = DBOS.list_workflows(
        status=ENDED_STATUSES, end_time=started_before, limit=DELETE_BATCH_SIZE, load_input=False, load_output=False
    )
    return [workflow.workflow_id for workflow in workflows]


@_translate_database_errors()
def find_running_workflows(effects: Collection[str]) -> dict[str, str]:
    """Return the unfinished workflow of each of these effects, by the effect's id. Effects without one are left out."""
    unfinished = DBOS.list_workflows(status=UNFINISHED_STATUSES, load_input=False, load_output=False)
    workflows = {workflow.workflow_id.partition(".")[0]: workflow.workflow_id for workflow in unfinished}
    return {effect: workflows[effect] for effect in effects if effect in workflows}


@_translate_database_errors()
def enqueue_effect(context: ActionContext, intent: EffectIntent) -> str:
    """Put an effect into the queue of its pool; return the id of its workflow: EFFECT, then EFFECT.2 and so on.

    The first ones may have been deleted. Two enqueued at the same moment get the same id, and so are one workflow.
    """
    before = DBOS.list_workflows(workflow_id_prefix=intent.effect, load_input=False, load_output=False)
    numbers = [int(workflow.workflow_id.partition(".")[2] or 1) for workflow in before]
    workflow = f"{intent.effect}.{max(numbers) + 1}" if numbers else intent.effect
    fields = {
        name: getattr(intent, name) for name in ("effect", "action", "node", "decision", "reason", "params", "named_by")
    }
    node = context.fleet.nodes[intent.node]
    with SetWorkflowID(workflow), SetEnqueueOptions(queue_partition_key=format_partition_key(node)):
        DBOS.enqueue_workflow(format_queue_name(node.pool), _effect_workflow, json.dumps(fields, default=dict))
    return workflow


@_translate_database_errors()
def find_ended_workflows(workflows: Collection[str]) -> set[str]:
    """Return which of these workflows have ended, with success or not."""
    ids = list(workflows)
    unfinished = DBOS.list_workflows(workflow_ids=ids, status=UNFINISHED_STATUSES, load_input=False, load_output=False)
    return set(ids) - {workflow.workflow_id for workflow in unfinished}


def wait_for_any_workflow(context: ActionContext, workflows: Collection[str]) -> set[str]:
    """Wait until at least one of these workflows has ended; return all that have.

    The workflows of a controller that dies meanwhile are taken up.
    """
    polls = 0
    while not (ended := find_ended_workflows(workflows)):
        time.sleep(QUEUE_POLL_S / 2)
        polls += 1
        if polls % 20 == 0:
            resume_orphaned_workflows(context.ledger)
    return ended


@DBOS.workflow(name="effect")
def _effect_workflow(intent_json: str) -> None:
    if begun_by := _begin_step(intent_json):
        _verify_step(intent_json, _run_step(intent_json, begun_by))


@DBOS.step(name="begin")
def _begin_step(intent_json: str) -> str:
    """Return the controller that begins this attempt, so that one that takes it up knows that it was begun before.

    Return "" if nothing may begin now: others closed the node while the effect was in its queue. A later pass tries.
    """
    if steps.must_wait_to_begin(_engines[0].context, EffectIntent(**json.loads(intent_json))):
        return ""
    _journal_intent(intent_json)
    return current_process()


@DBOS.step(name="bring about")
def _run_step(intent_json: str, begun_by: str) -> dict[str, Any]:
    """Return the fields of the attempt's AttemptResult."""
    intent, taken_up = _journal_intent(intent_json), begun_by != current_process()
    action, context = load_action(intent.action), _engines[0].context
    return asdict(_run_detached(lambda: steps.run_action(context, action, intent, taken_up=taken_up)))


@DBOS.step(name="prove")
def _verify_step(intent_json: str, attempt: dict[str, Any]) -> None:
    intent, result = _journal_intent(intent_json), steps.AttemptResult(**attempt)
    action, context = load_action(intent.action), _engines[0].context
    _run_detached(lambda: steps.verify_effect(context, action, intent, result))


def _journal_intent(intent_json: str) -> EffectIntent:
    """Return the intent as the ledger has it, with the facts before it; journal it where the ledger has none."""
    intent = EffectIntent(**json.loads(intent_json))
    return effect_journal.journal_intent(_engines[0].context, load_action(intent.action), intent)


def _run_detached(work: Callable[[], Result]) -> Result:
    """Run `work`, which may take hours, in a daemon thread, so that nobody who stops a controller waits for it.

    To be cut off is the same as to be killed: the effect stays open in the ledger, and the next controller goes on.
    """
    answer: Future[Result] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # raised again below
            answer.set_exception(error)

    stopping = _engines[0].stopping
    threading.Thread(target=run, daemon=True).start()
    while not wait([answer], STOP_CHECK_S).done:
        if stopping.is_set():
            raise EngineStopped
    return answer.result()


class EngineStopped(Exception):
    """This controller stops before an effect has ended."""
