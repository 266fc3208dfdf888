"""The shape of what `assay faults` prints with `--format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.decide.faults.log_file_faults import FaultInLog


@fact
class FaultsAnswer:
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
