"""Entries about scheduled work: slots that began and ended, visits, verifications missed, drains that were undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Self

from assay.model.entries.entry_content import EntryBody, EntryContent
from assay.model.facts import fact, from_json, shown, to_stored


@fact
class ScheduleStartedEntry(EntryContent):
    """A slot of a schedule began. `part` is a pool or fabric, `job` the work, `slot` the time it stands for."""

    kind = "schedule.begun"
    schedule: str
    part: str
    job: str = shown("does", missing="")
    slot: str = shown(missing="")
    attempt: int = shown(missing=1)


@fact
class ScheduleRanEntry(EntryContent):
    """A slot of a schedule ended."""

    kind = "schedule.ran"
    schedule: str
    """The name of the schedule."""
    part: str
    """The pool or fabric that it was for."""
    job: str = shown("does", missing="")
    """What it does, such as observe or validate."""
    slot: str = shown(missing="")
    """When it was due: ISO 8601 with the offset of UTC."""
    attempt: int = shown(missing=1)
    """Which attempt it was."""
    ended: str
    """How it ended: done, failed or lost."""
    reason: str = shown(missing="")
    """Why it ended so."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the work found; the ledger has it beside the rest."""

    @classmethod
    def _parse_body(cls, body: EntryBody) -> Self:
        names = {"does", *(each.name for each in fields(cls))}
        facts = {name: value for name, value in body.items() if name not in names}
        return from_json(cls, {**body, "facts": facts})

    def _encode_body(self) -> dict[str, Any]:
        body = to_stored(self)
        facts = body.pop("facts")
        return {**body, **facts}


@fact
class VerificationMissedEntry(EntryContent):
    """A node was in use in so many slots that it was not verified `since` then (ISO 8601 UTC)."""

    kind = "verification.missed"
    schedule: str
    since: str = shown(missing="")
    reason: str


@fact
class NodeLoadedEntry(EntryContent):
    """A visit of a schedule loaded an idle node. `slot` is the time that it stands for (ISO 8601 UTC).

    `gpus` are the serial numbers of its GPUs. `parts` says by part how it `ended` (done, cut, lacking) and, where it
    counts in units, `units`, `tests` (units by test), `last_unit`, `after` (the unit before its first, "" if that was
    the first of all) and `seeds` (after so many, all are computed); where GPUs of the spec are not there, `without` how
    many. `reason`: who took the node in the middle. `gone_ms`: how many milliseconds at most that customer waited until
    the load was gone; None if that is not known.
    """

    kind = "node.loaded"
    schedule: str
    slot: str = shown(missing="")
    gpus: tuple[str, ...] = ()
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""
    gone_ms: int | None = None


@fact
class NodeUndrainedEntry(EntryContent):
    """A drained node passed a scheduled verification, and its drain was undone; `reason` is what the drain said."""

    kind = "node.undrained"
    schedule: str
    slot: str = shown(missing="")
    reason: str
