"""Tells by the driver's own words whether a log without times runs backwards, as `dmesg -t | tac` prints it.

A change of a GPU's recovery action names what it was before. Read in order, that is what the last change led to.
"""

from __future__ import annotations

import re

CHANGE = re.compile(
    r"(?i)\bchanged from (?:0x[0-9a-f]+ )?\(?(?P<before>\w[\w ]*)\)? to (?:0x[0-9a-f]+ )?\(?(?P<after>\w[\w ]*)\)?\s*$"
)
RUNS_BACK = "its lines run backwards, so nobody can say which recovery action came last, and a person must look"


class RecoveryOrder:
    """The last change of the recovery action of each GPU of a host. `runs_back`: two of them follow the other way only.

    Two changes that lead there and back fit both ways; then the log counts as ordered.
    """

    def __init__(self) -> None:
        self.runs_back = False
        self._last: dict[str, tuple[str, str]] = {}

    def read(self, place: str, text: str) -> None:
        """Take the next message about the recovery action of a GPU."""
        if change := CHANGE.search(text):
            before, after = change["before"], change["after"]
            began, ended = self._last.get(place, ("", ""))
            self.runs_back = self.runs_back or (after == began and before != ended)
            self._last[place] = before, after
