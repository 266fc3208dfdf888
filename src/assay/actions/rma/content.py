"""What a dossier says, as plain data that follows from the ledger, the evidence store and what was pinned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.actions.action import Context, Intent
from assay.actions.rma.tested import repairs_of
from assay.lifecycle.fold import fold
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
        "repairs": repairs_of(story),
        "moves": [{"at": move.at, "from": move.origin, "to": move.target} for move in story.moves] if story else [],
        "tests": facts["tests"],
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
