"""Joins the listed ends into cables, and reports ends that do not agree. Readers of all tools share this.

Most tools print each cable twice, once at either device. So an end without its other end shows that a part is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, LocalProblem, PortFacts
from assay.fabric.link_words import find_slowest_rate
from assay.fabric.readers.tool_text import NO_ANSWER, find_stderr_problems
from assay.model.specs.fabric.cable import DeviceKind, PortId

PortEnds = dict[PortId, tuple[PortId, str]]
"""Each port with the port that it is cabled to, and the rate."""
PORT_SHAPE = re.compile(r"0x[0-9a-fA-F]{4}|==\(|\)==>|PHY=|\} \{")
"""A part of what tools write about a port."""


def format_port(port: PortId) -> str:
    """Return a port for a message."""
    return f"port {port.number} of {port.guid}"


def join_ends(
    ends: Mapping[PortId, tuple[PortId, str]], devices: Mapping[str, Any], problems: list[str]
) -> list[DiscoveredCable]:
    """Join the two ends of each cable. Add to `problems` the ends that do not agree. `devices` are in the text's order.

    If the two ends report different rates, the slower counts: the link may have been coming up.
    """
    cables, unlisted = [], set()
    for here, (there, rate) in ends.items():
        back = ends.get(there)
        if back is None and there.guid not in devices:
            unlisted.add(there.guid)
        elif back is None:
            problem = f"{format_port(here)} leads to {format_port(there)}, which is not listed there"
            problems.append(LocalProblem(problem, there.guid))
        elif back[0] != here:
            problem = f"{format_port(here)} leads to {format_port(there)}, but that leads to {format_port(back[0])}"
            problems.append(LocalProblem(problem, here.guid, there.guid, back[0].guid))
            continue
        elif there < here:
            continue
        slower = find_slowest_rate(rate, back[1]) if back and back[1] != rate else rate
        if back and back[1] != rate and not slower:
            problem = f"{format_port(here)} reports {rate or 'no rate'}, its other end {back[1] or 'no rate'}"
            problems.append(LocalProblem(problem))
        cables.append(DiscoveredCable(here, there, slower or rate))
    last = next(reversed(list(devices)), "")  # where a text is cut off, its last record may lack a part too
    for guid in sorted(unlisted):
        problems.append(LocalProblem(f"{guid} is cabled but has no record of its own", guid, last))
    return cables


def check_has_cables(cables: Sequence[DiscoveredCable], problems: list[str]) -> list[str]:
    """Return the problems, and one more if there is no cable at all."""
    return problems if cables else [*problems, "no cable was discovered"]


class PortListing:
    """Collects the ports of a tool that lists them line by line.

    An unreadable line may be a port that was garbled. Before the first port and after the last one, a line without the
    `shape` of a port is foreign, such as a prompt. If it was a port after all, its absence shows elsewhere. With
    `port_guids`, the tool names adapters by the GUIDs of their ports.
    """

    def __init__(self, stderr: str, shape: re.Pattern[str] = PORT_SHAPE, *, port_guids: bool = False) -> None:
        self.shape, self.port_guids = shape, port_guids
        self.notes: list[str] = []
        self.devices: dict[str, DiscoveredDevice] = {}
        self.ends: PortEnds = {}
        self.facts: dict[PortId, PortFacts] = {}
        self.problems = find_stderr_problems(stderr)
        self.unreadable: list[tuple[int, str]] = []

    def add_device(self, port: PortId, kind: DeviceKind, description: str) -> None:
        """Add the device of a listed port. It has at least as many ports as the port's number."""
        known = self.devices.get(port.guid)
        self.devices[port.guid] = DiscoveredDevice(
            port.guid, kind, max(port.number, known.ports if known else 0), description
        )

    def add_port(self, where: str, facts: PortFacts, there: PortId | None) -> None:
        """Add a port. `where` is its place in the text, `there` the port that it is cabled to."""
        here = facts.port
        if here in self.facts:
            self.problems.append(LocalProblem(f"{where}: {format_port(here)} is listed twice", here.guid))
        self._judge_unreadable(is_between=bool(self.facts), devices=(here.guid, self._last))
        self.facts[here] = facts
        if there:
            self.ends[here] = (there, facts.rate)
            if not facts.rate:
                self.problems.append(LocalProblem(f"{where}: no rate of {format_port(here)}"))

    def add_unreadable_line(self, number: int, line: str, device: str = "") -> None:
        """Add a line that cannot be read. It may be a port of `device`, or else of the one before it, or after it."""
        if device and self.shape.search(line):
            self.problems.append(LocalProblem(_format_unreadable(number, line), device))
        elif NO_ANSWER.search(line):
            self.problems.append(_format_unreadable(number, line))
        else:
            self.unreadable.append((number, line.strip()))

    def _judge_unreadable(self, *, is_between: bool, devices: Sequence[str]) -> None:
        for number, line in self.unreadable:
            if is_between or self.shape.search(line):
                self.problems.append(LocalProblem(_format_unreadable(number, line), *devices))
            else:
                self.notes.append(f"line {number} is none of the tool's and was skipped: {line[:80]!r}")
        self.unreadable = []

    @property
    def _last(self) -> str:
        return next(reversed(self.facts)).guid if self.facts else ""

    def list_port_numbers(self, guids: Iterable[str]) -> dict[str, set[int]]:
        """Return the numbers of the listed ports of these devices, by GUID."""
        numbers: dict[str, set[int]] = {guid: set() for guid in guids}
        for port in self.facts:
            if port.guid in numbers:
                numbers[port.guid].add(port.number)
        return numbers

    def to_discovery(self) -> FabricDiscovery:
        """Return the discovery, with the ends joined into cables."""
        self._judge_unreadable(is_between=False, devices=(self._last,))
        cables = join_ends(self.ends, self.devices, self.problems)
        problems = tuple(check_has_cables(cables, self.problems))
        notes = tuple(self.notes)
        return FabricDiscovery(cables, self.devices, problems, self.facts, notes=notes, port_guids=self.port_guids)


def _format_unreadable(number: int, line: str) -> str:
    return f"line {number} cannot be read: {line.strip()[:80]!r}"
