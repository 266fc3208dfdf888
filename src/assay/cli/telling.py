"""One line for every kind of entry, as a person would tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.entry import Entry

Body = Mapping[str, Any]


def told(entry: Entry) -> str:
    """Return what an entry says, in one line."""
    return _TOLD.get(entry.kind, _plainly)(entry.body)


def _decision(body: Body) -> str:
    reasons = "; ".join(cause["text"] for cause in body["because"])
    if body["timing"] == "record":
        what = {"ticket": "asks for a technician", "wait": f"does not go to {body['to']} yet"}
        return f"{what.get(body['remedy'], 'noted')}: {reasons}  [{body['rule']}]"
    waits = f", waits for {', '.join(body['blockers'])}" if body["blockers"] else ""
    when = "at once" if body["timing"] == "immediate" else f"when idle{waits}"
    return f"{body['from']} → {body['to']} {when}: {reasons}  [{body['rule']}]"


def _fault(body: Body) -> str:
    times = f" ({body['count']} times)" if body["count"] > 1 else ""
    return f"{body['severity']} fault {body['class']} on {body['subject']}{times}: {body.get('detail', '')}"


def _effect(word: str) -> Callable[[Body], str]:
    def tell(body: Body) -> str:
        reason = f": {body['reason']}" if body.get("reason") else ""
        return f"{word}{reason}"

    return tell


def _ticket(word: str) -> Callable[[Body], str]:
    def tell(body: Body) -> str:
        by = f", by {body['by']}" if body.get("by") else ""
        return f"ticket {body['ticket']} {word}: {body.get('title', '')}{by}".rstrip(": ")

    return tell


def _person(word: str) -> Callable[[Body], str]:
    return lambda body: f"{word} by {body['who']}: {body['reason']}"


def _plainly(body: Body) -> str:
    return ", ".join(f"{name} {value}" for name, value in body.items())


_TOLD: Mapping[str, Callable[[Body], str]] = {
    "node.enrolled": lambda body: f"first seen, pool {body['pool']}, starts in {body['state']}",
    "transition": lambda body: f"{body['from']} → {body['to']}",
    "decision": _decision,
    "decision.withdrawn": lambda body: f"decision {body['decision']} withdrawn: {body['reason']}",
    "fault": _fault,
    "fault.cleared": lambda body: f"fault {body['fault']} cleared: {body['because']}",
    "alert.resolved": lambda body: f"alert {body['alert']} is over ({body['fault']})",
    "alert.elsewhere": lambda body: f"alert {body['alert']} of no node of ours: {body['detail']}",
    "observe.failed": lambda body: f"{body['channel']} did not answer: {body['reason']}",
    "effect.intent": lambda body: f"{body['action']} begins",
    "effect.done": _effect("done, not yet verified"),
    "effect.verified": _effect("verified"),
    "effect.failed": _effect("failed"),
    "effect.unknown": _effect("end unknown"),
    "hold": _person("held"),
    "release": _person("released"),
    "certified": _person("certified"),
    "commit.accepted": lambda body: f"acts on commit {body['commit'][:12]}, signed by {body['signer']}",
    "ticket.opened": _ticket("opened"),
    "ticket.updated": _ticket("updated"),
    "ticket.closed": _ticket("closed"),
    "ticket.reopened": _ticket("reopened"),
    "ticket.delivered": lambda body: f"ticket {body['ticket']} delivered to {body['sink']}: {body['external']}",
}
