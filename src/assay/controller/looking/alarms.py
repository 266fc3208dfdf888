"""Turns alerts into faults in the ledger, once each, and notes those that are over or of no node of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from assay.controller.desk import Desk
from assay.controller.lock import told_by_one
from assay.controller.looking.stream import Stream
from assay.lifecycle import journal
from assay.lifecycle.classify import resolved_in
from assay.lifecycle.fold import Chronicle
from assay.lifecycle.sightings import parts_of
from assay.lifecycle.when import written
from assay.model.entry import Entry, derived_id
from assay.model.evidence import Evidence
from assay.model.reading import value
from assay.observe.alerts import Placed


class Taken(NamedTuple):
    """How many alerts are taken, how many of them no rule says the fault of, how many name no node of ours."""

    taken: int
    unmapped: int
    elsewhere: int


class Alarms:
    """Keeps up with the ledger. For one thread at a time; `tell` is told in one line what no rule knows."""

    def __init__(self, desk: Desk, tell: Callable[[str], None] = lambda _: None) -> None:
        self._desk, self._tell = desk, tell
        self._stream, self._chronicle = Stream(desk), Chronicle()

    def take(self, alerts: Sequence[Placed]) -> Taken:
        """Write down what these alerts say; the same again adds nothing. Raises Trouble: then send all again."""
        ours = sorted((one for one in alerts if one.node), key=lambda one: (one.node, one.alert.began))
        elsewhere = [one for one in alerts if not one.node]
        firing = [one for one in ours if one.alert.status == "firing"]
        self._stream.take([self._evidence(node, some) for node, some in groupby(firing, lambda one: one.node)])
        resolved = [one for one in ours if one.alert.status == "resolved"]
        with told_by_one(self._desk.home):
            self._chronicle.hear(self._desk.ledger.entries(after=self._chronicle.seq))
            entries = [entry for one in resolved for entry in self._over(one)]
            self._desk.ledger.append(*entries, *(self._note("alert.elsewhere", one) for one in elsewhere))
        unmapped = [one for one in alerts if not one.known]
        for one in {(one.fault, one.node): one for one in (*unmapped, *elsewhere)}.values():
            self._tell(_strange(one))
        return Taken(len(alerts), len(unmapped), len(elsewhere))

    def _evidence(self, node: str, alerts: Iterable[Placed]) -> Evidence:
        firing = [
            {
                "fault": one.fault,
                "part": one.part,
                "at": one.alert.began.isoformat(),
                "detail": _detail(one),
                "fingerprint": one.alert.fingerprint,
            }
            for one in alerts
        ]
        return Evidence(node, self._desk.clock.now(), {"alerts": {"firing": value(firing)}})

    def _over(self, one: Placed) -> list[Entry]:
        """Return the note that an alert is over, and where its rule says so the end of its fault."""
        noted = self._note("alert.resolved", one)
        story = self._chronicle.story(one.node)
        if story is None or not one.over:
            return [noted]
        node, parts = self._desk.fleet.nodes[one.node], parts_of(self._desk.fleet.spec_of(one.node))
        subject = f"{node.subject}/{parts.get(one.part.lower(), one.part)}".rstrip("/")
        because = f"the alert {one.alert.name} is resolved"
        over = resolved_in(story, one.fault, subject, because)
        return [noted, *(journal.cleared(one.node, end, self._desk.clock.now()) for end in over)]

    def _note(self, kind: str, one: Placed) -> Entry:
        began = written(one.alert.began)
        said = (one.alert.fingerprint, began)
        body: dict[str, Any] = {"alert": one.alert.name, "fault": one.fault, "part": one.part, "began": began}
        body |= {"detail": _detail(one), "fingerprint": one.alert.fingerprint}
        return Entry(derived_id(kind, *said), self._desk.now, kind, one.node, body)


def _detail(one: Placed) -> str:
    said = one.alert.annotations.get("summary") or one.alert.annotations.get("description") or ""
    return f"alert {one.alert.name}{': ' if said else ''}{' '.join(said.split())}"[:300]


def _strange(one: Placed) -> str:
    where = f"on {one.node}" if one.node else f"of no node of ours ({_few(one.alert.labels)})"
    why = "" if one.known else "no rule says what it is; "
    return f"alert {one.alert.name} {where}: {why}noted as {one.fault}"


def _few(labels: Any) -> str:
    return ", ".join(f"{name}={text[:40]}" for name, text in sorted(labels.items())[:4])
