"""One effect, in three steps that may each be repeated: journal the intent, bring it about, prove it."""

from __future__ import annotations

from assay.actions.action import Action, Context, Intent, Verification
from assay.controller import journal
from assay.model.errors import Trouble

LOOKS = 40


def begin(ctx: Context, action: Action, intent: Intent) -> Intent:
    """Journal the intent with what is true before it; return it as the ledger has it, now or from before a crash."""
    if known := recorded(ctx, intent):
        return known.intent
    try:
        before = action.before(ctx, intent)
    except Exception as error:  # whatever it is, the intent is journalled before anything is done
        before = {"unread": _words(error)}
    ctx.ledger.append(journal.intent_entry(intent, ctx.clock.now().isoformat(), before))
    return recorded(ctx, intent).intent  # type: ignore[union-attr]  # just appended


def bring_about(ctx: Context, action: Action, intent: Intent) -> str:
    """Do it, unless a look at the world says that it is done; return what went wrong, or ""."""
    if ask(ctx, action, intent).done:
        return ""
    ctx.tell(f"{intent.node}: {intent.action} …")
    wrong = ""
    try:
        action.run(ctx, intent)
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        wrong = _words(error)
    ctx.ledger.append(journal.done_entry(intent, ctx.clock.now().isoformat(), wrong))
    return wrong


def prove(ctx: Context, action: Action, intent: Intent, wrong: str = "") -> Verification:
    """Read the world until it tells or the action's patience is over, and write down what it told.

    After trouble (`wrong`) a plain "not done" is final at once. An effect that waits is left open.
    """
    end = ctx.clock.now().timestamp() + action.patience_s
    verification = ask(ctx, action, intent)
    while not _final(verification, wrong) and ctx.clock.now().timestamp() < end:
        ctx.clock.sleep(action.patience_s / LOOKS)
        verification = ask(ctx, action, intent)
    if wrong and not verification.done:
        verification = Verification(verification.done, f"{verification.reason}; {wrong}", verification.facts)
    if not verification.waiting:
        ctx.ledger.append(journal.ending_entry(intent, ctx.clock.now().isoformat(), verification))
    ctx.tell(f"{intent.node}: {intent.action}: {said(verification)}")
    return verification


def look_again(ctx: Context, action: Action, effect: journal.Effect) -> Verification:
    """Re-read the world about an effect that is open; write down an end only if there is one now."""
    verification = ask(ctx, action, effect.intent)
    if verification.done is not None and not verification.waiting:
        ctx.ledger.append(journal.ending_entry(effect.intent, ctx.clock.now().isoformat(), verification))
    return verification


def ask(ctx: Context, action: Action, intent: Intent) -> Verification:
    """Ask the action's proof; one that cannot be had is "cannot tell"."""
    try:
        return action.verify(ctx, intent)
    except Exception as error:  # whatever it is, it is no proof
        return Verification(None, _words(error))


def recorded(ctx: Context, intent: Intent) -> journal.Effect | None:
    """Return the effect as the ledger has it, None where its intent was never written."""
    return journal.effects_in(ctx.ledger.entries(intent.node, journal.KINDS)).get(intent.effect)


def said(verification: Verification) -> str:
    """Return a verification in one line."""
    word = {True: "done", False: "not done", None: "cannot tell"}[verification.done]
    return f"{'under way' if verification.waiting else word}: {verification.reason}"


def _final(verification: Verification, wrong: str) -> bool:
    return bool(verification.done or verification.waiting or (wrong and verification.done is False))


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, Trouble) else f"internal error: {type(error).__name__}: {error}"
