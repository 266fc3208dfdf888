"""The shape of what `assay faults` prints with `--format json`."""

from __future__ import annotations

from typing_extensions import TypedDict

from assay.decide.faults.log_file_faults import FaultOwner
from assay.model.faults.fault_record import FaultSeverity, Remedy

FaultInLog = TypedDict(
    "FaultInLog",
    {
        "fault": str,
        "class": FaultOwner,
        "severity": FaultSeverity,
        "subject": str,
        "host": str,
        "count": int,
        "first": str | None,
        "last": str | None,
        "action": Remedy,
        "because": str,
        "investigate": str,
        "lines": int,
        "detail": str,
    },
)
FaultInLog.__doc__ = """A fault of one part.

- `fault`: the fault class. `class`: what is to blame. `severity`: how serious it is. `subject`: the part, or node.
- `host`: the host that the log names, "" if it names none. `count`: how often the fault happened. `first`: the earliest
  time, as the log writes it; null if it has no times. `last`: the latest time; null if the log has no times.
- `action`: what the fault asks for, such as reboot or ticket; none if nothing. `because`: why, with the source.
- `investigate`: what to look at, "" if the catalogue does not say. `lines`: how many lines tell of it.
- `detail`: the last of these lines.
"""


class FaultsAnswer(TypedDict):
    """The faults in a log, by the fault catalogue."""

    faults: list[FaultInLog]
    """The faults, the worst first; if one asks for an action, the exit code is 1."""
    lines: int
    """How many lines the log has."""
    unread: int
    """How many of them could not be read."""
    uncounted: str
    """The beginning of the first line that cannot be counted: it names a fault, or is of another log; "" without one.

    The exit code is then 2, unless a fault asks for an action.
    """
    broken: str
    """Why a packed file could not be unpacked to its end, so that the rest was not judged; "" if it could.

    The exit code is then 2, unless a fault asks for an action.
    """
