"""What carries an effect across a killed process: a DBOS workflow for each, in queues that pace them.

Its data lies in SQLite in `.assay/`, or in a schema of its own beside a ledger on PostgreSQL, where all controllers
work on the same queues. The ledger is the truth about what was meant and what was proved; DBOS only remembers what is
to be carried and how far it is. Importing this module imports DBOS (about 0.4 s), so import it late.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from sqlalchemy.exc import SQLAlchemyError

from assay.actions.action import Context, Intent
from assay.actions.catalogue import action
from assay.controller.effects import effect as steps
from assay.controller.effects.bygone import EACH_S, forget
from assay.controller.effects.keep import kept
from assay.controller.effects.queues import LOOK_S, Pace, partition_of, queue_of
from assay.controller.share import living, me
from assay.controller.turns import Turns
from assay.ledger.store import Ledger
from assay.ledger.url import is_shared, server_of
from assay.model.errors import Trouble

_at_work: list[Context] = []
_paced: set[Pace] = set()
_starting = threading.Lock()
_leaving = threading.Event()
_turns = Turns()
SCHEMA = "assay_dbos"
LEFT_S = 0.5
Done = TypeVar("Done")
UNFINISHED = ["PENDING", "ENQUEUED", "DELAYED"]


@contextmanager
def durable(ctx: Context, paces: Collection[Pace]) -> Iterator[None]:
    """Have DBOS run while the block lasts, and longer where somebody keeps it (`keep.keeping`).

    What a controller that no longer lives was carrying is taken up again: by this or by another one.
    """
    stack = kept()
    with _starting:
        if _at_work:
            _at_work[0] = ctx
            _pace(paces)
            take_up(ctx.ledger)
            _forget(ctx.ledger)
        elif stack:
            stack.enter_context(_launched(ctx, paces))
    if stack or _at_work:
        yield
    else:
        with _launched(ctx, paces):
            yield


@contextmanager
def _launched(ctx: Context, paces: Collection[Pace]) -> Iterator[None]:
    settings: DBOSConfig = {
        "name": "assay",
        "system_database_url": _database(ctx),
        "dbos_system_schema": SCHEMA,
        "application_version": "1",  # whoever works on this ledger next takes up what was left
        "executor_id": me(),
        "log_level": "CRITICAL",
        "enable_otlp": False,
    }
    _at_work.append(ctx)
    _leaving.clear()
    DBOS(config=settings)
    try:
        _start()
        _pace(paces)
        take_up(ctx.ledger)
        _forget(ctx.ledger)
        yield
    finally:
        _leaving.set()
        DBOS.destroy()
        _at_work.clear()
        _paced.clear()
        _turns.forget()


def _database(ctx: Context) -> str:
    return server_of(ctx.ledger) if is_shared(ctx.ledger) else f"sqlite:///{ctx.home / 'dbos.sqlite'}"


@contextmanager
def _telling() -> Iterator[None]:
    """Turn what the engine's database says into Trouble for a person; the ledger's password is not in it."""
    try:
        yield
    except SQLAlchemyError as error:
        raise Trouble(
            f"effects cannot be carried: {getattr(error, 'orig', error)}",
            where=f"the engine's own tables ({SCHEMA} beside a ledger on PostgreSQL, else .assay/dbos.sqlite)",
            fix="it needs a database that answers, where the ledger's user may make a schema",
        ) from error


@_telling()
def _start() -> None:
    DBOS.launch()


@_telling()
def _pace(paces: Collection[Pace]) -> None:
    """Give each pool its queue, as the policy that is read now paces it."""
    for pace in set(paces) - _paced:
        DBOS.register_queue(
            pace.queue,
            global_concurrency=pace.pool_at_once,
            partition_concurrency=pace.rack_at_once,
            limiter={"limit": pace.per_minute, "period": 60.0},
            polling_interval_sec=LOOK_S,
            on_conflict="always_update",
        )
        _paced.add(pace)


@_telling()
def take_up(ledger: Ledger) -> None:
    """Put what a controller that no longer lives was carrying back into its queue, once over all controllers."""
    if not _left(ledger):
        return
    with ledger.exclusively("taking up"):
        for workflow, queue in _left(ledger):
            DBOS.resume_workflow(workflow, queue_name=queue)


@_telling()
def _forget(ledger: Ledger) -> None:
    """Let go of what ended long ago, now and then."""
    if _turns.is_time("forget", EACH_S):
        forget(ledger)


def _left(ledger: Ledger) -> list[tuple[str, str | None]]:
    begun = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
    alive = living(ledger) if begun else set()
    return [(found.workflow_id, found.queue_name) for found in begun if found.executor_id not in alive]


@_telling()
def under_way(effect: str) -> str:
    """Return the workflow that carries an effect at this time, "" where none does."""
    found = DBOS.list_workflows(workflow_id_prefix=effect, status=UNFINISHED, load_input=False, load_output=False)
    return found[0].workflow_id if found else ""


@_telling()
def carry(ctx: Context, intent: Intent) -> str:
    """Queue an effect, to be carried as far as it gets; return its workflow."""
    workflow = _unused(intent.effect)
    wish = {name: getattr(intent, name) for name in ("effect", "action", "node", "decision", "reason", "params")}
    node = ctx.fleet.nodes[intent.node]
    with SetWorkflowID(workflow), SetEnqueueOptions(queue_partition_key=partition_of(node)):
        DBOS.enqueue_workflow(queue_of(node.pool), _carry, json.dumps(wish, default=dict))
    return workflow


def _unused(effect: str) -> str:
    """Return the name of an effect's next workflow; the first ones may have been forgotten."""
    before = DBOS.list_workflows(workflow_id_prefix=effect, load_input=False, load_output=False)
    numbers = [int(one.workflow_id.partition(".")[2] or 1) for one in before]
    return f"{effect}.{max(numbers) + 1}" if numbers else effect


@_telling()
def ended(workflows: Collection[str]) -> set[str]:
    """Return which of these workflows have ended, well or not."""
    asked = list(workflows)
    going_on = DBOS.list_workflows(workflow_ids=asked, status=UNFINISHED, load_input=False, load_output=False)
    return set(asked) - {one.workflow_id for one in going_on}


def wait_for_any(ctx: Context, workflows: Collection[str]) -> set[str]:
    """Wait until at least one of these workflows has ended; return those that have.

    One whose controller dies meanwhile is taken up again.
    """
    looks = 0
    while not (over := ended(workflows)):
        time.sleep(LOOK_S / 2)
        looks += 1
        if looks % 20 == 0:
            take_up(ctx.ledger)
    return over


@DBOS.workflow(name="effect")
def _carry(wish: str) -> None:
    _prove(wish, _bring_about(wish, _begin(wish)))


@DBOS.step(name="begin")
def _begin(wish: str) -> str:
    """Return which controller began this attempt: one that takes it up later must not take the deed for undone."""
    _journalled(wish)
    return me()


@DBOS.step(name="bring about")
def _bring_about(wish: str, begun_by: str) -> steps.Deed:
    intent, taken_up = _journalled(wish), begun_by != me()
    return _apart(lambda: steps.bring_about(_at_work[-1], action(intent.action), intent, taken_up=taken_up))


@DBOS.step(name="prove")
def _prove(wish: str, deed: steps.Deed) -> None:
    intent = _journalled(wish)
    _apart(lambda: steps.prove(_at_work[-1], action(intent.action), intent, deed))


def _apart(work: Callable[[], Done]) -> Done:
    """Do what may take hours in a thread that ends with its process: who stops a controller waits for none of it.

    What is cut off so is as if the process was killed: the ledger has it open, and the next controller goes on.
    """
    answer: Future[Done] = Future()

    def do() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # it is raised again where somebody waits for it
            answer.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    while not wait([answer], LEFT_S).done:
        if _leaving.is_set():
            raise Left
    return answer.result()


class Left(Exception):
    """This controller stops before an effect has ended."""


def _journalled(wish: str) -> Intent:
    """Return the intent as the ledger has it, with what was true before; journal it where it has none yet."""
    intent = Intent(**json.loads(wish))
    return steps.begin(_at_work[-1], action(intent.action), intent)
