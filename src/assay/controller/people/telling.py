"""One line for people for each line of the ledger: what changed, who changed it, and why. No internal ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.lifecycle import returned
from assay.lifecycle.when import moment
from assay.model.entry import Entry
from assay.model.spans import counted, listed

Body = Mapping[str, Any]
SAYS = {"inventory": "the inventory", "bmc": "its BMC", "dmi": "its firmware"}
MOST = 50_000
"""Of so many things the names are kept, those that were told last."""
_ID = re.compile(r",? ?(?:by |of |after )?(?:the )?(?:decision|effect|fault) [0-9a-f]{16}\b")


class Teller:
    """Tells lines in their order; what a line names by an id is told by what it is, where that was told before."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}

    def told(self, entry: Entry) -> str:
        """Return what an entry says, in one line."""
        body = entry.body
        self._learn(entry.kind, body)
        if entry.kind == "transition":
            return self._moved(body)
        if entry.kind == "part.returned":
            return returned.told(entry)
        tell = _TOLD.get(entry.kind, _plainly)
        return _ID.sub("", tell({**body, "named": self._name(entry.kind, body)})).strip().rstrip(":")

    def _learn(self, kind: str, body: Body) -> None:
        if kind == "fault":
            self._named[body["fault"]] = f"{body['class']} on {body['subject']}"
        elif kind == "decision":
            self._named[body["decision"]] = _reasons(body)
        elif kind == "effect.intent":
            self._named[body["effect"]] = body["action"]
        elif kind.startswith("ticket.") and body.get("title"):
            self._named[body["ticket"]] = body["title"]
        if len(self._named) > MOST:
            del self._named[next(iter(self._named))]

    def _name(self, kind: str, body: Body) -> str:
        """Return what the line is about, "" where that was never told."""
        about = {"fault.cleared": "fault", "decision.withdrawn": "decision"}.get(kind, kind.partition(".")[0])
        name = self._named.get(str(body.get(about, "")), "")
        return str(body.get("action") or name) if about == "effect" else name

    def _moved(self, body: Body) -> str:
        why = self._named.get(body.get("decision", ""), "") or body.get("reason", "")
        return f"{body['from']} → {body['to']}{f': {why}' if why else ''}"


def line(entry: Entry, teller: Teller | None = None) -> str:
    """Return an entry in one line, with the node that it is about."""
    return f"{entry.node or 'fleet'}: {(teller or Teller()).told(entry)}"


def lines(entries: list[Entry]) -> list[str]:
    """Return entries that follow each other in one line each."""
    teller = Teller()
    return [line(entry, teller) for entry in entries]


def _reasons(body: Body) -> str:
    return _ID.sub("", "; ".join(cause["text"] for cause in body["because"]))


def _decision(body: Body) -> str:
    why, rule = _reasons(body), f"[{body['rule']}]"
    waits = f", waits for {', '.join(body['blockers'])}" if body["blockers"] else ""
    match body["timing"], body["remedy"]:
        case "record", "ticket":
            return f"asks for a technician: {why}  {rule}"
        case "record", "cordon":
            return f"closes the node again: {why}  {rule}"
        case "record", "wait":
            return f"does not go to {body['to']} yet: {why}  {rule}"
        case "record", _:
            return f"noted: {why}  {rule}"
        case "pending", _:
            return f"{body['from']} → {body['to']} when idle{waits}: {why}  {rule}"
    return f"{body['from']} → {body['to']} at once: {why}  {rule}"


def _fault(body: Body) -> str:
    times = f" ({body['count']} times)" if body["count"] > 1 else ""
    return f"{body['severity']} fault {body['class']} on {body['subject']}{times}: {body.get('detail', '')}"


def _effect(word: str) -> Callable[[Body], str]:
    def tell(body: Body) -> str:
        reason = f": {body['reason']}" if body.get("reason") else ""
        return f"{body['named']} {word}{reason}".strip()

    return tell


def _ticket(word: str) -> Callable[[Body], str]:
    def tell(body: Body) -> str:
        why, name = body.get("by") or body.get("reason", ""), body.get("external", "")
        to = f" to {body.get('sink', '')}{f' as {name}' if name else ''}" if word == "delivered" else ""
        title = f": {body['named']}" if body["named"] else ""
        return f"ticket {word}{to}{title}{f' ({why})' if why else ''}"

    return tell


def _person(word: str) -> Callable[[Body], str]:
    def tell(body: Body) -> str:
        to = f" to go to {body['to']}" if body.get("to") else ""
        until = f" until {moment(body['until']):%Y-%m-%d %H:%M} UTC" if body.get("until") else ""
        return f"{word} by {body['who']}{to}{' at once' if body.get('now') else ''}{until}: {body['reason']}"

    return tell


def _photos(body: Body) -> str:
    files = listed([photo["file"] for photo in body["photos"]], 6)
    return f"{counted(len(body['photos']), 'photo')} for the dossier, added by {body['who']}: {files}"


def _seen(body: Body) -> str:
    """Tell of parts: each that is another than before, and how many are new to us."""
    changed = [f"{place} is {one['serial']}, was {one['was']}" for place, one in body["parts"].items() if "was" in one]
    gone = [
        f"{one['serial']} of {place} is in {one['to']} {one['to_place']} now"
        for place, one in body.get("gone", {}).items()
    ]
    new = [f"{place} {one['serial']}" for place, one in body["parts"].items() if "was" not in one]
    numbers = {
        serial: [SAYS.get(who, who) for who, one in body["node"].items() if one == serial]
        for serial in body["node"].values()
    }
    node = [f"serial number {serial}, by {' and '.join(who)}" for serial, who in numbers.items()]
    first = [
        f"{counted(len(new), 'part')} with {'its' if len(new) == 1 else 'their'} serial numbers ({listed(new, 3)})"
    ]
    return "; ".join([*changed, *gone, *node, *(first if new else [])])


def _replaced(body: Body) -> str:
    return (
        f"another node stands in this place: {body['new_serial']}, was {body['old_serial']}, "
        f"by {SAYS.get(body['who'], body['who'])}; "
        "repairs are counted anew"
    )


def _plainly(body: Body) -> str:
    return ", ".join(f"{name} {value}" for name, value in body.items() if value not in ("", None) and name != "named")


def _says(template: str) -> Callable[[Body], str]:
    return lambda body: template.format_map(_Loose(body))


class _Loose(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return ""


_TOLD: Mapping[str, Callable[[Body], str]] = {
    "node.enrolled": _says("first seen, pool {pool}, starts in {state}"),
    "decision": _decision,
    "decision.withdrawn": _says("no longer waits: {reason}"),
    "fault": _fault,
    "fault.cleared": lambda body: f"fault over{', ' if body['named'] else ''}{body['named']}: {body['because']}",
    "alert.resolved": _says("alert {alert} is over ({fault})"),
    "alert.elsewhere": _says("alert {alert} of no node of ours: {detail}"),
    "observe.failed": _says("{channel} did not answer: {reason}"),
    "effect.intent": _effect("begins"),
    "effect.done": _effect("was done, not yet verified"),
    "effect.tried": _effect("did not succeed, and is tried again"),
    "effect.verified": _effect("verified"),
    "effect.failed": _effect("failed"),
    "effect.unknown": _effect("ended nobody knows how"),
    "schedule.begun": _says("{schedule} of {part} begins"),
    "schedule.ran": _says("{schedule} of {part} {ended}: {reason}"),
    "verification.missed": _says("not verified: {reason}"),
    "node.undrained": _says("given back after it passed {schedule}; its drain said: {reason}"),
    "hold": _person("held"),
    "release": _person("released"),
    "certified": _person("certified"),
    "move": _person("asked"),
    "zap.asked": _person("asked"),
    "photos.taken": _photos,
    "parts.seen": _seen,
    "part.replaced": _replaced,
    "commit.accepted": lambda body: f"acts on commit {body['commit'][:12]}, signed by {body['signer']}",
    "ticket.opened": _ticket("opened"),
    "ticket.updated": _ticket("updated"),
    "ticket.closed": _ticket("closed"),
    "ticket.reopened": _ticket("reopened"),
    "ticket.delivered": _ticket("delivered"),
}
WORDED = frozenset((*_TOLD, "transition", "part.returned"))
"""The kinds of lines that have words of their own."""
