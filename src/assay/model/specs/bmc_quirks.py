"""BmcQuirks: how BMCs deviate from the Redfish standard and from each other, as data."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

BmcLogin = Literal["session", "basic"]
SensorSchema = Literal["subsystems", "thermal-power"]
EventLogHolder = Literal["system", "managers", "chassis"]


class QuirkScope(StrictModel):
    """The BMCs that have a quirk: shell patterns over what a BMC reports. All patterns given must match.

    `vendor` and `product` are in the service root, which is read before login. `manufacturer` and `model` are
    properties of the system, `bmc_version` of its manager.
    """

    vendor: str = ""
    product: str = ""
    manufacturer: str = ""
    model: str = ""
    bmc_version: str = ""

    def patterns(self) -> dict[str, str]:
        """Return the patterns that are not empty, by name."""
        return {name: pattern for name, pattern in self.model_dump().items() if pattern}


class FirmwareSpellingRule(StrictModel):
    """How to read firmware inventory entries whose whole Id matches the regular expression `id`.

    - `part`: assay's id for the entry. `{NAME}` is a named group of `id`, `{NAME+1}` its number plus one.
    - `version`: a regular expression with a group `version`. It is applied to the entry's version or Id (`version_in`).
    - `hex_bytes`: the version is written as bytes (`0x01 0x0B`) and read as numbers with dots. `unpadded`: leading
      zeros do not count.
    - `pending`: the entry waits for a reset. `leave_out`: the entry repeats another one.

    `version_in`: what `version` is applied to.
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
    def _check_expression(cls, text: str) -> str:
        try:
            groups = re.compile(text).groupindex
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if text and text.count("(?P<version>") != ("version" in groups):
            raise ValueError("one group `version` at most")
        return text


class BmcQuirk(StrictModel):
    """One deviation: the BMCs that have it, its owner, and where it was observed.

    - `event_log`: Ids of the event log, best first. `event_log_at`: the resources that hold it. `log_filter`: whether
      `$filter` works on it. `expand`: whether `$expand` works. `login`: session or basic authentication.
    - `firmware`: how Ids and versions are written. `slow`: the factor by which deadlines grow.
    - `readings`: the schema of power and cooling. `inlet_sensor`, `power_sensor`: the sensors for the whole chassis.

    `applies`: the BMCs that have it. `owner`: the team that answers for it.
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
    """Quirks by name. All that match a BMC are merged in this order; later ones win.

    To override a quirk, write a document that `extends` this one. It then replaces this one.

    `quirks`: the deviations by name.
    """

    kind: Literal["BmcQuirks"]
    quirks: dict[SpecName, BmcQuirk] = Field(default={})
