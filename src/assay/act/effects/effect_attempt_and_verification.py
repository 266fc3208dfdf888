"""The steps of one effect after its intent is journalled: attempt it, and verify it by reading the world.

Each step may run again after a crash. An effect happens once because every attempt reads the world first, and counts
as done only when a reading shows it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from assay.act.actions.action import (
    ActionContext,
    ActionModule,
    EffectIntent,
    EffectVerification,
    UnfinishedAction,
    find_action_effort,
)
from assay.act.effects import effect_journal
from assay.act.effects.effect_journal import find_journaled_effect, is_same_machine
from assay.act.effects.gates import (
    describe_wait,
    find_newer_commit,
    must_attempt_wait,
    must_wait_for_room,
    must_wait_for_trust,
)
from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.declare.stand_ins import refuse_node
from assay.ledger.leases import hold_node_lease
from assay.ledger.ledger_reader import read_projection
from assay.model.decision import DECLARED_ACTIONS
from assay.model.entries.effects import EffectIntentEntry
from assay.model.errors import describe_error
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry

MAX_VERIFICATIONS = 40
NOT_ALLOWED = "nobody allows it now: its trust step, or an order that is too old"
MUST_WAIT = "others closed the node, or its scheduler does not answer"
OTHER_NAME = "the machine has another name now, under which this goes on"


@frozen
class AttemptResult:
    """How an attempt ended by its own account: its error, and whether it may still have an effect later."""

    error: str = ""
    is_unfinished: bool = False


def must_wait_to_begin(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether an attempt may not even begin: others closed the node, or work with a newer commit.

    What has begun is proved first.
    """
    if commit := find_newer_commit(context, intent):
        context.progress(f"{intent.node}: {intent.action}: {describe_wait(commit)}")
        return True
    known = find_journaled_effect(context, intent)
    may_begin = known is None or known.status == "tried"
    return may_begin and any(
        gate(context, intent) for gate in (must_wait_for_trust, must_attempt_wait, must_wait_for_room)
    )


def run_action(
    context: ActionContext, action: ActionModule, intent: EffectIntent, *, taken_up: bool = False
) -> AttemptResult:
    """Attempt the action while no other attempt works on the node, unless the world shows it done already.

    Nothing is done to a node that others closed in the meantime.
    `taken_up`: another controller began this attempt and was killed. Then a world that cannot be read is left alone.
    """
    with hold_node_lease(
        context.ledger,
        context.home,
        intent.node,
        find_action_effort(context.fleet, intent.action).deadline_s,
        context.progress,
    ):
        if not is_same_machine(context, intent):
            return AttemptResult(OTHER_NAME, is_unfinished=True)
        if commit := find_newer_commit(context, intent):
            return AttemptResult(describe_wait(commit), is_unfinished=True)
        verification = verify_safely(context, action, intent)
        if verification.done:
            return AttemptResult()
        if taken_up and verification.done is None:
            return AttemptResult("a controller that was killed may have done it", is_unfinished=True)
        if must_wait_for_trust(context, intent):
            return AttemptResult(NOT_ALLOWED, is_unfinished=True)
        if must_attempt_wait(context, intent):
            return AttemptResult(MUST_WAIT, is_unfinished=True)
        context.progress(f"{intent.node}: {intent.action} …")
        result = _attempt(context, action, intent)
        attempts = known.attempts if (known := find_journaled_effect(context, intent)) else 0
        at = context.clock.now().isoformat()
        context.ledger.append(effect_journal.make_done_entry(intent, at, result.error, attempts))
        return result


def _attempt(context: ActionContext, action: ActionModule, intent: EffectIntent) -> AttemptResult:
    try:
        refuse_node(context.fleet, intent.node, f"the action {intent.action}")
        action.run(context, intent)
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return AttemptResult(describe_error(error), is_unfinished=isinstance(error, UnfinishedAction))
    return AttemptResult()


def verify_effect(
    context: ActionContext, action: ActionModule, intent: EffectIntent, attempt: AttemptResult = AttemptResult()
) -> EffectVerification:
    """Read the world until it answers or the action's patience is over, and journal the answer.

    After an error a plain "not done" is final at once, unless the attempt is unfinished. An effect that waits for
    something else, such as a customer's job, stays open.
    """
    if not is_same_machine(context, intent):
        return EffectVerification(None, OTHER_NAME)
    end = context.clock.now().timestamp() + action.patience_s
    verification = verify_safely(context, action, intent)
    is_no_final = bool(attempt.error) and not attempt.is_unfinished
    while context.clock.now().timestamp() < end:
        if verification.done or verification.is_waiting or (is_no_final and verification.done is False):
            break
        context.clock.sleep(action.patience_s / MAX_VERIFICATIONS)
        verification = verify_safely(context, action, intent)
    verification = add_error(verification, attempt.error)
    context.progress(f"{intent.node}: {intent.action}: {format_verification(verification)}")
    if not verification.is_waiting and is_same_machine(context, intent):
        known = find_journaled_effect(context, intent)
        may_retry = bool(attempt.error) or (verification.done is False and _began_before_merge(context, intent))
        entry = make_result_entry(context, intent, verification, known, may_retry=may_retry)
        context.ledger.append(entry)
    return verification


def _began_before_merge(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether another commit was adopted since the effect began. Then it may have brought what the earlier one says."""
    if intent.action not in DECLARED_ACTIONS:
        return False
    adopted = read_projection(context.ledger, ROLLOUTS).adopted
    begun = context.ledger.entries(intent.node, [EffectIntentEntry.kind])
    seqs = [entry.seq for entry in begun if EffectIntentEntry.read(entry).effect == intent.effect]
    return adopted is not None and bool(seqs) and adopted.seq > seqs[-1]


def reverify_effect(context: ActionContext, action: ActionModule, effect: effect_journal.JournaledEffect) -> str:
    """Read the world about an open effect again; journal its end, or that it may be retried now. Return its status."""
    verification = verify_safely(context, action, effect.intent)
    context.progress(f"{effect.intent.node}: {effect.intent.action}: {format_verification(verification)}")
    if verification.done is None or verification.is_waiting or not is_same_machine(context, effect.intent):
        return effect.status
    entry = make_result_entry(context, effect.intent, verification, effect, may_retry=True, at_once=True)
    context.ledger.append(entry)
    return entry.kind.removeprefix("effect.")


def make_result_entry(
    context: ActionContext,
    intent: EffectIntent,
    verification: EffectVerification,
    known: effect_journal.JournaledEffect | None,
    *,
    may_retry: bool,
    at_once: bool = False,
) -> LedgerEntry:
    """Return the entry for a verification: an end, or where `may_retry` and attempts are left, a retry."""
    effort, attempts = find_action_effort(context.fleet, intent.action), known.attempts if known else 0
    now = context.clock.now()
    if verification.done is False and may_retry and attempts + 1 < effort.attempts:
        wait = timedelta(seconds=0 if at_once else effort.backoff.wait_s(attempts + 1))
        retry_at = (now + wait).isoformat()
        return effect_journal.make_retry_entry(intent, now.isoformat(), attempts + 1, verification.reason, retry_at)
    return effect_journal.make_end_entry(intent, now.isoformat(), verification, attempts)


def verify_safely(context: ActionContext, action: ActionModule, intent: EffectIntent) -> EffectVerification:
    """Return the action's verification. One that raises is "cannot tell", with the error as its reason.

    It waits where a newer commit was adopted by the end of the reading: what was read is what the earlier one declares.
    """
    try:
        verification = action.verify(context, intent)
    except Exception as error:  # whatever it is, it is no proof
        verification = EffectVerification(None, describe_error(error))
    if commit := find_newer_commit(context, intent):
        return EffectVerification(None, describe_wait(commit), is_waiting=True)
    return verification


def add_error(verification: EffectVerification, error: str) -> EffectVerification:
    """Return a verification that is not done with the attempt's error added to its reason."""
    if verification.done or not error or error in verification.reason:
        return verification
    return replace(verification, reason=f"{verification.reason}; {error}")


def format_verification(verification: EffectVerification) -> str:
    """Return a verification in one line."""
    word = {True: "done", False: "not done", None: "cannot tell"}[verification.done]
    return f"{'under way' if verification.is_waiting else word}: {verification.reason}"
