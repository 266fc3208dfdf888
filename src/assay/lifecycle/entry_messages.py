"""One line for people for each line of the ledger: what changed, who changed it, and why. No internal ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.lifecycle import asset_history
from assay.model.ledger_entry import LedgerEntry
from assay.model.text_lists import format_count, format_list
from assay.model.timestamps import parse_time

EntryBody = Mapping[str, Any]
SOURCE_NAMES = {"inventory": "the inventory", "bmc": "its BMC", "dmi": "its firmware"}
MAX_REMEMBERED_NAMES = 50_000
"""Of so many things the names are kept, those that were told last."""
_ID = re.compile(r",? ?(?:by |of |after )?(?:the )?(?:decision|effect|fault) [0-9a-f]{16}\b")


class EntryFormatter:
    """Tells lines in their order; what a line names by an id is told by what it is, where that was told before."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}

    def format(self, entry: LedgerEntry) -> str:
        """Return what an entry says, in one line."""
        body = entry.body
        self._remember_name(entry.kind, body)
        if entry.kind == "transition":
            return self._format_transition(body)
        if entry.kind == "part.returned":
            return asset_history.describe_returned_part(entry)
        tell = _FORMATTERS.get(entry.kind, _format_plain)
        return _ID.sub("", tell({**body, "named": self._name(entry.kind, body)})).strip().rstrip(":")

    def _remember_name(self, kind: str, body: EntryBody) -> None:
        if kind == "fault":
            self._named[body["fault"]] = f"{body['class']} on {body['subject']}"
        elif kind == "decision":
            self._named[body["decision"]] = _format_reasons(body)
        elif kind == "effect.intent":
            self._named[body["effect"]] = body["action"]
        elif kind.startswith("ticket.") and body.get("title"):
            self._named[body["ticket"]] = body["title"]
        if len(self._named) > MAX_REMEMBERED_NAMES:
            del self._named[next(iter(self._named))]

    def _name(self, kind: str, body: EntryBody) -> str:
        """Return what the line is about, "" where that was never told."""
        about = {"fault.cleared": "fault", "decision.withdrawn": "decision"}.get(kind, kind.partition(".")[0])
        name = self._named.get(str(body.get(about, "")), "")
        return str(body.get("action") or name) if about == "effect" else name

    def _format_transition(self, body: EntryBody) -> str:
        why = self._named.get(body.get("decision", ""), "") or body.get("reason", "")
        return f"{body['from']} → {body['to']}{f': {why}' if why else ''}"


def format_entry(entry: LedgerEntry, teller: EntryFormatter | None = None) -> str:
    """Return an entry in one line, with the node that it is about."""
    return f"{entry.node or 'fleet'}: {(teller or EntryFormatter()).format(entry)}"


def format_entries(entries: list[LedgerEntry]) -> list[str]:
    """Return entries that follow each other in one line each."""
    teller = EntryFormatter()
    return [format_entry(entry, teller) for entry in entries]


def _format_reasons(body: EntryBody) -> str:
    return _ID.sub("", "; ".join(cause["text"] for cause in body["because"]))


def _format_decision(body: EntryBody) -> str:
    why, rule = _format_reasons(body), f"[{body['rule']}]"
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


def _format_fault(body: EntryBody) -> str:
    times = f" ({body['count']} times)" if body["count"] > 1 else ""
    return f"{body['severity']} fault {body['class']} on {body['subject']}{times}: {body.get('detail', '')}"


def _effect_formatter(word: str) -> Callable[[EntryBody], str]:
    def tell(body: EntryBody) -> str:
        reason = f": {body['reason']}" if body.get("reason") else ""
        return f"{body['named']} {word}{reason}".strip()

    return tell


def _ticket_formatter(word: str) -> Callable[[EntryBody], str]:
    def tell(body: EntryBody) -> str:
        why, name = body.get("by") or body.get("reason", ""), body.get("external", "")
        to = f" to {body.get('sink', '')}{f' as {name}' if name else ''}" if word == "delivered" else ""
        title = f": {body['named']}" if body["named"] else ""
        return f"ticket {word}{to}{title}{f' ({why})' if why else ''}"

    return tell


def _person_formatter(word: str) -> Callable[[EntryBody], str]:
    def tell(body: EntryBody) -> str:
        to = f" to go to {body['to']}" if body.get("to") else ""
        until = f" until {parse_time(body['until']):%Y-%m-%d %H:%M} UTC" if body.get("until") else ""
        return f"{word} by {body['who']}{to}{' at once' if body.get('now') else ''}{until}: {body['reason']}"

    return tell


def _format_photos(body: EntryBody) -> str:
    files = format_list([photo["file"] for photo in body["photos"]], 6)
    return f"{format_count(len(body['photos']), 'photo')} for the dossier, added by {body['who']}: {files}"


def _format_parts_seen(body: EntryBody) -> str:
    """Tell of parts: each that is another than before, and how many are new to us."""
    changed = [f"{place} is {one['serial']}, was {one['was']}" for place, one in body["parts"].items() if "was" in one]
    gone = [
        f"{one['serial']} of {place} is in {one['to']} {one['to_place']} now"
        for place, one in body.get("gone", {}).items()
    ]
    new = [f"{place} {one['serial']}" for place, one in body["parts"].items() if "was" not in one]
    numbers = {
        serial: [SOURCE_NAMES.get(who, who) for who, one in body["node"].items() if one == serial]
        for serial in body["node"].values()
    }
    node = [f"serial number {serial}, by {' and '.join(who)}" for serial, who in numbers.items()]
    first = [
        f"{format_count(len(new), 'part')} with {'its' if len(new) == 1 else 'their'} serial numbers ({format_list(new, 3)})"
    ]
    return "; ".join([*changed, *gone, *node, *(first if new else [])])


def _format_replaced_node(body: EntryBody) -> str:
    return (
        f"another node stands in this place: {body['new_serial']}, was {body['old_serial']}, "
        f"by {SOURCE_NAMES.get(body['who'], body['who'])}; "
        "repairs are counted anew"
    )


def _format_plain(body: EntryBody) -> str:
    return ", ".join(f"{name} {value}" for name, value in body.items() if value not in ("", None) and name != "named")


def _template_formatter(template: str) -> Callable[[EntryBody], str]:
    return lambda body: template.format_map(_BlankMissing(body))


class _BlankMissing(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return ""


_FORMATTERS: Mapping[str, Callable[[EntryBody], str]] = {
    "node.enrolled": _template_formatter("first seen, pool {pool}, starts in {state}"),
    "decision": _format_decision,
    "decision.withdrawn": _template_formatter("no longer waits: {reason}"),
    "fault": _format_fault,
    "fault.cleared": lambda body: f"fault over{', ' if body['named'] else ''}{body['named']}: {body['because']}",
    "alert.resolved": _template_formatter("alert {alert} is over ({fault})"),
    "alert.elsewhere": _template_formatter("alert {alert} of no node of ours: {detail}"),
    "observe.failed": _template_formatter("{channel} did not answer: {reason}"),
    "effect.intent": _effect_formatter("begins"),
    "effect.done": _effect_formatter("was done, not yet verified"),
    "effect.tried": _effect_formatter("did not succeed, and is tried again"),
    "effect.verified": _effect_formatter("verified"),
    "effect.failed": _effect_formatter("failed"),
    "effect.unknown": _effect_formatter("ended nobody knows how"),
    "schedule.begun": _template_formatter("{schedule} of {part} begins"),
    "schedule.ran": _template_formatter("{schedule} of {part} {ended}: {reason}"),
    "verification.missed": _template_formatter("not verified: {reason}"),
    "node.undrained": _template_formatter("given back after it passed {schedule}; its drain said: {reason}"),
    "hold": _person_formatter("held"),
    "release": _person_formatter("released"),
    "certified": _person_formatter("certified"),
    "move": _person_formatter("asked"),
    "zap.asked": _person_formatter("asked"),
    "photos.taken": _format_photos,
    "parts.seen": _format_parts_seen,
    "part.replaced": _format_replaced_node,
    "commit.accepted": lambda body: f"acts on commit {body['commit'][:12]}, signed by {body['signer']}",
    "ticket.opened": _ticket_formatter("opened"),
    "ticket.updated": _ticket_formatter("updated"),
    "ticket.closed": _ticket_formatter("closed"),
    "ticket.reopened": _ticket_formatter("reopened"),
    "ticket.delivered": _ticket_formatter("delivered"),
}
FORMATTED_KINDS = frozenset((*_FORMATTERS, "transition", "part.returned"))
"""The kinds of lines that have words of their own."""
