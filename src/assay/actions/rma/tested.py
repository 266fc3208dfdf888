"""How the failing checks of a node went before, and after each repair that was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.actions.action import Context
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment
from assay.model.action import REPAIRS
from assay.model.outcome import Recorded

Plain = dict[str, Any]


def repairs_of(story: Story | None) -> list[Plain]:
    """Return the repairs that were tried, and how each ended; what people certified in between is among them."""
    if story is None:
        return []
    tried = [effect for effect in story.effects if effect.action in REPAIRS]
    told = [{"what": one.action, "at": one.at, "end": one.standing, "reason": one.reason} for one in tried]
    told += [
        {"what": one.what, "at": one.at, "end": "done", "reason": ""}
        for one in story.repairs
        if one.what not in REPAIRS
    ]
    return sorted(told, key=lambda one: one["at"])


def tested(ctx: Context, node: str, one: Recorded, repairs: Sequence[Plain]) -> Plain:
    """Return how a check that fails now went before: its last pass, its first failure since, and after each repair."""
    check, subject = one.outcome.check, one.outcome.subject
    known = [each for each in ctx.ledger.outcomes(node=node, checks={check}) if each.outcome.subject == subject]
    known.sort(key=lambda each: moment(each.measured_at))
    passes = [each for each in known if each.outcome.verdict == "pass"]
    since = moment(passes[-1].measured_at) if passes else moment("")
    fails = [each for each in known if each.outcome.verdict == "fail" and moment(each.measured_at) > since]
    return {
        "check": check,
        "subject": subject,
        "last_pass": _said(passes[-1]) if passes else None,
        "first_fail": _said(fails[0]) if fails else _said(one),
        "fails": len(fails),
        "after": [_after(known, repair) for repair in repairs],
    }


def _after(known: Sequence[Recorded], repair: Plain) -> Plain:
    """Return what the check said first after a repair, None where it was not judged since."""
    since = moment(repair["at"])
    first = next((each for each in known if moment(each.measured_at) > since), None)
    return {"repair": repair["what"], "at": repair["at"], "said": _said(first) if first else None}


def _said(one: Recorded) -> Plain:
    outcome = one.outcome
    return {
        "at": one.measured_at,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "run": one.run,
        "evidence": outcome.evidence,
    }
