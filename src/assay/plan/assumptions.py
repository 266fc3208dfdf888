"""What a plan assumes where nothing is recorded and the policy does not say. Every use of one is marked as such."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from assay.model.firmware import Reset


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number of hours, and where it comes from."""

    hours: float
    source: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A part of a NodeSpec that is brought onto a node: what must restart for it to count, and who says so."""

    reset: Reset
    source: str


ACTIONS = MappingProxyType(
    {
        "cordon": Assumption(0, "the scheduler is told; seconds"),
        "uncordon": Assumption(0, "the scheduler is told; seconds"),
        "drain": Assumption(24, "our own choice: a job's usual wall-time limit of a day"),
        "drain-now": Assumption(0.25, "our own choice: jobs are ended, and get minutes to write a checkpoint"),
        "reboot": Assumption(0.5, "our own choice: an HGX node needs 10 to 20 min to POST and boot"),
        "powercycle": Assumption(0.75, "our own choice: a reboot, and the power supplies' and the BMC's own start"),
        "zap": Assumption(2, "our own choice: seven components with three resets; the default policy gives up at 6 h"),
        "dossier": Assumption(0.1, "files are collected; minutes"),
        "ticket": Assumption(0, "paperwork; nothing waits for it"),
    }
)
PERSON = Assumption(1, "our own choice: a person looks and certifies within the hour")
SUITES = Assumption(0.5, "our own choice: the suites of a phase, burn-in tools included, where there is no soak")

SETTINGS = MappingProxyType(
    {
        "bios": Setting("host", "DMTF Redfish Bios.Settings: attributes take effect at the next reset"),
        "kernel_cmdline": Setting("host", "the kernel reads its command line when it boots"),
        "driver": Setting("host", "NVIDIA driver installation guide: a running kernel keeps the loaded module"),
    }
)
"""Settings of a spec that somebody applies. All other fields of a spec describe hardware, which is only judged."""
