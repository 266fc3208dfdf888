"""Sub-codes of the NVLink XIDs 144 to 150: which unit reported what, from the words in brackets of such a line.

    145, RLW_REMAP Nonfatal XC0 i0 Link 08 (0x00000004 0x00000040 0x00000000 …)

The first word says which unit interrupted: in its low ten bits before driver R575, in its low seven since, and a
sub-code in bits 20 to 25. The second is that unit's error status. Source: NVIDIA, Analyzing Xid Errors with the Xid
Catalog, "Xid 144-150 Decode".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import Field

from assay.model.specs.spec_document import StrictModel

NvlinkResolution = Literal["reset", "ignore", "wait"]
"""What a sub-code asks for: a GPU reset, nothing, or whatever the XID 154 says that follows."""

NVLINK_XID_LINE = re.compile(
    r": (?P<xid>14[4-9]|150),.*?\b(?P<unit>[A-Z][A-Z0-9_]+(?:/[A-Z0-9_]+)?) (?P<fatal>Fatal|Nonfatal|Degraded)\b.*?"
    r"(?:Link (?P<link>-?\d+))?(?: [(\[](?P<info>0x[0-9a-fA-F]{1,8})(?: (?P<status>0x[0-9a-fA-F]{1,8}))?|$)"
)


class NvlinkUnit(StrictModel):
    """One unit: its names, and its number before and since driver R575. Unlisted sub-codes of it are for `otherwise`.

    A status is a bit of the unit's error status; `sub` are sub-codes that it may have, none for 0.
    """

    names: list[str] = Field(min_length=1)
    before_r575: int = Field(ge=0, le=0x3FF)
    since_r575: int = Field(ge=0, le=0x7F)
    sub: list[int] = Field(default=[])
    reset: list[int] = Field(default=[])
    wait: list[int] = Field(default=[])
    ignore: list[int] = Field(default=[])
    otherwise: NvlinkResolution | None = None

    def resolve(self, info: int, status: int) -> NvlinkResolution | None:
        """Return what the two words ask for, None where they are not of this unit or not listed."""
        if self.before_r575 != info & 0x3FF and self.since_r575 != info & 0x7F:
            return None
        if (info >> 20 & 0x3F) not in (self.sub or [0]):
            return None
        for resolution in ("reset", "wait", "ignore"):
            if status in getattr(self, resolution):
                return resolution
        return self.otherwise


class NvlinkCode(NamedTuple):
    """What one line says: the unit by name, its link ("" where it names none), both words, what they ask for.

    `info` is None where the line breaks off before its words.
    """

    unit: str
    link: str
    fatal: bool
    info: int | None
    status: int
    resolution: NvlinkResolution | None

    @property
    def needs_action(self) -> bool:
        """Whether it asks for something: as the catalogue says, else as the driver does, who calls it fatal or not."""
        return self.fatal if self.resolution is None else self.resolution == "reset"

    def __str__(self) -> str:
        where = f", link {self.link}" if self.link else ""
        asks = {"reset": "asks for a reset", "ignore": "needs nothing", "wait": "leaves it to the XID 154 that follows"}
        strange = f"{'fatal' if self.fatal else 'not fatal'}, and not in the catalogue"
        said = asks[self.resolution] if self.resolution else strange
        return f"{self.unit}{where}, status {self.status:#010x}: {said}"


def decode_nvlink_xid(text: str, units: Iterable[NvlinkUnit]) -> NvlinkCode | None:
    """Return the sub-code of an NVLink XID's line, None where the line carries none.

    Units whose name the line gives are asked first; numbers mean the same in no two of them.
    """
    found = NVLINK_XID_LINE.search(text)
    if found is None:
        return None
    fatal, link = found["fatal"] != "Nonfatal", found["link"] or ""
    if not found["info"]:
        return NvlinkCode(found["unit"], link, fatal, None, 0, None)
    info, status = int(found["info"], 16), int(found["status"] or "0", 16)
    named = [unit for unit in units if set(found["unit"].split("/")) & set(unit.names)]
    meant = next((means for unit in named if (means := unit.resolve(info, status))), None)
    return NvlinkCode(found["unit"], link, fatal, info, status, meant)
