"""BmcQuirks: in what the BMCs of vendors differ from the standard and from each other, as data."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

BmcLogin = Literal["session", "basic"]
SensorSchema = Literal["subsystems", "thermal-power"]
EventLogHolder = Literal["system", "managers", "chassis"]


class QuirkScope(StrictModel):
    """Whose quirk it is: shell patterns over what a BMC says of itself; all that are given must fit.

    `vendor` and `product` stand in the service root, which is read before the login; `manufacturer` and `model` at
    the system, `bmc_version` at its manager.
    """

    vendor: str = ""
    product: str = ""
    manufacturer: str = ""
    model: str = ""
    bmc_version: str = ""

    def patterns(self) -> dict[str, str]:
        """Return the patterns that are given, by name."""
        return {name: pattern for name, pattern in self.model_dump().items() if pattern}


class FirmwareSpellingRule(StrictModel):
    """How some entries of the firmware inventory are spelled: those whose whole Id fits the expression `id`.

    `part` is our id for them; `{NAME}` in it is a named group of `id`, `{NAME+1}` the number in it and one more.
    `version` finds the version in the text around it, as a group of that name; `version_in` says where to look.
    `hex_bytes`: written as bytes (`0x01 0x0B`), read as numbers with dots. `unpadded`: zeros that fill up a number do
    not count. `pending`: the entry only waits for a reset. `leave_out`: it repeats another.
    """

    id: str
    part: str = ""
    version: str = ""
    version_in: Literal["version", "id"] = "version"
    hex_bytes: bool = False
    unpadded: bool = False
    pending: bool = False
    leave_out: bool = False

    @field_validator("id", "version")
    @classmethod
    def _an_expression(cls, text: str) -> str:
        try:
            groups = re.compile(text).groupindex
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from None
        if text and text.count("(?P<version>") != ("version" in groups):
            raise ValueError("one group `version` at most")
        return text


class BmcQuirk(StrictModel):
    """One difference, who looks after it, and where it was seen.

    `event_log`: the Ids of its event log, best first; `event_log_at`: who holds it. `log_filter`: whether `$filter`
    on it can be trusted. `firmware`: how ids and versions are spelled. `expand`: whether `$expand` can be asked for.
    `login`: session or basic. `slow`: what deadlines are multiplied by. `readings`: in which schema power and air are
    told. `inlet_sensor` and `power_sensor`: the sensors that mean the whole box.
    """

    applies: QuirkScope
    why: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    source: str = Field(min_length=1)
    event_log: list[str] | None = None
    event_log_at: list[EventLogHolder] | None = None
    log_filter: bool | None = None
    firmware: list[FirmwareSpellingRule] = Field(default=[])
    expand: bool | None = None
    login: BmcLogin | None = None
    slow: float | None = Field(default=None, ge=1, le=10)
    readings: SensorSchema | None = None
    inlet_sensor: str | None = None
    power_sensor: str | None = None


class BmcQuirks(SpecDocument):
    """Quirks by name. All that fit a BMC are laid over each other in this order; a later one has the last word.

    A site overrides one in a document of its own that `extends` this, which then stands in its place.
    """

    kind: Literal["BmcQuirks"]
    quirks: dict[SpecName, BmcQuirk] = Field(default={})
