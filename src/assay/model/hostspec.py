"""What a node's host must be, beyond its size: memory modules, kernel, services. What is not said is not asked for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.spec import Strict


class Dimms(Strict):
    """Memory modules, all alike. `speed_mts` is what they run at, in millions of transfers a second."""

    count: int = Field(gt=0)
    size_gib: int = Field(gt=0)
    speed_mts: int = Field(gt=0)


class Host(Strict):
    """How a host is built and set up.

    `kernel` is a version as `uname -r` prints it; `iommu` the type of the GPUs' IOMMU groups (`identity` is what
    `iommu=pt` gives, `none` no IOMMU); `services` are systemd's, without `.service`; `modules` are written with `_`;
    `sysctls` are values by name, as text.
    """

    dimms: Dimms | None = None
    numa_nodes: int | None = Field(default=None, gt=0)
    kernel: str | None = None
    governor: str | None = None
    iommu: Literal["none", "identity", "DMA", "DMA-FQ"] | None = None
    transparent_hugepages: Literal["always", "madvise", "never"] | None = None
    services: list[str] = Field(default=[])
    modules: list[str] = Field(default=[])
    sysctls: dict[str, str] = Field(default={})
