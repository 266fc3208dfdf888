"""What a dossier says, as plain data that follows from the ledger, the evidence store and what was pinned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.actions.action import Context, Intent
from assay.lifecycle.fold import fold
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment
from assay.model.action import REPAIRS
from assay.model.entry import Entry
from assay.model.errors import Trouble
from assay.model.evidence import Evidence, read
from assay.model.outcome import Recorded

SCHEMA = "assay.dossier/2"
Plain = dict[str, Any]


def content(ctx: Context, intent: Intent, facts: Mapping[str, Any]) -> Plain:
    """Return the dossier of an intent for which `pinned` was noted. The same at any later time."""
    entries = [entry for entry in ctx.ledger.entries(intent.node) if entry.seq <= facts["upto"]]
    story = fold(entries).get(intent.node)
    failing = [one for ident in facts["failing"] for one in _outcome(ctx, intent.node, ident)]
    repairs = _repairs(story)
    return {
        "schema": SCHEMA,
        "effect": intent.effect,
        "at": facts["at"],
        "reason": intent.reason,
        "node": facts["node"],
        "suspects": facts["suspects"],
        "parts": facts["parts"],
        "firmware": _firmware(_document(ctx, facts["evidence"])),
        "faults": _faults(entries),
        "repairs": repairs,
        "moves": [{"at": move.at, "from": move.origin, "to": move.target} for move in story.moves] if story else [],
        "tests": [_tested(ctx, intent.node, one, repairs, facts["at"]) for one in failing],
        "failing": [{"run": one.run, **one.outcome.as_json()} for one in failing],
        "photos": facts["photos"],
    }


def documents(ctx: Context, told: Plain, evidence: str) -> dict[str, Evidence | str]:
    """Return the evidence that a dossier rests on by digest: what failing checks judged, and the newest document.

    In place of one that is missing or was changed stands the reason.
    """
    wanted = dict.fromkeys([evidence, *(one["evidence"] for one in told["failing"])])
    found: dict[str, Evidence | str] = {}
    for digest in wanted:
        if digest:
            try:
                found[digest] = ctx.evidence.get(digest)
            except Trouble as trouble:
                found[digest] = trouble.what
    return found


def _outcome(ctx: Context, node: str, ident: str) -> list[Recorded]:
    run = ident.partition("/")[0]
    return [one for one in ctx.ledger.outcomes(run=run, node=node) if one.id == ident]


def _faults(entries: Sequence[Entry]) -> list[Plain]:
    """Return every fault as it was last told, with when it was cleared."""
    found: dict[str, Plain] = {}
    for entry in entries:
        if entry.kind == "fault":
            names = ("class", "subject", "severity", "blame", "count", "first_seen", "last_seen", "detail")
            found[entry.body["fault"]] = {name: entry.body.get(name, "") for name in names} | {"cleared_at": ""}
        elif entry.kind == "fault.cleared" and entry.body["fault"] in found:
            found[entry.body["fault"]]["cleared_at"] = entry.at
    return list(found.values())


def _repairs(story: Story | None) -> list[Plain]:
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


def _tested(ctx: Context, node: str, one: Recorded, repairs: Sequence[Plain], until: str) -> Plain:
    """Return how a check that fails now went before: its last pass, its first failure since, and after each repair."""
    check, subject = one.outcome.check, one.outcome.subject
    known = [
        each
        for each in ctx.ledger.outcomes(node=node, checks={check})
        if each.outcome.subject == subject and moment(each.at) <= moment(until)
    ]
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


def _document(ctx: Context, digest: str) -> Evidence | None:
    try:
        return ctx.evidence.get(digest) if digest else None
    except Trouble:
        return None


def _firmware(evidence: Evidence | None) -> dict[str, str]:
    tree = evidence.read("bmc", "firmware") if evidence else None
    names = tree.value if tree and tree.kind == "value" and isinstance(tree.value, dict) else {}
    versions = {name: read(names, (name,)) for name in names}
    return {name: str(version.value) for name, version in sorted(versions.items()) if version.kind == "value"}
