"""Decides how to read one BMC: by the Redfish standard, changed by the quirks that match its identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from assay.model.specs.bmc_quirks import (
    BmcLogin,
    BmcQuirk,
    BmcQuirks,
    EventLogHolder,
    FirmwareSpellingRule,
    SensorSchema,
)

STANDARD_FIRMWARE_RULES = (FirmwareSpellingRule(id=r"(?P<part>.+)_[Pp]ending", part="{part}", pending=True),)


@dataclass(frozen=True)
class BmcDialect:
    """How to read one BMC. The defaults are the standard's; `applied_quirks` names the quirks that changed some."""

    event_log: tuple[str, ...] = ("SEL", "EventLog", "Event", "Log1")
    event_log_at: tuple[EventLogHolder, ...] = ("system", "managers", "chassis")
    log_filter: bool = True
    firmware: tuple[FirmwareSpellingRule, ...] = STANDARD_FIRMWARE_RULES
    expand: bool = True
    login: BmcLogin = "session"
    slow: float = 1.0
    readings: SensorSchema = "subsystems"
    inlet_sensor: str = ""
    power_sensor: str = ""
    applied_quirks: tuple[str, ...] = field(default=())


STANDARD_DIALECT = BmcDialect()


class BmcQuirkSet:
    """The quirks of a fleet: documents by name, later quirks over earlier ones. Extended documents are left out."""

    def __init__(self, documents: Iterable[BmcQuirks] = ()) -> None:
        by_name = sorted(documents, key=lambda document: document.name)
        extended = {document.extends for document in by_name}
        self._quirks = [
            item for document in by_name if document.name not in extended for item in document.quirks.items()
        ]

    @property
    def largest_deadline_factor(self) -> float:
        """The largest factor on deadlines in any quirk, 1 where there is none."""
        return max((quirk.slow or 1.0 for _, quirk in self._quirks), default=1.0)

    def dialect_of(self, identity: Mapping[str, Any]) -> BmcDialect:
        """Return the dialect of a BMC with this identity."""
        dialect = STANDARD_DIALECT
        for name, quirk in self._quirks:
            if quirk_applies(quirk, identity):
                dialect = _apply_quirk(dialect, name, quirk)
        return dialect


def quirk_applies(quirk: BmcQuirk, identity: Mapping[str, Any]) -> bool:
    """Return whether all patterns of a quirk match. Case is ignored; a part that is unknown matches no pattern."""
    patterns = quirk.applies.patterns()
    texts = {name: str(identity.get(name) or "").strip().lower() for name in patterns}
    return bool(patterns) and all(texts[name] and fnmatchcase(texts[name], patterns[name].lower()) for name in patterns)


def _apply_quirk(dialect: BmcDialect, name: str, quirk: BmcQuirk) -> BmcDialect:
    settings = quirk.model_dump(exclude={"applies", "why", "owner", "source", "firmware"}, exclude_none=True)
    changes: dict[str, Any] = {key: tuple(new) if isinstance(new, list) else new for key, new in settings.items()}
    return replace(
        dialect,
        **changes,
        firmware=(*quirk.firmware, *dialect.firmware),
        applied_quirks=(*dialect.applied_quirks, name),
    )
