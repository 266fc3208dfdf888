"""Entries about faults, alerts, and observations that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.model.entries.entry_content import EntryContent, stored_as, stored_list

if TYPE_CHECKING:  # history is read without pydantic, which takes long to import
    from assay.model.specs.fault_catalog import FaultBlame, FaultSeverity, Remedy


@dataclass(frozen=True, slots=True)
class FaultEntry(EntryContent):
    """A fault was seen, or seen again. `fault` is its id; times are ISO 8601 UTC.

    `marks` says how far each source has been read; `times` holds the last sightings. See `lifecycle.faults`.
    """

    kind = "fault"
    fault: str
    fault_class: str = field(metadata=stored_as("class"))
    subject: str
    severity: FaultSeverity
    blame: FaultBlame = field(metadata=stored_as(missing=""))
    remedy: Remedy = field(metadata=stored_as(missing="none"))
    count: int = field(metadata=stored_as(missing=1))
    first_seen: str = field(metadata=stored_as(missing=""))
    last_seen: str = field(metadata=stored_as(missing=""))
    detail: str = field(metadata=stored_as(missing=""))
    marks: Mapping[str, str] = field(metadata=stored_as(missing={}))
    times: tuple[str, ...] = field(metadata=stored_list(missing=()))


@dataclass(frozen=True, slots=True)
class FaultClearedEntry(EntryContent):
    """A fault is over: its id, and the reason.

    `seen_up_to` is the number of its last entry that this knew; an entry after that keeps the fault open. 0: any.
    `name` is the fault's class and subject; "" in entries of older versions.
    """

    kind = "fault.cleared"
    fault: str
    reason: str = field(metadata=stored_as("because"))
    seen_up_to: int = field(default=0, metadata=stored_as(missing=0, omit_empty=True))
    name: str = field(default="", metadata=stored_as(missing="", omit_empty=True))


@dataclass(frozen=True, slots=True)
class AlertNoteEntry(EntryContent):
    """An alert: its name and fingerprint, the fault class and part that a rule maps it to, when it began."""

    alert: str
    fault: str = field(metadata=stored_as(missing=""))
    part: str = field(metadata=stored_as(missing=""))
    began: str = field(metadata=stored_as(missing=""))
    detail: str = field(metadata=stored_as(missing=""))
    fingerprint: str = field(metadata=stored_as(missing=""))


class AlertResolvedEntry(AlertNoteEntry):
    """An alert about a node of the fleet is over."""

    __slots__ = ()
    kind = "alert.resolved"


class AlertElsewhereEntry(AlertNoteEntry):
    """An alert came in that names no node of the fleet."""

    __slots__ = ()
    kind = "alert.elsewhere"


@dataclass(frozen=True, slots=True)
class ObservationFailedEntry(EntryContent):
    """A channel of a node (or a channel of no node) gave no readings, and why."""

    kind = "observe.failed"
    channel: str
    reason: str
