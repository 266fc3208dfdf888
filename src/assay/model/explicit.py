"""Cables that a design lists one by one, in addition to what its rules give."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from assay.model.cable import DeviceKind
from assay.model.spec import Strict
from assay.model.speed import RATE

Guid = Annotated[str, Field(pattern=r"^0x[0-9a-f]{16}$")]
LinkRate = Annotated[str, Field(pattern=RATE)]


class ExplicitEnd(Strict):
    """One end of a cable.

    `device` names a switch of the design or the adapter of a node (`n0001 mlx5_0`). A device that is neither carries
    its `guid` and `kind`, and the place where hands find it.
    """

    device: str = Field(min_length=1)
    port: int = Field(ge=1)
    guid: Guid | None = None
    kind: DeviceKind = "switch"
    rack: str = ""
    u: int = Field(default=0, ge=0)


class ExplicitCable(Strict):
    """A cable between two ends. `rate` is the design's where it is left out."""

    a: ExplicitEnd
    b: ExplicitEnd
    rate: LinkRate | None = None
    length_m: float = Field(default=0, ge=0)

    @property
    def ends(self) -> tuple[tuple[str, ExplicitEnd], tuple[str, ExplicitEnd]]:
        """Both ends, each with its key."""
        return ("a", self.a), ("b", self.b)
