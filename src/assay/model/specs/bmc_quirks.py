"""BmcQuirks: how BMCs deviate from the Redfish standard and from each other, as data."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

BmcLogin = Literal["session", "basic"]
SensorSchema = Literal["subsystems", "thermal-power"]
LOG_PATTERN = r"(Systems|Managers|Chassis)/[^/]+/LogServices/[^/]+"
"""A shell pattern of the paths of log services, below `/redfish/v1/`."""
LogPathPattern = Annotated[str, Field(pattern=f"^{LOG_PATTERN}$")]


class QuirkScope(StrictModel):
    """The BMCs that have a quirk: shell patterns over what a BMC reports. All patterns given must match.

    `vendor` and `product` are in the service root, which is read before login. `manufacturer` and `model` are
    properties of the system, `bmc_version` of its manager, `system` is the Id of any of its systems.
    """

    vendor: str = ""
    product: str = ""
    manufacturer: str = ""
    model: str = ""
    bmc_version: str = ""
    system: str = ""

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

    - `logs`: event logs that are read besides the standard ones, such as `Chassis/HGX_GPU_*/LogServices/XID`;
      `logs_left_out`: those that hold no events of the machine. Several quirks' patterns count together.
    - `log_filter`: whether `$filter` works on logs. `expand`: whether `$expand` works. `login`: session or basic
      authentication.
    - `firmware`: how Ids and versions are written. `slow`: the factor by which deadlines grow.
    - `readings`: the schema of power and cooling. `inlet_sensor`, `power_sensor`: the sensors for the whole chassis.

    `applies`: the BMCs that have it. `owner`: the team that answers for it.
    """

    applies: QuirkScope
    why: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    source: str = Field(min_length=1)
    logs: list[LogPathPattern] = Field(default=[])
    logs_left_out: list[LogPathPattern] = Field(default=[])
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
