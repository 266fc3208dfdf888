"""Sub-codes of the NVLink XIDs 144 to 150: which unit reported which error, from two words of the kernel line.

    145, RLW_REMAP Nonfatal XC0 i0 Link 08 (0x00000004 0x00000040 0x00000000 …)

The first word names the unit (low ten bits before driver R575, low seven since) and a sub-code (bits 20 to 25). The
second word is the unit's error status. Source: NVIDIA, Analyzing Xid Errors with the Xid Catalog, "Xid 144-150
Decode".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import Field

from assay.model.specs.spec_document import StrictModel

NvlinkResolution = Literal["reset", "ignore", "wait"]
"""What a sub-code asks for: a GPU reset, nothing, or what the XID 154 that follows says."""

NVLINK_XID_LINE = re.compile(
    r": (?P<xid>14[4-9]|150),.*?\b(?P<unit>[A-Z][A-Z0-9_]+(?:/[A-Z0-9_]+)?) (?P<fatal>Fatal|Nonfatal|Degraded)\b.*?"
    r"(?:Link (?P<link>-?\d+))?(?: [(\[](?P<info>0x[0-9a-fA-F]{1,8})(?: (?P<status>0x[0-9a-fA-F]{1,8}))?|$)"
)


class NvlinkUnit(StrictModel):
    """One unit: its names, and its number before and since driver R575.

    `reset`, `wait` and `ignore` list error statuses; `otherwise` applies to all others. `sub`: the sub-codes of this
    unit (empty: only 0).

    `names`: as NVIDIA writes them. `before_r575`, `since_r575`: the number in drivers of that time.
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
        """Return what the two words ask for, None if they belong to another unit or are not listed."""
        if self.before_r575 != info & 0x3FF and self.since_r575 != info & 0x7F:
            return None
        if (info >> 20 & 0x3F) not in (self.sub or [0]):
            return None
        for resolution in ("reset", "wait", "ignore"):
            if status in getattr(self, resolution):
                return resolution
        return self.otherwise


class NvlinkCode(NamedTuple):
    """One decoded line: the unit, its link ("" if not given), both words, and what they ask for.

    `info` is None if the line breaks off before its words. `resolution` is None if the catalogue does not list it.
    """

    unit: str
    link: str
    fatal: bool
    info: int | None
    status: int
    resolution: NvlinkResolution | None

    @property
    def needs_action(self) -> bool:
        """Whether a GPU reset is needed: by the catalogue if it lists the code, else if the driver calls it fatal."""
        return self.fatal if self.resolution is None else self.resolution == "reset"

    def __str__(self) -> str:
        where = f", link {self.link}" if self.link else ""
        asks = {"reset": "asks for a reset", "ignore": "needs nothing", "wait": "leaves it to the XID 154 that follows"}
        unlisted = f"{'fatal' if self.fatal else 'not fatal'}, and not in the catalogue"
        advice = asks[self.resolution] if self.resolution else unlisted
        return f"{self.unit}{where}, status {self.status:#010x}: {advice}"


def decode_nvlink_xid(text: str, units: Iterable[NvlinkUnit]) -> NvlinkCode | None:
    """Return the decoded line of an NVLink XID, None for any other line.

    Only the units that the line names are considered: the same number means something else in another unit.
    """
    match = NVLINK_XID_LINE.search(text)
    if match is None:
        return None
    fatal, link = match["fatal"] != "Nonfatal", match["link"] or ""
    if not match["info"]:
        return NvlinkCode(match["unit"], link, fatal, None, 0, None)
    info, status = int(match["info"], 16), int(match["status"] or "0", 16)
    named = [unit for unit in units if set(match["unit"].split("/")) & set(unit.names)]
    resolution = next((known for unit in named if (known := unit.resolve(info, status))), None)
    return NvlinkCode(match["unit"], link, fatal, info, status, resolution)
