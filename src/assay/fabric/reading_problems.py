"""What a reader could not read, and which devices that puts in doubt."""

from __future__ import annotations

from collections.abc import Iterable


class LocalProblem(str):
    """A problem that puts only some devices in doubt: ports of these may be missing from the text.

    `devices` are their GUIDs; without any, the problem hides no port. A problem that is a plain `str` puts everything
    in doubt, such as a lost packet, of which nobody knows what it would have shown.
    """

    __slots__ = ("devices",)

    def __new__(cls, text: str, *devices: str) -> LocalProblem:
        """Make the problem."""
        self = super().__new__(cls, text)
        self.devices = frozenset(devices) - {""}
        return self

    devices: frozenset[str]


def find_doubtful_devices(problems: Iterable[str]) -> frozenset[str] | None:
    """Return the GUIDs of the devices that the problems put in doubt, None where everything is in doubt."""
    doubtful: set[str] = set()
    for problem in problems:
        if not isinstance(problem, LocalProblem):
            return None
        doubtful |= problem.devices
    return frozenset(doubtful)
