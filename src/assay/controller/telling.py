"""One line for people for each line of the ledger: what changed, and why."""

from __future__ import annotations

from typing import Any

from assay.model.entry import Entry

TEMPLATES = {
    "node.enrolled": "enrolled in {state}",
    "transition": "{from} → {to}",
    "decision.withdrawn": "no longer waits: {reason}",
    "fault": "{severity} fault {class} on {subject}, {count}×: {detail}",
    "fault.cleared": "fault over: {because}",
    "observe.failed": "no answer from {channel}: {reason}",
    "effect.intent": "{action} begins",
    "effect.done": "{action} was done {reason}",
    "effect.verified": "{action} verified: {reason}",
    "effect.failed": "{action} failed: {reason}",
    "effect.unknown": "{action}: it is not known what happened: {reason}",
    "commit.accepted": "acts on commit {commit}, signed by {signer} with {key}",
    "ticket.opened": "ticket {ticket} opened: {title}",
    "ticket.updated": "ticket {ticket} updated: {title}",
    "ticket.reopened": "ticket {ticket} reopened: {title}: {reason}",
    "ticket.delivered": "ticket {ticket} delivered to {sink}: {external}",
    "ticket.closed": "ticket {ticket} closed by {by}",
    "schedule.begun": "{schedule} of {part} begins",
    "schedule.ran": "{schedule} of {part} {ended}: {reason}",
    "verification.missed": "not verified: {reason}",
    "node.undrained": "given back after it passed {schedule}; its drain said: {reason}",
    "hold": "held by {who}: {reason}",
    "release": "released by {who}: {reason}",
    "certified": "certified by {who}: {reason}",
}


def line(entry: Entry) -> str:
    """Return an entry in one line."""
    return f"{entry.node or 'fleet'}: {_text(entry.kind, entry.body)}"


def _text(kind: str, body: dict[str, Any]) -> str:
    if kind == "decision":
        return _decision(body)
    if template := TEMPLATES.get(kind):
        return template.format(**body).strip()
    return f"{kind}: {body.get('reason', '')}".rstrip(": ")


def _decision(body: dict[str, Any]) -> str:
    why = "; ".join(cause["text"] for cause in body["because"])
    match body["timing"]:
        case "pending":
            return f"{body['to']} waits for {', '.join(body['blockers'])}, because {why} ({body['rule']})"
        case "record":
            return f"noted ({body['remedy'] or 'nothing to do'}): {why} ({body['rule']})"
    return f"goes to {body['to']}, because {why} ({body['rule']})"
