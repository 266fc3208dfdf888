"""FirmwareBundle: the firmware versions that belong together, and how each is installed on a node.

An image of the lab is what a push sends to a virtual BMC in place of the vendor's file: one line of JSON,
`{"component": …, "version": …, "inventory": […]}`, and padding derived from that line. The lab's BMC reads the
line only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.spec_document import SpecDocument, StrictModel

FirmwareReset = Literal["none", "bmc", "host", "ac"]
FirmwarePush = Literal["simple", "multipart", "http"]
FIRMWARE_TARGET = r"^([0-9a-f]{4}(:[0-9a-f]{4})?|iana:\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"
"""A vendor, or a vendor and a device, of PCI; a vendor's number of IANA; a GUID."""


def _require_digest(digest: Any) -> Any:
    if digest in (None, ""):
        message = "an artifact without its sha256: nobody could tell whether it is the image that was qualified"
        raise ConflictError(FieldConflict("ASY0048", (), message, "add `sha256:`, as `sha256sum FILE` prints it"))
    return digest


ImageDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$"), BeforeValidator(_require_digest)]


class FirmwareArtifact(StrictModel):
    """The vendor's file with the image of a component.

    `url`: where assay fetches it (`https://`, `oci://HOST/NAME` for a blob of a registry, or `s3://BUCKET/KEY`), or its
    path in the repository. `sha256`: its digest. `size`: in bytes.
    `file`: the name that the vendor gave it. Before a push, assay reads what the file says of itself:

    - `version`: the version that it must name; "" means that of the component.
    - `fits`: what it must be for: PCI ids (`10de:2330`), IANA numbers of vendors (`iana:5703`), GUIDs.
    """

    url: str = Field(pattern=r"^((https|oci|s3)://[^\s/@]+/[!-~]+|[\w.+-][\w./+-]*)$")
    sha256: ImageDigest
    size: int | None = Field(default=None, ge=1)
    file: str = Field(default="", pattern=r"^([\w+-][\w.+ -]*)?$")
    version: str = ""
    fits: list[Annotated[str, Field(pattern=FIRMWARE_TARGET)]] = Field(default=[])

    @model_validator(mode="before")
    @classmethod
    def _missing_digest_as_none(cls, data: Any) -> Any:
        """Pass a missing digest to the field's validator, which explains why it is needed."""
        return {"sha256": None, **data} if isinstance(data, dict) else data

    @property
    def path(self) -> str:
        """The path in the repository, "" if the file is fetched."""
        return "" if "://" in self.url else self.url

    @property
    def name(self) -> str:
        """The vendor's name of the file, else the last part of its address."""
        return self.file or re.sub(r"[^\w.+-]", "_", self.url.rpartition("/")[2]).lstrip(".") or self.sha256


class FirmwareComponent(StrictModel):
    """One component of the bundle.

    `inventory` lists the ids below the BMC's `UpdateService/FirmwareInventory` that must read `version`. `reset`: what
    must restart before the new version is active. `after`: components that must be installed before this one.

    `name`: the component in plans and tickets. `version`: what it must read. `artifact`: the vendor's file; without
    one, assay compares the version and cannot bring it. `push`: the BMC fetches the image (simple) or gets it sent
    (multipart). `order`: lower numbers first. `hca`: it is the firmware of the adapters.
    """

    name: str
    version: str
    inventory: list[str] = Field(min_length=1)
    artifact: FirmwareArtifact | None = None
    push: FirmwarePush
    reset: FirmwareReset
    order: int = Field(ge=0)
    after: list[str] = Field(default=[])
    hca: bool = False


class FirmwareBundle(SpecDocument):
    """Components and their versions. They are installed in `order` and read back after each reset.

    `components`: what belongs together. A bundle that extends another one may change some of them by name:
    `components: {bios: {version: "2.8.0"}}`.
    """

    kind: Literal["FirmwareBundle"]
    components: list[FirmwareComponent] = Field(min_length=1)


NO_FIRMWARE = FirmwareBundle.model_construct(kind="FirmwareBundle", name="none", components=[])
"""Of nodes whose spec names no bundle: nothing of their firmware is compared or brought."""


LAB_IMAGE_SIZE = 4096


def make_image(component: str, version: str, inventory: Sequence[str]) -> bytes:
    """Return the image of `component` at `version` for the inventory ids it brings there; always the same bytes."""
    header = json.dumps({"component": component, "version": version, "inventory": list(inventory)}).encode() + b"\n"
    return header + hashlib.shake_256(header).digest(max(LAB_IMAGE_SIZE - len(header), 0))


def read_image_header(content: bytes) -> dict[str, Any]:
    """Return the header of an image. Raises ValueError for bytes that are no image."""
    plain = json.loads(content.split(b"\n", 1)[0])
    if not isinstance(plain, dict) or set(plain) != {"component", "version", "inventory"}:
        raise ValueError("not an image: the first line must hold component, version and inventory")
    return plain
