"""What a plan assumes if the ledger has no record and the policy says nothing. The plan marks each use."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class AssumedHours:
    """A number of hours, and where it comes from."""

    hours: float
    source: str


ACTION_HOURS = MappingProxyType(
    {
        "cordon": AssumedHours(0, "the scheduler is told; seconds"),
        "uncordon": AssumedHours(0, "the scheduler is told; seconds"),
        "drain": AssumedHours(24, "our own choice: a job's usual wall-time limit of a day"),
        "drain-now": AssumedHours(0.25, "our own choice: jobs are ended, and get minutes to write a checkpoint"),
        "configure": AssumedHours(0.1, "our own choice: a playbook of a few roles; minutes"),
        "reboot": AssumedHours(0.5, "our own choice: an HGX node needs 10 to 20 min to POST and boot"),
        "powercycle": AssumedHours(0.75, "our own choice: a reboot, and the power supplies' and the BMC's own start"),
        "netboot": AssumedHours(0.75, "our own choice: a power cycle, and an image that comes over the network"),
        "zap": AssumedHours(
            2, "our own choice: seven components with three resets; the default policy gives up at 6 h"
        ),
        "wipe": AssumedHours(
            1, "our own choice: a crypto erase takes seconds, a block erase minutes, an older drive longer"
        ),
        "burn-in": AssumedHours(0, "the burn-in is started; the soak time counts its hours"),
        "dossier": AssumedHours(0.1, "files are collected; minutes"),
        "ticket": AssumedHours(0, "paperwork; nothing waits for it"),
    }
)
PERSON_HOURS = AssumedHours(1, "our own choice: a person looks and certifies within the hour")
SUITE_HOURS = AssumedHours(0.5, "our own choice: the suites of a phase, burn-in tools included, where there is no soak")


@dataclass(frozen=True, slots=True)
class CountingChange:
    """One check or known issue (`what`), the reason, and the nodes on which its last outcomes fail.

    `counts`: these failures decide from the merge on; otherwise they stop deciding.
    """

    what: str
    why: str
    """The reason."""
    counts: bool
    nodes: tuple[str, ...]
    """The nodes on which its last outcomes fail."""
