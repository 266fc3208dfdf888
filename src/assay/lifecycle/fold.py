"""From the ledger's entries to the story of every node. Pure: the same entries tell the same stories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from assay.lifecycle.story import (
    Answer,
    Asked,
    Effect,
    Known,
    Move,
    Opened,
    Pending,
    Repair,
    Standing,
    Story,
    Withdrawn,
    Word,
)
from assay.lifecycle.when import written
from assay.model.action import REPAIRS
from assay.model.decision import Cause
from assay.model.entry import Entry


def fold(entries: Iterable[Entry]) -> dict[str, Story]:
    """Return the story of every enrolled node, by name. Entries of anything that was never enrolled tell none."""
    chronicle = Chronicle()
    chronicle.hear(entries)
    return chronicle.stories()


class Chronicle:
    """Stories that grow with the ledger: whoever keeps one hears each entry once, in order, from `seq` on."""

    def __init__(self) -> None:
        self.seq = 0
        self._tales: dict[str, _Tale] = {}

    def hear(self, entries: Iterable[Entry]) -> None:
        """Take in the entries that come next."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            if entry.kind == "node.enrolled":
                self._tales.setdefault(entry.node, _Tale(_beginning(entry)))
            elif tale := self._tales.get(entry.node):
                tale.hear(entry)

    def story(self, node: str) -> Story | None:
        """Return the story of a node so far, None where it was never enrolled."""
        tale = self._tales.get(node)
        return tale.told() if tale else None

    def stories(self) -> dict[str, Story]:
        """Return every story so far, by node."""
        return {name: tale.told() for name, tale in self._tales.items()}


def _beginning(entry: Entry) -> Story:
    at = written(entry.at)
    because = f"first seen; the inventory starts it in {entry.body['state']}"
    return Story(entry.node, entry.body["pool"], entry.body["state"], at, entry.id, because, at)


@dataclass(slots=True)
class _Tale:
    """A story while it is being told: the growing lists are kept apart, so that long histories stay cheap."""

    story: Story
    faults: dict[str, Known] = field(default_factory=dict)
    effects: dict[str, Effect] = field(default_factory=dict)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    repairs: list[Repair] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    noted: tuple[Cause, ...] = ()

    def hear(self, entry: Entry) -> None:
        """Take in one entry; kinds that move nothing (tickets, failed observations) are passed over."""
        if heard := _HEARD.get(entry.kind):
            heard(self, entry)

    def told(self) -> Story:
        """Return the story so far."""
        return replace(
            self.story,
            faults=tuple(self.faults.values()),
            repairs=tuple(self.repairs),
            moves=tuple(self.moves),
            effects=tuple(self.effects.values()),
            decided=frozenset(self.decisions),
        )

    def _transition(self, entry: Entry) -> None:
        at, body = written(entry.at), entry.body
        decision = body.get("decision", "")
        reasons = self.decisions.get(decision, {})
        self._now_answered("waits", "acted")
        self.moves.append(Move(at, body["from"], body["to"], decision, reasons.get("remedy", "")))
        self.story = replace(
            self.story,
            state=body["to"],
            since=at,
            stay=entry.id,
            decision=decision,
            because=self._because(_causes(reasons)) or body.get("reason", ""),
            note="",
            pending=None,
            certified=None,
            asked=self._still_asked(body["to"]),
            withdrawn=None,
            spared="",
        )

    def _because(self, causes: tuple[Cause, ...]) -> str:
        """Return why the node goes on. That an effect ended is no reason by itself: what began it stays in front."""
        only_effects = bool(causes) and all(cause.kind == "effect" for cause in causes)
        return f"{self.story.because}; then {said(causes)}" if only_effects else said(causes)

    def _still_asked(self, state: str) -> Asked | None:
        asked = self.story.asked
        return asked if asked and asked.to != state else None

    def _decision(self, entry: Entry) -> None:
        body = entry.body
        self.decisions[body["decision"]] = body
        causes = _causes(body)
        if body["timing"] == "pending":
            self.story = replace(self.story, pending=_pending(entry, causes))
        if body["timing"] != "record":
            self._answer(causes, "acted" if body["timing"] == "immediate" else "waits", entry.at)
        elif any(cause.kind == "breaker" for cause in causes):
            self._answer(causes, "breaker", entry.at)
            if any(cause.kind == "deadline" for cause in causes):
                self.story = replace(self.story, spared=written(entry.at))
        if body["timing"] == "record" and body.get("remedy") == "cordon":
            self._was_opened(body["decision"], entry.at, said(causes))
        if body["timing"] == "record" and body.get("remedy") in ("ticket", "wait"):
            self.story, self.noted = replace(self.story, note=said(causes)), causes

    def _was_opened(self, decision: str, at: str, reason: str) -> None:
        waits = self.story.pending.decision if self.story.pending else ""
        opened = Opened(decision, written(at), reason, self.story.stay, waits)
        self.story = replace(self.story, opened=(*self.story.opened, opened))

    def _answer(self, causes: tuple[Cause, ...], answer: Answer, at: str) -> None:
        for cause in causes:
            if cause.kind == "fault" and (known := self.faults.get(cause.id)) and known.answer != "acted":
                self.faults[cause.id] = replace(known, answer=answer, answered_at=written(at))

    def _withdrawn(self, entry: Entry) -> None:
        """Take back what waited. What it waited for is as if nothing had been decided; so is a person's move."""
        pending, body = self.story.pending, entry.body
        if self.story.asked and self.story.asked.id == body["decision"]:
            self.story = replace(self.story, asked=None)
        if pending is None or body["decision"] not in (pending.decision, *(cause.id for cause in pending.because)):
            return
        cordon = next(
            (e for e in self.effects.values() if e.decision == pending.decision and e.action == "cordon"), None
        )
        by, reason = body.get("by", entry.id), body.get("reason", "")
        withdrawn = Withdrawn(pending.decision, by, reason, cordon is not None)
        self.story = replace(self.story, pending=None, withdrawn=withdrawn)
        self._now_answered("waits", "")

    def _now_answered(self, before: Answer, answer: Answer) -> None:
        for known in list(self.faults.values()):
            if known.answer == before:
                self.faults[known.id] = replace(known, answer=answer)

    def _fault(self, entry: Entry) -> None:
        body = entry.body
        known = self.faults.get(body["fault"])
        self.faults[body["fault"]] = Known(
            id=body["fault"],
            fault_class=body["class"],
            subject=body["subject"],
            severity=body["severity"],
            blame=body["blame"],
            remedy=body.get("remedy", "none"),
            count=body["count"],
            first_seen=written(body["first_seen"]),
            last_seen=written(body["last_seen"]),
            detail=body.get("detail", ""),
            marks=body.get("marks", {}),
            times=tuple(body.get("times", ())),
            answer=known.answer if known else "",
            answered_at=known.answered_at if known else "",
        )

    def _cleared(self, entry: Entry) -> None:
        if known := self.faults.get(entry.body["fault"]):
            self.faults[known.id] = replace(known, cleared_at=written(entry.at))
            if known.id in {cause.id for cause in self.noted}:
                self.story = replace(self.story, note="")

    def _intent(self, entry: Entry) -> None:
        body = entry.body
        effect = Effect(body["effect"], body["action"], body["decision"], "intent", written(entry.at))
        self.effects.setdefault(effect.id, effect)

    def _effect(self, entry: Entry) -> None:
        begun = self.effects.get(entry.body["effect"])
        if begun is None or begun.standing in ("verified", "failed"):
            return
        standing = _standing(entry.kind)
        at = written(entry.at)
        self.effects[begun.id] = replace(begun, standing=standing, at=at, reason=entry.body.get("reason", ""))
        if standing == "verified" and begun.action in REPAIRS:
            self.repairs.append(Repair(begun.action, at, begun.id))

    def _replaced(self, entry: Entry) -> None:
        self.repairs.append(Repair("replaced", written(entry.at), entry.id))

    def _person(self, entry: Entry) -> None:
        until = entry.body.get("until", "")
        word = Word(entry.id, entry.body["who"], entry.body["reason"], written(entry.at), until and written(until))
        if entry.kind == "certified":
            self.repairs.append(Repair("certified", word.at, word.id))
            self.story = replace(self.story, certified=word)
        else:
            self.story = replace(self.story, held=word if entry.kind == "hold" else None)

    def _asked(self, entry: Entry) -> None:
        body = entry.body
        to, at, now = body["to"], written(entry.at), bool(body.get("now"))
        asked = Asked(entry.id, to, body["who"], body["reason"], at, now)
        self.story = replace(self.story, asked=asked if to != self.story.state else None)


_HEARD: dict[str, Callable[[_Tale, Entry], None]] = {
    "transition": _Tale._transition,
    "decision": _Tale._decision,
    "decision.withdrawn": _Tale._withdrawn,
    "fault": _Tale._fault,
    "fault.cleared": _Tale._cleared,
    "effect.intent": _Tale._intent,
    **{f"effect.{standing}": _Tale._effect for standing in get_args(Standing) if standing != "intent"},
    **dict.fromkeys(("hold", "release", "certified"), _Tale._person),
    **dict.fromkeys(("move", "zap.asked"), _Tale._asked),
    "part.replaced": _Tale._replaced,
}


def said(causes: Iterable[Cause]) -> str:
    """Return causes in one line for people."""
    return "; ".join(cause.text for cause in causes)


def _standing(kind: str) -> Standing:
    standings: dict[str, Standing] = {f"effect.{one}": one for one in get_args(Standing)}
    return standings[kind]


def _causes(body: dict[str, Any]) -> tuple[Cause, ...]:
    return tuple(Cause(one["kind"], one["id"], one["text"]) for one in body.get("because", ()))


def _pending(entry: Entry, because: tuple[Cause, ...]) -> Pending:
    body = entry.body
    return Pending(
        decision=body["decision"],
        to=body["to"],
        since=written(entry.at),
        rule=body["rule"],
        remedy=body.get("remedy", ""),
        because=because,
        blockers=tuple(body["blockers"]),
    )
