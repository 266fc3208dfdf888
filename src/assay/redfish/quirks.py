"""Which ways a BMC goes: the standard's, but for what the quirks say that fit what it tells of itself."""

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
    """How to read one BMC. The defaults are the standard's; `because` names the quirks that changed some."""

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
    """The quirks of a fleet, in the order in which they count."""

    def __init__(self, documents: Iterable[BmcQuirks] = ()) -> None:
        found = sorted(documents, key=lambda one: one.name)
        replaced = {one.extends for one in found}
        self._quirks = [pair for one in found if one.name not in replaced for pair in one.quirks.items()]

    @property
    def largest_deadline_factor(self) -> float:
        """The largest factor on deadlines that any of them asks for."""
        return max((quirk.slow or 1.0 for _, quirk in self._quirks), default=1.0)

    def dialect_of(self, said: Mapping[str, Any]) -> BmcDialect:
        """Return the ways of a BMC that says so much of itself; a quirk that asks for what is not said does not fit."""
        ways = STANDARD_DIALECT
        for name, quirk in self._quirks:
            if quirk_applies(quirk, said):
                ways = _apply_quirk(ways, name, quirk)
        return ways


def quirk_applies(quirk: BmcQuirk, said: Mapping[str, Any]) -> bool:
    """Whether a quirk is one of a BMC that says so of itself. Upper and lower case count alike."""
    patterns = quirk.applies.patterns()
    texts = {name: str(said.get(name) or "").strip().lower() for name in patterns}
    return bool(patterns) and all(texts[name] and fnmatchcase(texts[name], patterns[name].lower()) for name in patterns)


def _apply_quirk(ways: BmcDialect, name: str, quirk: BmcQuirk) -> BmcDialect:
    plain = quirk.model_dump(exclude={"applies", "why", "owner", "source", "firmware"}, exclude_none=True)
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
    return replace(
        ways, **given, firmware=(*quirk.firmware, *ways.firmware), applied_quirks=(*ways.applied_quirks, name)
    )
