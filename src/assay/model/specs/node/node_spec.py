"""NodeSpec: what a node of one kind must be: its parts, its host settings, and the limits of its measurements."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.node.bmc_settings import BmcSpec, HostName
from assay.model.specs.node.host_settings import (
    DataMount,
    GpuSettings,
    HcaSettings,
    HostFile,
    HostFilePath,
    HugePages,
    ModuleOptions,
    UnitSettings,
    WipeSpec,
)
from assay.model.specs.spec_document import SpecDocument, StrictModel
from assay.model.specs.technician_work import OneLineText
from assay.model.units import UNITS, describe_unit_fix

OPTIONAL_DCGM_TESTS = ("eud", "cpu_eud", "nccl_tests")
"""What DCGM skips by default: the first two are packages of their own, the last must be allowed by a parameter."""


class DimmSpec(StrictModel):
    """Memory modules, all alike. `speed_mts` is their configured speed in millions of transfers a second.

    `count`: how many modules. `size_gib`: the size of one.
    """

    count: int = Field(gt=0)
    size_gib: int = Field(gt=0)
    speed_mts: int = Field(gt=0)


class HostSpec(StrictModel):
    """The memory, kernel and services of a host. A field that is not given is not checked.

    `kernel`: a version as `uname -r` prints it. `iommu`: the type of the GPUs' IOMMU groups (`identity` results from
    `iommu=pt`, `none` means no IOMMU). `services`: systemd units without `.service`. `modules`: kernel modules, written
    with `_`. `sysctls`: values by name, as text.

    `dimms`: the memory modules. `numa_nodes`: how many the kernel shows. `governor`: the governor of the processors'
    frequency. `transparent_hugepages`: when the kernel uses them. `hugepages`: how many huge pages the kernel
    reserves, by page size (`1048576kB`). `module_options`: options of kernel modules by module and name, as text; a
    switch is `1` or `0`. `unit_settings`: settings of systemd's units by unit (`slurmd.service`) and name, as
    `systemctl show` prints them. `time_servers`: servers that chrony must use. `files`: whole files by path.

    `root`: where the root file system is. On `disk`, settings are also written to files, and stay. In `memory` (each
    boot loads an image), the settings of the running kernel are applied after each boot; kernel, driver and command
    line come from the image; firmware and BIOS settings stay.
    """

    root: Literal["disk", "memory"] = "disk"
    dimms: DimmSpec | None = None
    numa_nodes: int | None = Field(default=None, gt=0)
    kernel: str | None = None
    governor: str | None = None
    iommu: Literal["none", "identity", "DMA", "DMA-FQ"] | None = None
    transparent_hugepages: Literal["always", "madvise", "never"] | None = None
    services: list[str] = Field(default=[])
    modules: list[str] = Field(default=[])
    sysctls: dict[str, str] = Field(default={})
    module_options: ModuleOptions = Field(default={})
    hugepages: HugePages = Field(default={})
    unit_settings: UnitSettings = Field(default={})
    time_servers: list[HostName] = Field(default=[])
    files: dict[HostFilePath, HostFile] = Field(default={})


class GpuSpec(StrictModel):
    """GPUs by slot: `pci[3]` is the PCI address of `gpu3`, whether or not a GPU answers there.

    `vendor`: who made them. `model`: the name that NVML gives, or that AMD gives. `pci`: the PCI addresses by slot.
    `reset_together`: a reset of one is a reset of all: those with NVLink before Ampere, and where NVIDIA's manual of
    nvidia-smi (`--gpu-reset`) asks for it.
    """

    vendor: Literal["nvidia", "amd"] = "nvidia"
    model: str
    pci: list[str] = Field(min_length=1)
    reset_together: bool = False

    @property
    def count(self) -> int:
        """The number of GPUs that the node must have."""
        return len(self.pci)


class HcaSpec(StrictModel):
    """One adapter of a fabric, InfiniBand or RoCE: its kernel name, its rail (counted from 0) and its PCI address.

    `name`: the kernel's name, such as `mlx5_0`. `rail`: the rail that it is cabled to, from 0. `pci`: its PCI address.
    """

    name: str
    rail: int = Field(ge=0)
    pci: str


Priority = Annotated[int, Field(ge=0, le=7)]


class RoceSpec(StrictModel):
    """The settings of adapters that carry RDMA over Ethernet (RoCE). A field that is not given is not checked.

    `mtu`: the packet size of their interfaces in bytes. `trust`: by what they sort packets into priorities. `pfc`: the
    priorities that they pause instead of losing packets. `dscp`: the priority of packets by their DSCP, as text.
    """

    mtu: int | None = Field(default=None, ge=68)
    trust: Literal["dscp", "pcp"] | None = None
    pfc: list[Priority] | None = None
    dscp: dict[str, Priority] = Field(default={})


class NicSpec(StrictModel):
    """One front-end network interface. `mtu` is in bytes; None means any.

    `name`: the kernel's name. `speed_mbps`: the speed of its link.
    """

    name: str
    speed_mbps: int = Field(gt=0)
    mtu: int | None = Field(default=None, ge=68)


class NvmeSpec(StrictModel):
    """Local drives, `nvme0` to `nvme<count - 1>`.

    `count`: how many drives. `size_gb`: the size of one, in decimal gigabytes.
    """

    count: int = Field(ge=0)
    size_gb: int = Field(gt=0)


class DiskSpec(StrictModel):
    """One SATA or SAS drive.

    `name`: the kernel's name; behind a RAID controller smartctl's, as evidence has it (`bus-0-megaraid-8`). `size_gb`:
    its size in decimal gigabytes.
    """

    name: str = Field(pattern=r"^[\w-]+$")
    size_gb: int = Field(gt=0)


class PsuSpec(StrictModel):
    """Power supplies; `needed` of them carry the load. `count` is 0 where the rack feeds the node by a busbar."""

    count: int = Field(ge=0)
    needed: int = Field(ge=0)

    @model_validator(mode="after")
    def _no_more_needed_than_there_are(self) -> PsuSpec:
        if self.needed > self.count:
            raise ValueError(f"needed ({self.needed}) is more than count ({self.count})")
        return self


class BootSpec(StrictModel):
    """How the node boots. `first` is a shell pattern of its first boot option (`UEFI: PXE*`). None is not checked.

    `mode`: how the firmware starts the system. `secure`: whether Secure Boot is on.
    """

    mode: Literal["UEFI", "Legacy"] = "UEFI"
    secure: bool | None = None
    first: str | None = None


class MetricLimit(StrictModel):
    """One threshold. `source` says where the number comes from (a document, a measurement).

    `value`: the threshold; the check says which side is good. `unit`: the unit of the value.
    """

    value: float
    unit: str = Field(json_schema_extra={"enum": list(UNITS)})
    source: str

    @model_validator(mode="after")
    def _in_a_known_unit(self) -> MetricLimit:
        if self.unit not in UNITS:
            raise ConflictError(
                FieldConflict(
                    "ASY0056", ("unit",), f"{self.unit!r} is no unit that assay knows", describe_unit_fix(self.unit)
                )
            )
        return self


class RackScale(StrictModel):
    """The parts of one rack of such nodes, where the rack is one machine (one NVLink domain).

    `nodes`, `gpus`: how many the rack has.
    """

    nodes: int = Field(gt=0)
    gpus: int = Field(gt=0)


NO_GPUS = GpuSpec.model_construct(model="", pci=[])
DECLARED_PARTS = (
    "hcas",
    "nics",
    "disks",
    "fans",
    "product",
    "cpu_sockets",
    "cpu_threads",
    "memory_gib",
    "driver",
    "firmware",
    "mounts",
    "tpm",
)
OF_BMC = ("bios", "boot", "bmc", "firmware", "psus", "fans", "leak_detectors")
"""What only a BMC reads or brings."""


class NodeSpec(SpecDocument):
    """What a node of one kind must be. `firmware` names a FirmwareBundle; `limits` are by metric.

    A part that is not given is one that such a node does not have: no check of it is due, and nothing is done to it.
    The spec `server` has the limits of any node: a spec of a new kind extends it, and gives what the node has beside.

    `height_u`: how many rack units a node fills, from its own upwards. `rack`: given if a rack of them is one machine.

    `product`: the product name that the host's firmware reports. `gpus`: the GPUs by slot. `hcas`: the adapters of
    the fabric, one for each rail. `roce`: their settings where that fabric is Ethernet. `nics`: the front-end
    interfaces. `nvme`: the local drives. `disks`: its SATA and SAS drives. `psus`: the power supplies. `fans`: how
    many the BMC shows. `cpu_sockets`: how many processors. `cpu_threads`: how many threads all of them have.
    `firmware`: the FirmwareBundle that it must run. `limits`: the thresholds by metric. `memory_gib`: the memory
    that is built in. `host`: memory modules, kernel and services. `driver`: the version of NVIDIA's driver.
    `fabric_manager`: the version of its fabric manager, which must be that of the driver. `tpm`: whether it has a
    TPM 2.0, which tpm2-tools read. `bios`: settings by name, as the BMC reports them. `boot`: how the node starts.
    `bmc`: the settings of the BMC itself. `leak_detectors`: how many the BMC shows. `kernel_cmdline`: words that
    the kernel's command line must have. `gpu_settings`: modes, clocks and power limit of the GPUs. `hca_settings`:
    firmware settings of the HCAs and NICs. `dcgm_optional_tests`: the tests that `dcgmi diag` may skip. `wipe`: how
    the action `wipe` erases the local drives; without it, nothing is erased. `mounts`: by mount point the types of
    file system that must be there and answer, such as `/scratch: [lustre]`. `usual_faults`: fault classes that the
    logs of each such node show though it is well, each with the reason: they are recorded, and ask for nothing.
    """

    kind: Literal["NodeSpec"]
    product: str = ""
    height_u: int = Field(default=1, gt=0, le=60)
    rack: RackScale | None = None
    gpus: GpuSpec = Field(default_factory=lambda: NO_GPUS)
    hcas: list[HcaSpec] = Field(default=[])
    roce: RoceSpec | None = None
    nics: list[NicSpec] = Field(default=[])
    nvme: NvmeSpec = Field(default_factory=lambda: NvmeSpec(count=0, size_gb=1))
    disks: list[DiskSpec] = Field(default=[])
    wipe: WipeSpec | None = None
    psus: PsuSpec = Field(default_factory=lambda: PsuSpec(count=0, needed=0))
    fans: int = Field(default=0, ge=0)
    cpu_sockets: int = Field(default=0, ge=0)
    cpu_threads: int = Field(default=0, ge=0)
    memory_gib: int = Field(default=0, ge=0)
    host: HostSpec = Field(default_factory=HostSpec)
    driver: str = ""
    fabric_manager: str | None = None
    tpm: bool = False
    firmware: str = ""
    bios: dict[str, str] = Field(default={})
    boot: BootSpec = Field(default_factory=BootSpec)
    bmc: BmcSpec = Field(default_factory=BmcSpec)
    dcgm_optional_tests: list[str] = Field(default=[*OPTIONAL_DCGM_TESTS])
    gpu_settings: GpuSettings = Field(default_factory=GpuSettings)
    hca_settings: HcaSettings = Field(default_factory=HcaSettings)
    leak_detectors: int = Field(default=0, ge=0)
    kernel_cmdline: list[str] = Field(default=[])
    limits: dict[str, MetricLimit] = Field(default={})
    mounts: dict[DataMount, Annotated[list[str], Field(min_length=1)]] = Field(default={})
    usual_faults: dict[str, OneLineText] = Field(default={})

    @model_validator(mode="after")
    def _no_settings_of_unknown_adapters(self) -> NodeSpec:
        known = {*(hca.name for hca in self.hcas), *(nic.name for nic in self.nics)}
        if unknown := sorted(set(self.hca_settings.by_name) - known):
            raise ValueError(f"hca_settings.by_name: {unknown[0]!r} is neither in hcas nor in nics")
        return self

    @model_validator(mode="after")
    def _is_of_one_vendor(self) -> NodeSpec:
        if self.gpus.vendor == "nvidia" and self.gpus.model.startswith("AMD "):
            conflict = FieldConflict("ASY0004", ("gpus", "model"), "AMD makes this model", "write `vendor: amd`")
            raise ConflictError(conflict)
        of_nvidia = ("driver", "fabric_manager", "gpu_settings") if self.gpus.vendor != "nvidia" else ()
        if given := [field for field in of_nvidia if getattr(self, field) not in ("", None, GpuSettings())]:
            message = f"{given[0]} is NVIDIA's, and the GPUs are of {self.gpus.vendor}"
            fix = "remove it: `null` where it is inherited"
            raise ConflictError(FieldConflict("ASY0004", (given[0],), message, fix))
        return self

    def without_bmc(self) -> NodeSpec:
        """Return the spec of such a node that has no BMC."""
        none = NodeSpec(kind="NodeSpec", name=self.name)
        return self.model_copy(update={field: getattr(none, field) for field in OF_BMC})

    def list_parts(self, has_bmc: bool, has_fabric: bool, tools: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return what such a node has, by the names of NodePart. The inventory says whether it has these.

        `tools`: what it declares of ToolOfSite.
        """
        counts = {"gpus": self.gpus.count, "nvme": self.nvme.count, "psus": self.psus.count}
        declared = {part: getattr(self, part) for part in DECLARED_PARTS}
        nvlink = self.gpus.vendor == "nvidia" and "nvlink_links" in self.limits
        of_gpus = {self.gpus.vendor: self.gpus.count, "nvlink": self.gpus.count and nvlink}
        of_hcas = {"roce" if self.roce else "infiniband": self.hcas}
        outside = {
            "bmc": has_bmc,
            "bmc_network": has_bmc and self.bmc.network,
            "fabric": has_fabric,
            "node_power": "node_power" in self.limits,
        }
        return tools.union(part for part, has in {**counts, **declared, **of_gpus, **of_hcas, **outside}.items() if has)

    def slot_names(self, kind: str) -> list[str]:
        """Return the slot names of a kind (gpu, hca, nic, nvme, disk, psu or fan), in order."""
        counts = {"gpu": self.gpus.count, "nvme": self.nvme.count, "psu": self.psus.count, "fan": self.fans}
        if kind in counts:
            return [f"{kind}{index}" for index in range(counts[kind])]
        return [part.name for part in getattr(self, f"{kind}s")]
