"""One effect, in three steps that may each be repeated: journal the intent, bring it about, prove it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.actions.action import (
    ActionContext,
    ActionModule,
    EffectIntent,
    EffectVerification,
    UnfinishedAction,
    find_action_effort,
)
from assay.controller.effects import effect_journal
from assay.controller.effects.node_lease import hold_node_lease
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry

MAX_VERIFICATIONS = 40


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What the doing says of itself: what went wrong, and whether something may still come of it all the same."""

    error: str = ""
    is_unfinished: bool = False


def journal_intent(ctx: ActionContext, action: ActionModule, intent: EffectIntent) -> EffectIntent:
    """Journal the intent with what is true before it; return it as the ledger has it, now or from before a crash."""
    if known := find_journaled_effect(ctx, intent):
        return known.intent
    try:
        before = action.before(ctx, intent)
    except Exception as error:  # whatever it is, the intent is journalled before anything is done
        before = {"unread": describe_effect_error(error)}
    ctx.ledger.append(
        effect_journal.make_intent_entry(
            intent, ctx.clock.now().isoformat(), before, describe_executor(ctx, intent.action)
        )
    )
    return find_journaled_effect(ctx, intent).intent  # type: ignore[union-attr]  # just appended


def run_action(
    ctx: ActionContext, action: ActionModule, intent: EffectIntent, *, taken_up: bool = False
) -> AttemptResult:
    """Do it when nobody else is at work on the node, unless a look at the world says that it is done.

    `taken_up` from a controller that was killed on the way, it is done only where the world says that it was not.
    """
    with hold_node_lease(ctx, intent.node, find_action_effort(ctx.fleet, intent.action).deadline_s):
        seen = verify_safely(ctx, action, intent)
        if seen.done:
            return AttemptResult()
        if taken_up and seen.done is None:
            return AttemptResult("a controller that was killed may have done it", is_unfinished=True)
        ctx.progress(f"{intent.node}: {intent.action} …")
        deed = _attempt(ctx, action, intent)
        tried = known.attempts if (known := find_journaled_effect(ctx, intent)) else 0
        ctx.ledger.append(effect_journal.make_done_entry(intent, ctx.clock.now().isoformat(), deed.error, tried))
        return deed


def verify_effect(
    ctx: ActionContext, action: ActionModule, intent: EffectIntent, deed: AttemptResult | None = None
) -> EffectVerification:
    """Read the world until it tells or the action's patience is over, and write down what it told.

    After trouble a plain "not done" is final at once, unless something may still come of it. An effect that waits is
    left open.
    """
    deed = deed or AttemptResult()
    end = ctx.clock.now().timestamp() + action.patience_s
    verification = verify_safely(ctx, action, intent)
    while not _is_final(verification, deed) and ctx.clock.now().timestamp() < end:
        ctx.clock.sleep(action.patience_s / MAX_VERIFICATIONS)
        verification = verify_safely(ctx, action, intent)
    verification = add_error(verification, deed.error)
    ctx.progress(f"{intent.node}: {intent.action}: {format_verification(verification)}")
    if not verification.is_waiting:
        ctx.ledger.append(
            make_result_entry(ctx, intent, verification, find_journaled_effect(ctx, intent), again=bool(deed.error))
        )
    return verification


def reverify_effect(ctx: ActionContext, action: ActionModule, effect: effect_journal.JournaledEffect) -> str:
    """Re-read the world about an effect that is open; write down an end, or that it may be tried anew, if it tells.

    Returns how the effect stands now. What may be tried anew may be so at once: it has waited for this look.
    """
    verification = verify_safely(ctx, action, effect.intent)
    ctx.progress(f"{effect.intent.node}: {effect.intent.action}: {format_verification(verification)}")
    if verification.done is None or verification.is_waiting:
        return effect.status
    entry = make_result_entry(ctx, effect.intent, verification, effect, again=True, at_once=True)
    ctx.ledger.append(entry)
    return entry.kind.removeprefix("effect.")


def make_result_entry(
    ctx: ActionContext,
    intent: EffectIntent,
    verification: EffectVerification,
    known: effect_journal.JournaledEffect | None,
    *,
    again: bool,
    at_once: bool = False,
) -> LedgerEntry:
    """Return the line that a reading earns: one of the ends, or with `again` one more attempt where some are left."""
    effort, tried = find_action_effort(ctx.fleet, intent.action), known.attempts if known else 0
    now = ctx.clock.now()
    if verification.done is False and again and tried + 1 < effort.attempts:
        wait = timedelta(0) if at_once else effort.wait_after(tried + 1)
        again_at = (now + wait).isoformat()
        return effect_journal.make_retry_entry(intent, now.isoformat(), tried + 1, verification.reason, again_at)
    return effect_journal.make_end_entry(intent, now.isoformat(), verification, tried)


def verify_safely(ctx: ActionContext, action: ActionModule, intent: EffectIntent) -> EffectVerification:
    """Ask the action's proof; one that cannot be had is "cannot tell"."""
    try:
        return action.verify(ctx, intent)
    except Exception as error:  # whatever it is, it is no proof
        return EffectVerification(None, describe_effect_error(error))


def find_journaled_effect(ctx: ActionContext, intent: EffectIntent) -> effect_journal.JournaledEffect | None:
    """Return the effect as the ledger has it, None where its intent was never written."""
    return effect_journal.parse_effects(ctx.ledger.entries(intent.node, effect_journal.EFFECT_KINDS)).get(intent.effect)


def describe_executor(ctx: ActionContext, action: str) -> dict[str, Any]:
    """Return who does it, and when nothing of this attempt can be at work any more, in the time of machines."""
    until = datetime.now(UTC) + timedelta(seconds=find_action_effort(ctx.fleet, action).deadline_s)
    return {"host": socket.gethostname(), "pid": os.getpid(), "until": until.isoformat(timespec="seconds")}


def add_error(told: EffectVerification, wrong: str) -> EffectVerification:
    """Return what was read with what went wrong on the way, where it is not done."""
    if told.done or not wrong or wrong in told.reason:
        return told
    return replace(told, reason=f"{told.reason}; {wrong}")


def format_verification(verification: EffectVerification) -> str:
    """Return a verification in one line."""
    word = {True: "done", False: "not done", None: "cannot tell"}[verification.done]
    return f"{'under way' if verification.is_waiting else word}: {verification.reason}"


def describe_effect_error(error: Exception) -> str:
    """Return an error in one line for people."""
    return str(error) if isinstance(error, AssayError) else f"internal error: {type(error).__name__}: {error}"


def _attempt(ctx: ActionContext, action: ActionModule, intent: EffectIntent) -> AttemptResult:
    try:
        action.run(ctx, intent)
    except UnfinishedAction as trouble:
        return AttemptResult(describe_effect_error(trouble), is_unfinished=True)
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return AttemptResult(describe_effect_error(error))
    return AttemptResult()


def _is_final(verification: EffectVerification, deed: AttemptResult) -> bool:
    plainly_not = bool(deed.error) and not deed.is_unfinished and verification.done is False
    return bool(verification.done or verification.is_waiting or plainly_not)
