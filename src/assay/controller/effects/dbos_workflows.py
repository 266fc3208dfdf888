"""What carries an effect across a killed process: a DBOS workflow for each, in queues that pace them.

Its data lies in SQLite in `.assay/`, or in a schema of its own beside a ledger on PostgreSQL, where all controllers
work on the same queues. The ledger is the truth about what was meant and what was proved; DBOS only remembers what is
to be carried and how far it is. Importing this module imports DBOS (about 0.4 s), so import it late.

What the engine may forget: workflows that ended long ago. What they carried is in the ledger for ever.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from sqlalchemy.exc import SQLAlchemyError

from assay.actions.action import ActionContext, EffectIntent, load_action
from assay.controller.background_worker import IntervalThrottle
from assay.controller.effects import effect_steps as steps
from assay.controller.effects.workflow_queues import (
    QUEUE_POLL_S,
    QueueLimits,
    find_engine_stack,
    format_partition_key,
    format_queue_name,
)
from assay.controller.rack_leases import list_live_controllers
from assay.ledger.leases_and_locks import current_process
from assay.ledger.store import Ledger, find_server_url, is_shared
from assay.model.errors import AssayError

WORKFLOW_RETENTION = timedelta(days=30)
"""Our own choice: how long somebody may want to see how often the engine took an effect up, and whose it was."""
RETENTION_INTERVAL_S = 600.0
"""How often it is time to forget, in real seconds."""
DELETE_BATCH_SIZE = 1000
"""How many are forgotten at a time, so that nobody who acts waits for it."""
ENDED_STATUSES = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]


def delete_old_workflows(ledger: Ledger) -> int:
    """Forget workflows that have ended and were begun long ago, by the machine's clock; return how many.

    Of the controllers of a ledger one does so at a time.
    """
    begun_by = (datetime.now(UTC) - WORKFLOW_RETENTION).isoformat()
    if not _find_old_workflows(begun_by):
        return 0
    with ledger.exclusive_section("forgetting"):
        found = _find_old_workflows(begun_by)
        DBOS.delete_workflows(found)
    return len(found)


def _find_old_workflows(begun_by: str) -> list[str]:
    found = DBOS.list_workflows(
        status=ENDED_STATUSES, end_time=begun_by, limit=DELETE_BATCH_SIZE, load_input=False, load_output=False
    )
    return [one.workflow_id for one in found]


_contexts: list[ActionContext] = []
_registered_limits: set[QueueLimits] = set()
_start_lock = threading.Lock()
_stopping = threading.Event()
_throttle = IntervalThrottle()
DBOS_SCHEMA = "assay_dbos"
STOP_CHECK_S = 0.5
Result = TypeVar("Result")
UNFINISHED_STATUSES = ["PENDING", "ENQUEUED", "DELAYED"]


@contextmanager
def hold_engine(ctx: ActionContext, paces: Collection[QueueLimits]) -> Iterator[None]:
    """Have DBOS run while the block lasts, and longer where somebody keeps it (`keep.keeping`).

    What a controller that no longer lives was carrying is taken up again: by this or by another one.
    """
    stack = find_engine_stack()
    with _start_lock:
        if _contexts:
            _contexts[0] = ctx
            _register_queues(paces)
            resume_orphaned_workflows(ctx.ledger)
            _delete_old_now_and_then(ctx.ledger)
        elif stack:
            stack.enter_context(_launch_engine(ctx, paces))
    if stack or _contexts:
        yield
    else:
        with _launch_engine(ctx, paces):
            yield


@contextmanager
def _launch_engine(ctx: ActionContext, paces: Collection[QueueLimits]) -> Iterator[None]:
    settings: DBOSConfig = {
        "name": "assay",
        "system_database_url": _find_database(ctx),
        "dbos_system_schema": DBOS_SCHEMA,
        "application_version": "1",  # whoever works on this ledger next takes up what was left
        "executor_id": current_process(),
        "log_level": "CRITICAL",
        "enable_otlp": False,
    }
    _contexts.append(ctx)
    _stopping.clear()
    DBOS(config=settings)
    try:
        _launch_dbos()
        _register_queues(paces)
        resume_orphaned_workflows(ctx.ledger)
        _delete_old_now_and_then(ctx.ledger)
        yield
    finally:
        _stopping.set()
        DBOS.destroy()
        _contexts.clear()
        _registered_limits.clear()
        _throttle.reset_all()


def _find_database(ctx: ActionContext) -> str:
    return find_server_url(ctx.ledger) if is_shared(ctx.ledger) else f"sqlite:///{ctx.home / 'dbos.sqlite'}"


@contextmanager
def _translate_database_errors() -> Iterator[None]:
    """Turn what the engine's database says into Trouble for a person; the ledger's password is not in it."""
    try:
        yield
    except SQLAlchemyError as error:
        raise AssayError(
            f"effects cannot be carried: {getattr(error, 'orig', error)}",
            where=f"the engine's own tables ({DBOS_SCHEMA} beside a ledger on PostgreSQL, else .assay/dbos.sqlite)",
            fix="it needs a database that answers, where the ledger's user may make a schema",
        ) from error


@_translate_database_errors()
def _launch_dbos() -> None:
    DBOS.launch()


@_translate_database_errors()
def _register_queues(paces: Collection[QueueLimits]) -> None:
    """Give each pool its queue, as the policy that is read now paces it."""
    for pace in set(paces) - _registered_limits:
        DBOS.register_queue(
            pace.queue,
            global_concurrency=pace.pool_at_once,
            partition_concurrency=pace.rack_at_once,
            limiter={"limit": pace.per_minute, "period": 60.0},
            polling_interval_sec=QUEUE_POLL_S,
            on_conflict="always_update",
        )
        _registered_limits.add(pace)


@_translate_database_errors()
def resume_orphaned_workflows(ledger: Ledger) -> None:
    """Put what a controller that no longer lives was carrying back into its queue, once over all controllers."""
    if not _find_orphaned_workflows(ledger):
        return
    with ledger.exclusive_section("taking up"):
        for workflow, queue in _find_orphaned_workflows(ledger):
            DBOS.resume_workflow(workflow, queue_name=queue)


@_translate_database_errors()
def _delete_old_now_and_then(ledger: Ledger) -> None:
    """Let go of what ended long ago, now and then."""
    if _throttle.is_due("forget", RETENTION_INTERVAL_S):
        delete_old_workflows(ledger)


def _find_orphaned_workflows(ledger: Ledger) -> list[tuple[str, str | None]]:
    begun = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
    alive = list_live_controllers(ledger) if begun else set()
    return [(found.workflow_id, found.queue_name) for found in begun if found.executor_id not in alive]


@_translate_database_errors()
def find_running_workflow(effect: str) -> str:
    """Return the workflow that carries an effect at this time, "" where none does."""
    found = DBOS.list_workflows(
        workflow_id_prefix=effect, status=UNFINISHED_STATUSES, load_input=False, load_output=False
    )
    return found[0].workflow_id if found else ""


@_translate_database_errors()
def enqueue_effect(ctx: ActionContext, intent: EffectIntent) -> str:
    """Queue an effect, to be carried as far as it gets; return its workflow."""
    workflow = _next_workflow_id(intent.effect)
    wish = {name: getattr(intent, name) for name in ("effect", "action", "node", "decision", "reason", "params")}
    node = ctx.fleet.nodes[intent.node]
    with SetWorkflowID(workflow), SetEnqueueOptions(queue_partition_key=format_partition_key(node)):
        DBOS.enqueue_workflow(format_queue_name(node.pool), _effect_workflow, json.dumps(wish, default=dict))
    return workflow


def _next_workflow_id(effect: str) -> str:
    """Return the name of an effect's next workflow; the first ones may have been forgotten."""
    before = DBOS.list_workflows(workflow_id_prefix=effect, load_input=False, load_output=False)
    numbers = [int(one.workflow_id.partition(".")[2] or 1) for one in before]
    return f"{effect}.{max(numbers) + 1}" if numbers else effect


@_translate_database_errors()
def find_ended_workflows(workflows: Collection[str]) -> set[str]:
    """Return which of these workflows have ended, well or not."""
    asked = list(workflows)
    going_on = DBOS.list_workflows(workflow_ids=asked, status=UNFINISHED_STATUSES, load_input=False, load_output=False)
    return set(asked) - {one.workflow_id for one in going_on}


def wait_for_any_workflow(ctx: ActionContext, workflows: Collection[str]) -> set[str]:
    """Wait until at least one of these workflows has ended; return those that have.

    One whose controller dies meanwhile is taken up again.
    """
    looks = 0
    while not (over := find_ended_workflows(workflows)):
        time.sleep(QUEUE_POLL_S / 2)
        looks += 1
        if looks % 20 == 0:
            resume_orphaned_workflows(ctx.ledger)
    return over


@DBOS.workflow(name="effect")
def _effect_workflow(wish: str) -> None:
    _verify_step(wish, _run_step(wish, _begin_step(wish)))


@DBOS.step(name="begin")
def _begin_step(wish: str) -> str:
    """Return which controller began this attempt: one that takes it up later must not take the deed for undone."""
    _journal_intent(wish)
    return current_process()


@DBOS.step(name="bring about")
def _run_step(wish: str, begun_by: str) -> steps.AttemptResult:
    intent, taken_up = _journal_intent(wish), begun_by != current_process()
    return _run_detached(lambda: steps.run_action(_contexts[-1], load_action(intent.action), intent, taken_up=taken_up))


@DBOS.step(name="prove")
def _verify_step(wish: str, deed: steps.AttemptResult) -> None:
    intent = _journal_intent(wish)
    _run_detached(lambda: steps.verify_effect(_contexts[-1], load_action(intent.action), intent, deed))


def _run_detached(work: Callable[[], Result]) -> Result:
    """Do what may take hours in a thread that ends with its process: who stops a controller waits for none of it.

    What is cut off so is as if the process was killed: the ledger has it open, and the next controller goes on.
    """
    answer: Future[Result] = Future()

    def do() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # it is raised again where somebody waits for it
            answer.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    while not wait([answer], STOP_CHECK_S).done:
        if _stopping.is_set():
            raise EngineStopped
    return answer.result()


class EngineStopped(Exception):
    """This controller stops before an effect has ended."""


def _journal_intent(wish: str) -> EffectIntent:
    """Return the intent as the ledger has it, with what was true before; journal it where it has none yet."""
    intent = EffectIntent(**json.loads(wish))
    return steps.journal_intent(_contexts[-1], load_action(intent.action), intent)
