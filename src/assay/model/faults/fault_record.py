"""A fault as the ledger recorded it: how often it was seen, by whom, and what answered it.

History is read without pydantic, which takes long to import: this module loads none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, get_args

from assay.model.facts import frozen

FaultSeverity = Literal["catastrophic", "degraded", "informational"]
SEVERITIES: tuple[FaultSeverity, ...] = get_args(FaultSeverity)
"""The worst first."""
FaultBlame = Literal["hardware", "application", "driver", "operator", "environment"]
Remedy = Literal["none", "ticket", "reset", "reboot", "powercycle", "zap", "triage", "rma"]
RESTARTS: tuple[Remedy, ...] = ("reset", "reboot", "powercycle", "zap")
FaultResponse = Literal["", "waits", "acted", "breaker"]
SCHEDULER_FAULTS = ("scheduler.open", "scheduler.closed")
"""A node's scheduler does not keep it as its state asks: open though it must be closed, or the other way round."""
NOT_JUDGED = "log.not-judged"
"""The class of errors that no other class has. Its part is the form of the message."""
NUMBERED_SOURCES = ("kernel", "nvml")
"""Sources that number their messages; numbers start again with each boot."""
RACK_SERIES = "/rack "
"""In the name of a series of one rack. What it holds back still breaks the rack, if that is one machine."""


def rank_severity(severity: str) -> int:
    """Return how severities are sorted: the worst first, and what has none last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


@frozen
class FaultRecord:
    """A fault of the node. `marks` says how far each source has been read; `times` are its last sightings.

    `seq` is the number of its last entry in the ledger, 0 in a history without numbers. `arrived_at` is the time of its
    first entry.
    `response` is "waits" while a pending decision wants to move the node because of it, "acted" after a decision moved
    the node, "breaker" after the circuit breaker held the fault back. `responded_at` is the time of that, "" for
    none. `cleared_at` is "" while the fault is open. `no_wave` is the entry by which a person cleared the breaker after
    the fault had arrived, "" for none. Such a fault counts for no wave. `series` is what held it back then: the pool,
    the class, and what the nodes have in common, such as `a/gpu.xid.79/rack lab1/r4`; "" for the wave of a pool.
    """

    id: str
    fault_class: str
    subject: str
    severity: FaultSeverity
    blame: FaultBlame
    remedy: Remedy
    count: int
    first_seen: str
    last_seen: str
    detail: str
    marks: Mapping[str, str] = field(default_factory=dict)
    times: tuple[str, ...] = ()
    response: FaultResponse = ""
    responded_at: str = ""
    cleared_at: str = ""
    seq: int = 0
    arrived_at: str = ""
    no_wave: str = ""
    series: str = ""

    @property
    def boots(self) -> frozenset[str]:
        """The boots in which sources that number their lines showed it last."""
        return list_boots(self.marks)

    @property
    def needs_people(self) -> bool:
        """Whether only people mend it: a restart hides such a fault, and proves nothing of it."""
        return self.severity == "catastrophic" and self.remedy not in RESTARTS

    @property
    def is_open(self) -> bool:
        """Whether nothing has cleared the fault."""
        return not self.cleared_at

    @property
    def is_held_by_wave(self) -> bool:
        """Whether the wave of a pool holds it back, which ends by itself."""
        return self.response == "breaker" and not self.series

    @property
    def open_series(self) -> str:
        """The series that holds it back, also after the fault has ended, until a person answers; "" for none."""
        return self.series if self.response == "breaker" and not self.no_wave else ""


def list_boots(marks: Mapping[str, str]) -> frozenset[str]:
    """Return the boots in the marks of sources that number their messages."""
    return frozenset({marks[source].rpartition(":")[0] for source in NUMBERED_SOURCES if source in marks} - {""})
