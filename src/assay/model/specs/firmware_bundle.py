"""FirmwareBundle: the firmware versions that belong together, and how each is installed on a node."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.spec_document import SpecDocument, StrictModel

FirmwareReset = Literal["none", "bmc", "host", "ac"]
FirmwarePush = Literal["simple", "multipart"]


def _require_digest(digest: Any) -> Any:
    if digest in (None, ""):
        message = "an artifact without its sha256: nobody could tell whether it is the image that was qualified"
        raise ConflictError(FieldConflict("ASY0048", (), message, "add `sha256:`, as `sha256sum FILE` prints it"))
    return digest


ImageDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$"), BeforeValidator(_require_digest)]


class FirmwareComponent(StrictModel):
    """One component of the bundle.

    `inventory` lists the ids below the BMC's `UpdateService/FirmwareInventory` that must read `version`. `artifact` is
    a path below the fleet repository. `reset`: what must restart before the new version is active. `after`: components
    that must be installed before this one.

    `name`: the component in plans and tickets. `version`: what it must read. `sha256`: the digest of the image. `push`:
    the BMC fetches the image (simple) or gets it sent (multipart). `order`: lower numbers first. `hca`: it is the
    firmware of the adapters.
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
    def _missing_digest_as_none(cls, data: Any) -> Any:
        """Pass a missing digest to the field's validator, which explains why it is needed."""
        return {"sha256": None, **data} if isinstance(data, dict) else data


class FirmwareBundle(SpecDocument):
    """Components and their versions. They are installed in `order` and read back after each reset.

    `components`: what belongs together. A bundle that extends another one may change some of them by name:
    `components: {bios: {version: "2.8.0"}}`.
    """

    kind: Literal["FirmwareBundle"]
    components: list[FirmwareComponent] = Field(min_length=1)
