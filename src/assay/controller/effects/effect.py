"""One effect, in three steps that may each be repeated: journal the intent, bring it about, prove it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.actions.action import Action, Context, Intent, Unfinished, Verification
from assay.actions.effort import effort_of
from assay.controller.effects import journal
from assay.controller.effects.hands import hands_on
from assay.model.entry import Entry
from assay.model.errors import Trouble

LOOKS = 40


@dataclass(frozen=True, slots=True)
class Deed:
    """What the doing says of itself: what went wrong, and whether something may still come of it all the same."""

    wrong: str = ""
    unfinished: bool = False


def begin(ctx: Context, action: Action, intent: Intent) -> Intent:
    """Journal the intent with what is true before it; return it as the ledger has it, now or from before a crash."""
    if known := recorded(ctx, intent):
        return known.intent
    try:
        before = action.before(ctx, intent)
    except Exception as error:  # whatever it is, the intent is journalled before anything is done
        before = {"unread": words(error)}
    ctx.ledger.append(journal.intent_entry(intent, ctx.clock.now().isoformat(), before, by(ctx, intent.action)))
    return recorded(ctx, intent).intent  # type: ignore[union-attr]  # just appended


def bring_about(ctx: Context, action: Action, intent: Intent, *, taken_up: bool = False) -> Deed:
    """Do it when nobody else is at work on the node, unless a look at the world says that it is done.

    `taken_up` from a controller that was killed on the way, it is done only where the world says that it was not.
    """
    with hands_on(ctx, intent.node, effort_of(ctx.fleet, intent.action).deadline_s):
        seen = ask(ctx, action, intent)
        if seen.done:
            return Deed()
        if taken_up and seen.done is None:
            return Deed("a controller that was killed may have done it", unfinished=True)
        ctx.tell(f"{intent.node}: {intent.action} …")
        deed = _done(ctx, action, intent)
        tried = known.tried if (known := recorded(ctx, intent)) else 0
        ctx.ledger.append(journal.done_entry(intent, ctx.clock.now().isoformat(), deed.wrong, tried))
        return deed


def prove(ctx: Context, action: Action, intent: Intent, deed: Deed | None = None) -> Verification:
    """Read the world until it tells or the action's patience is over, and write down what it told.

    After trouble a plain "not done" is final at once, unless something may still come of it. An effect that waits is
    left open.
    """
    deed = deed or Deed()
    end = ctx.clock.now().timestamp() + action.patience_s
    verification = ask(ctx, action, intent)
    while not _final(verification, deed) and ctx.clock.now().timestamp() < end:
        ctx.clock.sleep(action.patience_s / LOOKS)
        verification = ask(ctx, action, intent)
    verification = with_trouble(verification, deed.wrong)
    ctx.tell(f"{intent.node}: {intent.action}: {said(verification)}")
    if not verification.waiting:
        ctx.ledger.append(earned(ctx, intent, verification, recorded(ctx, intent), again=bool(deed.wrong)))
    return verification


def look_again(ctx: Context, action: Action, effect: journal.Effect) -> str:
    """Re-read the world about an effect that is open; write down an end, or that it may be tried anew, if it tells.

    Returns how the effect stands now. What may be tried anew may be so at once: it has waited for this look.
    """
    verification = ask(ctx, action, effect.intent)
    ctx.tell(f"{effect.intent.node}: {effect.intent.action}: {said(verification)}")
    if verification.done is None or verification.waiting:
        return effect.standing
    entry = earned(ctx, effect.intent, verification, effect, again=True, at_once=True)
    ctx.ledger.append(entry)
    return entry.kind.removeprefix("effect.")


def earned(
    ctx: Context,
    intent: Intent,
    verification: Verification,
    known: journal.Effect | None,
    *,
    again: bool,
    at_once: bool = False,
) -> Entry:
    """Return the line that a reading earns: one of the ends, or with `again` one more attempt where some are left."""
    effort, tried = effort_of(ctx.fleet, intent.action), known.tried if known else 0
    now = ctx.clock.now()
    if verification.done is False and again and tried + 1 < effort.attempts:
        wait = timedelta(0) if at_once else effort.wait_after(tried + 1)
        again_at = (now + wait).isoformat()
        return journal.tried_entry(intent, now.isoformat(), tried + 1, verification.reason, again_at)
    return journal.ending_entry(intent, now.isoformat(), verification, tried)


def ask(ctx: Context, action: Action, intent: Intent) -> Verification:
    """Ask the action's proof; one that cannot be had is "cannot tell"."""
    try:
        return action.verify(ctx, intent)
    except Exception as error:  # whatever it is, it is no proof
        return Verification(None, words(error))


def recorded(ctx: Context, intent: Intent) -> journal.Effect | None:
    """Return the effect as the ledger has it, None where its intent was never written."""
    return journal.effects_in(ctx.ledger.entries(intent.node, journal.KINDS)).get(intent.effect)


def by(ctx: Context, action: str) -> dict[str, Any]:
    """Return who does it, and when nothing of this attempt can be at work any more, in the time of machines."""
    until = datetime.now(UTC) + timedelta(seconds=effort_of(ctx.fleet, action).deadline_s)
    return {"host": socket.gethostname(), "pid": os.getpid(), "until": until.isoformat(timespec="seconds")}


def with_trouble(told: Verification, wrong: str) -> Verification:
    """Return what was read with what went wrong on the way, where it is not done."""
    if told.done or not wrong or wrong in told.reason:
        return told
    return replace(told, reason=f"{told.reason}; {wrong}")


def said(verification: Verification) -> str:
    """Return a verification in one line."""
    word = {True: "done", False: "not done", None: "cannot tell"}[verification.done]
    return f"{'under way' if verification.waiting else word}: {verification.reason}"


def words(error: Exception) -> str:
    """Return an error in one line for people."""
    return str(error) if isinstance(error, Trouble) else f"internal error: {type(error).__name__}: {error}"


def _done(ctx: Context, action: Action, intent: Intent) -> Deed:
    try:
        action.run(ctx, intent)
    except Unfinished as trouble:
        return Deed(words(trouble), unfinished=True)
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return Deed(words(error))
    return Deed()


def _final(verification: Verification, deed: Deed) -> bool:
    plainly_not = bool(deed.wrong) and not deed.unfinished and verification.done is False
    return bool(verification.done or verification.waiting or plainly_not)
