"""Decides how to read one BMC: by the Redfish standard, changed by the quirks that match its identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from assay.model.specs.bmc_quirks import BmcLogin, BmcQuirk, BmcQuirks, FirmwareSpellingRule, SensorSchema

STANDARD_LOGS = tuple(
    f"{holder}/*/LogServices/{ident}"
    for holder in ("Systems", "Managers", "Chassis")
    for ident in ("SEL", "Sel", "EventLog", "Event", "Log1", "IML", "FaultLog", "FaultList")
)
"""The names that services give to the log of the machine's events."""
STANDARD_FIRMWARE_RULES = (FirmwareSpellingRule(id=r"(?P<part>.+)_[Pp]ending", part="{part}", pending=True),)


@dataclass(frozen=True)
class BmcDialect:
    """How to read one BMC. The defaults are the standard's; `applied_quirks` names the quirks that changed some."""

    logs: tuple[str, ...] = STANDARD_LOGS
    logs_left_out: tuple[str, ...] = ()
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
_ADDED = ("firmware", "logs", "logs_left_out")
"""Fields of a quirk that add to those of other quirks."""


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
    """Return whether all patterns of a quirk match. Case is ignored; a part that is unknown matches no pattern.

    Of a part with several values (`system`), one must match.
    """
    patterns = quirk.applies.patterns()
    for name, pattern in patterns.items():
        part = identity.get(name)
        texts = [str(text or "").strip().lower() for text in (part if isinstance(part, list) else [part])]
        if not any(text and fnmatchcase(text, pattern.lower()) for text in texts):
            return False
    return bool(patterns)


def _apply_quirk(dialect: BmcDialect, name: str, quirk: BmcQuirk) -> BmcDialect:
    settings = quirk.model_dump(exclude={"applies", "why", "owner", "source", *_ADDED}, exclude_none=True)
    changes: dict[str, Any] = {key: tuple(new) if isinstance(new, list) else new for key, new in settings.items()}
    return replace(
        dialect,
        **changes,
        firmware=(*quirk.firmware, *dialect.firmware),
        logs=(*dialect.logs, *quirk.logs),
        logs_left_out=(*dialect.logs_left_out, *quirk.logs_left_out),
        applied_quirks=(*dialect.applied_quirks, name),
    )
