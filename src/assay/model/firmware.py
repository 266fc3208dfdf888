"""FirmwareBundle: the versions that belong together, and how each is brought onto a node."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.spec import Spec, Strict

Reset = Literal["none", "bmc", "host", "ac"]
Push = Literal["simple", "multipart"]


class Component(Strict):
    """One component of the bundle.

    `inventory` lists every id under the BMC's `UpdateService/FirmwareInventory` that must read `version`;
    `artifact` is a path below the fleet repository; `reset` what must restart before the version counts.
    """

    name: str
    version: str
    inventory: list[str] = Field(min_length=1)
    artifact: str = Field(pattern=r"^[\w.+-][\w./+-]*$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    push: Push
    reset: Reset
    order: int = Field(ge=0)
    hca: bool = False


class FirmwareBundle(Spec):
    """Component → version. Applied in `order`; read back after each reset."""

    kind: Literal["FirmwareBundle"]
    components: list[Component] = Field(min_length=1)
