"""The second half of a pass: brings about what was decided, on many nodes at once, and on each node in its order.

Cordons and uncordons go together: intents, one order to each scheduler, one reading, ends. Both do no harm when
repeated, and one reading proves them. So they need no workflow: the next batch finds in the ledger what a killed
process left, and does it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

from assay.act.actions import cordon, uncordon
from assay.act.actions.action import ActionContext, EffectIntent, EffectVerification, load_action
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects import effect_journal
from assay.act.effects.effect_attempt_and_verification import (
    AttemptResult,
    add_error,
    format_verification,
    make_result_entry,
)
from assay.act.effects.effect_journal import PendingEffect
from assay.act.effects.gates import hold_outlived_orders, must_wait_for_trust, select_undisturbing
from assay.act.effects.workflow_queues import find_engine_stack, list_queue_limits
from assay.act.loop.context import ControllerContext
from assay.act.loop.pass_log import records_pass
from assay.act.loop.projections import read_node_states
from assay.adapters.scheduler import SchedulerAdapter, SchedulerGroups, StatusReadings, group_by_scheduler
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.errors import describe_error
from assay.model.ledger_entry import LedgerEntry

UNCORDONS_AT_ONCE = 16
STATUS_VERIFIERS = {"cordon": cordon.verify_cordon_status, "uncordon": uncordon.verify_uncordon_status}
"""The actions that are done to many nodes together, and how the status of a node proves each."""
UNKNOWN_NODE = "the scheduler does not know this node"


def run_cordon_batch(
    context: ActionContext, effects: Sequence[tuple[EffectIntent, effect_journal.JournaledEffect | None]]
) -> None:
    """Run these effects, each with what the ledger has of it; all are of STATUS_VERIFIERS, at most one for a node."""
    intents = {intent.node: intent for intent, _ in effects}
    known = {intent.node: recorded for intent, recorded in effects}
    groups = group_by_scheduler([context.fleet.nodes[name] for name in intents], context.workloads)
    readings = groups.read_statuses()
    _journal_intents(context, [intent for intent, recorded in effects if recorded is None], readings)
    todo = [intent for intent in intents.values() if not _verify(intent, readings).done]
    results = _send_orders(groups, todo)
    readings = groups.read_statuses() if todo else readings
    entries: list[LedgerEntry] = []
    for intent in intents.values():
        entries += _make_end_entries(
            context, intent, known[intent.node], results.get(intent.node), _verify(intent, readings)
        )
    context.ledger.append(*entries)


def _journal_intents(context: ActionContext, intents: Sequence[EffectIntent], readings: StatusReadings) -> None:
    at, entries = context.clock.now().isoformat(), list[LedgerEntry]()
    for intent in intents:
        context.progress(f"{intent.node}: {intent.action} …")
        if status := readings.statuses.get(intent.node):
            before = {"cordon": status.cordon}
        else:
            before = {"unread": readings.errors.get(intent.node, UNKNOWN_NODE)}
        executor = effect_journal.describe_executor(context, intent.action)
        entries.append(effect_journal.make_intent_entry(intent, at, before, executor))
    context.ledger.append(*entries)


def _send_orders(groups: SchedulerGroups, todo: Sequence[EffectIntent]) -> Mapping[str, AttemptResult]:
    """Send the orders of each scheduler; return the result for each node."""
    wanted = {intent.node: intent for intent in todo}
    results: dict[str, AttemptResult] = {}
    for scheduler, nodes in groups.nodes.items():
        results |= _send_scheduler_orders(scheduler, [wanted[node] for node in nodes if node in wanted])
    return results


def _send_scheduler_orders(scheduler: SchedulerAdapter, intents: Sequence[EffectIntent]) -> dict[str, AttemptResult]:
    cordons = {intent.node: intent.reason for intent in intents if intent.action == "cordon"}
    results = dict.fromkeys(cordons, _attempt(lambda: scheduler.cordon_many(cordons))) if cordons else {}
    uncordons = [intent.node for intent in intents if intent.action == "uncordon"]
    with ThreadPoolExecutor(UNCORDONS_AT_ONCE) as threads:
        others = threads.map(lambda node: _attempt(lambda: scheduler.uncordon(node)), uncordons)
        return results | dict(zip(uncordons, others, strict=True))


def _attempt(order: Callable[[], None]) -> AttemptResult:
    try:
        order()
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return AttemptResult(describe_error(error))
    return AttemptResult()


def _verify(intent: EffectIntent, readings: StatusReadings) -> EffectVerification:
    if intent.node not in readings.statuses:
        return EffectVerification(None, readings.errors.get(intent.node, UNKNOWN_NODE))
    return STATUS_VERIFIERS[intent.action](readings.statuses[intent.node])


def _make_end_entries(
    context: ActionContext,
    intent: EffectIntent,
    known: effect_journal.JournaledEffect | None,
    result: AttemptResult | None,
    verification: EffectVerification,
) -> list[LedgerEntry]:
    """Return the entries that end an effect, or leave it open."""
    error = result.error if result else ""
    verification = add_error(verification, error)
    context.progress(f"{intent.node}: {intent.action}: {format_verification(verification)}")
    at, attempts = context.clock.now().isoformat(), known.attempts if known else 0
    done = [effect_journal.make_done_entry(intent, at, error, attempts)] if result else []
    return [*done, make_result_entry(context, intent, verification, known, may_retry=bool(error))]


MAX_VERIFICATIONS_AT_ONCE = 16


def list_pending_effects(context: ControllerContext, node_state: NodeState) -> Iterator[PendingEffect]:
    """Yield what can run on a node, due or not: what an earlier decision left open, and the next outstanding effect."""
    recorded: Mapping[str, effect_journal.JournaledEffect] = {}
    if node_state.unsettled_effects:
        recorded = effect_journal.parse_effects(context.ledger.entries(node_state.node, effect_journal.EFFECT_KINDS))
    outstanding = list_outstanding_effects(context.policy, node_state)
    awaited = {effect_journal.derive_effect_id(effect.decision, effect.action) for effect in outstanding}
    for effect in recorded.values():
        if not effect.has_ended and effect.intent.effect not in awaited:
            yield PendingEffect(effect.intent, effect, is_superseded=True)
    if outstanding:
        first = outstanding[0]
        ident = effect_journal.derive_effect_id(first.decision, first.action)
        known = recorded.get(ident)
        name, named_by = node_state.node, node_state.named_by
        intent = EffectIntent(
            ident, first.action, name, first.decision, first.reason, params=first.params, named_by=named_by
        )
        yield PendingEffect(known.intent if known else intent, known)


def _is_batched(effect: PendingEffect) -> bool:
    """Whether an effect runs in a batch with others, without a workflow of its own."""
    return effect.intent.action in STATUS_VERIFIERS and not effect.is_superseded


@records_pass("act")
def run_effects(
    context: ControllerContext,
    names: Collection[str] | None = None,
    node_states: Mapping[str, NodeState] | None = None,
    *,
    wait: bool = True,
) -> str:
    """Bring about the outstanding effects of the nodes `names` (None: all), and end what was left open.

    On a ledger of our own, also finishes what a killed process left on other nodes; on a shared one, every node has
    its controller. Reads `node_states` from the ledger where they are not given. Waits until every effect has ended,
    or waits for something else. Without `wait`, inside `keep_engine_running`, workflows go on in the background, and
    the ledger's entry for an end is the time to call again.

    Returns when the next attempt of a failed effect is due (ISO 8601), "" where there is none.
    """
    states = read_node_states(context.ledger) if node_states is None else node_states
    if hold_outlived_orders(context, states):
        fresh = read_node_states(context.ledger)
        states = {node: fresh.get(node, state) for node, state in states.items()}
    ours = {}
    for node, state in states.items():
        if node not in context.fleet.nodes:
            continue
        is_open = bool(state.unsettled_effects)
        if names is None or node in names:
            is_open = is_open or bool(list_outstanding_effects(context.policy, state))
        elif context.ledger.is_shared:
            is_open = False
        if is_open:
            ours[node] = state
    return _EffectRun(context, ours).run(wait=wait or find_engine_stack() is None) if ours else ""


class _EffectRun:
    """One call of `run_effects`, in which each effect runs once."""

    def __init__(self, context: ControllerContext, node_states: Mapping[str, NodeState]) -> None:
        self._context = context
        self._node_states = dict(node_states)
        self._handled: set[str] = set()
        self._retry_times: set[str] = set()
        self._running: dict[str, str] = {}

    def run(self, *, wait: bool) -> str:
        """Run until nothing is left to do now; return when something is due again."""
        changed: Collection[str] = list(self._node_states)
        with ExitStack() as stack:
            while changed or (wait and self._running):
                pending = [
                    effect
                    for node in changed
                    for effect in list_pending_effects(self._context, self._node_states[node])
                    if self._is_due(effect)
                    # what was begun is proved; what would begin now may have to wait for a person
                    and not (effect.begins_attempt and must_wait_for_trust(self._context, effect.intent))
                ]
                pending = select_undisturbing(self._context, self._node_states, pending)
                changed = self._run_batched(pending) | self._enqueue_workflows(
                    stack, [effect for effect in pending if not _is_batched(effect)]
                )
                if wait and self._running and not changed:
                    changed = self._wait_for_workflow()
                self._refresh_states(changed)
                changed = self._node_states.keys() & set(changed)
        return min(self._retry_times, default="")

    def _refresh_states(self, nodes: Collection[str]) -> None:
        """Read the states of these nodes again, and drop a name that no machine has any more."""
        states = read_node_states(self._context.ledger)
        self._node_states |= {node: states[node] for node in nodes if node in states}
        for node in set(nodes) - states.keys():
            self._node_states.pop(node, None)

    def _is_due(self, effect: PendingEffect) -> bool:
        """Whether an effect runs now; note the time where it is due later."""
        if effect.due_at > self._context.now:
            self._retry_times.add(effect.due_at)
            return False
        is_new = effect.intent.effect not in self._handled
        self._handled.add(effect.intent.effect)
        return is_new

    def _run_batched(self, pending: Sequence[PendingEffect]) -> set[str]:
        """Run what is done to many nodes together; return these nodes."""
        batch = [(effect.intent, effect.recorded) for effect in pending if _is_batched(effect)]
        if batch:
            run_cordon_batch(self._context, batch)
        return {intent.node for intent, _ in batch}

    def _enqueue_workflows(self, stack: ExitStack, pending: Sequence[PendingEffect]) -> set[str]:
        """Enqueue what needs a workflow of its own; return the nodes of effects that a reading has ended."""
        if not pending:
            return set()
        from assay.act.effects import dbos_workflows

        limits = list_queue_limits(self._context.fleet, self._context.policy)
        stack.enter_context(dbos_workflows.hold_engine(self._context, limits))
        nodes = {effect.intent.effect: effect.intent.node for effect in pending}
        workflows = dbos_workflows.find_running_workflows(nodes)
        idle = []
        for effect in pending:
            if effect.intent.effect not in workflows:  # its workflow may have ended since the state was read
                recorded = effect_journal.find_journaled_effect(self._context, effect.intent)
                idle.append(replace(effect, intent=recorded.intent, recorded=recorded) if recorded else effect)
        statuses = self._reverify_all([effect for effect in idle if effect.needs_verification])
        for effect in idle:
            ident = effect.intent.effect
            if not effect.has_ended and not effect.is_superseded and statuses.get(ident, "tried") == "tried":
                workflows[ident] = dbos_workflows.enqueue_effect(self._context, effect.intent)
        self._running |= {workflow: nodes[ident] for ident, workflow in workflows.items()}
        ended = {effect.intent.effect for effect in idle if effect.has_ended}
        ended |= {ident for ident, status in statuses.items() if status in ("verified", "failed")}
        return {nodes[ident] for ident in ended}

    def _reverify_all(self, pending: Sequence[PendingEffect]) -> dict[str, str]:
        """Read the world about effects that were begun; return the status of each by its id."""

        def reverify(effect: PendingEffect) -> str:
            assert effect.recorded  # only what was begun needs a verification
            return steps.reverify_effect(self._context, load_action(effect.intent.action), effect.recorded)

        with ThreadPoolExecutor(MAX_VERIFICATIONS_AT_ONCE) as threads:
            return dict(zip([effect.intent.effect for effect in pending], threads.map(reverify, pending), strict=True))

    def _wait_for_workflow(self) -> set[str]:
        """Wait for the next workflow to end; return the nodes of all that have."""
        from assay.act.effects import dbos_workflows

        ended = dbos_workflows.wait_for_any_workflow(self._context, self._running)
        return {self._running.pop(workflow) for workflow in ended}
