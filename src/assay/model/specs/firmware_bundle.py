"""FirmwareBundle: the versions that belong together, and how each is brought onto a node."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.spec_document import SpecDocument, StrictModel

FirmwareReset = Literal["none", "bmc", "host", "ac"]
FirmwarePush = Literal["simple", "multipart"]


def _require_digest(digest: Any) -> Any:
    if digest in (None, ""):
        said = "an artifact without its sha256: nobody could tell whether it is the image that was qualified"
        raise ConflictError(FieldConflict("ASY0048", (), said, "add `sha256:`, as `sha256sum FILE` prints it"))
    return digest


ImageDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$"), BeforeValidator(_require_digest)]


class FirmwareComponent(StrictModel):
    """One component of the bundle.

    `inventory` lists every id under the BMC's `UpdateService/FirmwareInventory` that must read `version`;
    `artifact` is a path below the fleet repository; `reset` what must restart before the version counts.
    `after` names components that must be on the node before this one is pushed.
    """

    name: str
    version: str
    inventory: list[str] = Field(min_length=1)
    artifact: str = Field(pattern=r"^[\w.+-][\w./+-]*$")
    sha256: ImageDigest
    push: FirmwarePush
    reset: FirmwareReset
    order: int = Field(ge=0)
    after: list[str] = Field(default=[])
    hca: bool = False

    @model_validator(mode="before")
    @classmethod
    def _a_digest_that_is_left_out_is_missing(cls, data: Any) -> Any:
        """Hand a digest that is left out to the field's own validator, which says what is lacking and why."""
        return {"sha256": None, **data} if isinstance(data, dict) else data


class FirmwareBundle(SpecDocument):
    """Component → version. Applied in `order`; read back after each reset."""

    kind: Literal["FirmwareBundle"]
    components: list[FirmwareComponent] = Field(min_length=1)
