"""Image: the kernel, the initial RAM disks and the root file system that a node boots, each by its digest.

The arguments on a kernel's command line by which a running node shows how it was started.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

SHA256 = r"^[0-9a-f]{64}$"


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http", "oci", "s3", "file") or not (parts.netloc or parts.scheme == "file"):
        raise ValueError(f"{url} is no http, https, oci, s3 or file URL")
    if parts.username or parts.password:
        raise ValueError("the URL holds credentials; the server of the images must give them to assay without")
    return url


Sha256 = Annotated[str, Field(pattern=SHA256)]
ArtifactUrl = Annotated[str, AfterValidator(_check_url)]
KernelArgument = Annotated[str, Field(pattern=r"^[!-~]+$", max_length=512)]
"""One argument of a kernel's command line, without blanks."""


class ImageArtifact(StrictModel):
    """One file of an image.

    `url`: where assay fetches it from; `oci://HOST/NAME` is a blob of a registry, by its digest, and
    `s3://BUCKET/KEY` an object. Nodes get it from assay, which gives out nothing whose digest differs.
    `mirrors`: where else it lies; where one source breaks off, the next goes on.
    `sha256`: its digest. `size`: in bytes. `signature_url`: a detached CMS signature (DER), which iPXE verifies before
    it starts the file.
    """

    url: ArtifactUrl
    mirrors: list[ArtifactUrl] = Field(default=[], max_length=9)
    sha256: Sha256
    size: int | None = Field(default=None, gt=0)
    signature_url: ArtifactUrl | None = None


class Image(SpecDocument):
    """What a stateless node boots, in every state of its life.

    - `version`: of the image, as `/etc/os-release` or the image's builder calls it. The running image reports it.
    - `node_specs`: the hardware that it fits; empty means all.
    - `arguments`: of the kernel. assay adds what names the node and its data.
    - `cloud_init`: its version in the image, such as 24.4. From 23.2 on, `ds=nocloud` leads a node to its data; without
      a version, it is `ds=nocloud-net`, which older ones need and newer ones call deprecated.
    - `signed_by`: the file of the repository with the certificate of the authority whose signatures iPXE must find.
      With it, each artifact that is started needs a `signature_url`.

    - `pcrs`: registers of the TPM (0 to 23) with the SHA-256 that they have after this image has started, as
      `tpm2_pcrread sha256` prints them. A node that proves itself by its TPM must show them.

    `kernel`: the kernel; without one, another provisioner installs the image. `initrds`: the initial RAM disks, in
    order. `root`: the root file system, fetched by the initial RAM disk, which checks its digest.
    """

    kind: Literal["Image"]
    sources: list[str] = Field(min_length=1)
    version: str = Field(min_length=1, pattern=r"^[!-~]+$")
    node_specs: list[SpecName] = Field(default=[])
    kernel: ImageArtifact | None = None
    initrds: list[ImageArtifact] = Field(default=[], max_length=9)
    root: ImageArtifact | None = None
    arguments: list[KernelArgument] = Field(default=[])
    cloud_init: str = Field(default="", pattern=r"^(\d+\.\d+[!-~]*)?$")
    signed_by: str = ""
    pcrs: dict[Annotated[int, Field(ge=0, le=23)], Sha256] = Field(default={})

    @property
    def artifacts(self) -> dict[str, ImageArtifact]:
        """The files of the image by the name under which assay serves them: `kernel`, `initrd0`, `root`."""
        initrds = {f"initrd{number}": artifact for number, artifact in enumerate(self.initrds)}
        named = {"kernel": self.kernel, **initrds, "root": self.root}
        return {name: artifact for name, artifact in named.items() if artifact}

    @property
    def data_source(self) -> str:
        """What cloud-init calls the data that a node reads from a URL."""
        year, _, rest = self.cloud_init.partition(".")
        is_new = bool(year) and (int(year), int(re.match(r"\d+", rest)[0])) >= (23, 2)  # type: ignore[index]
        return "nocloud" if is_new else "nocloud-net"

    @property
    def label(self) -> str:
        """What a running node shows: name, version, and eight digits of a digest of all that it starts with."""
        content = [*(f"{name} {file.sha256}" for name, file in self.artifacts.items()), *self.arguments]
        return f"{self.name}:{self.version}:{hashlib.sha256(chr(10).join(content).encode()).hexdigest()[:8]}"

    def fits(self, node_spec: str) -> bool:
        """Whether nodes of a spec may boot this image."""
        return not self.node_specs or node_spec in self.node_specs

    @model_validator(mode="after")
    def _signatures_are_there(self) -> Image:
        started = {name: artifact for name, artifact in self.artifacts.items() if name != "root"}
        if self.signed_by and (unsigned := [name for name, file in started.items() if not file.signature_url]):
            raise ValueError(f"{unsigned[0]} has no signature_url, and `signed_by` asks for its signature")
        return self


ATTEMPT, IMAGE = "assay.attempt", "assay.image"
"""Which start it is of (see `BootAttempt`), and the Image (`Image.label`)."""


def find_kernel_argument(command_line: str, name: str) -> str:
    """Return the value of an argument `NAME=VALUE` on a kernel's command line, the last one; "" without one."""
    values = [word.removeprefix(f"{name}=") for word in command_line.split() if word.startswith(f"{name}=")]
    return values[-1] if values else ""
