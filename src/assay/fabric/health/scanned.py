"""What one stored scan says of the ports, and what they counted since the scan before it.

Channel `ports` of a fabric's evidence: one branch for each command of `fabric_facts`, with `text`, `stderr` and
`command`, or a failed reading in its place. Channel `earlier`: `at` and `counters` (`{GUID: {PORT: {COUNTER: n}}}`) of
the scan before, so that a verdict can be derived again from this one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from assay.fabric import readers
from assay.fabric.health import subnet, switches, told
from assay.fabric.health.counters import Grown, grown
from assay.fabric.health.subnet import SubnetManager
from assay.fabric.health.switches import SwitchFacts
from assay.fabric.port_facts import FabricEvent, PortFacts, joined
from assay.model.cable import Port
from assay.model.errors import Trouble
from assay.model.evidence import Evidence
from assay.model.reading import absent, as_reading, value

TRAFFIC = frozenset({"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts"})
"""Counters that grow with every packet. They say nothing of health, and would make each document larger."""

COUNTERS = "errors"
"""The name in `fabric_facts` of the command that lists error counters, ibqueryerrors as a rule."""

FIRST = "this is the first scan that counted: what grew since the one before cannot be told yet"


@dataclass(frozen=True)
class Scanned:
    """One scan. `silent` says by the name of each command that gave nothing why; `problems` what could not be read.

    `since` is the time of the scan before, None on the first; then `unknown` says why nothing can be said of growth.
    `counted`: a tool that lists counters was heard. It leaves out what is 0, so a port that it does not list has none.
    """

    at: datetime
    facts: Mapping[Port, PortFacts] = field(default_factory=dict)
    grown: Mapping[Port, Grown] = field(default_factory=dict)
    switches: Mapping[str, SwitchFacts] = field(default_factory=dict)
    manager: SubnetManager | None = None
    since: datetime | None = None
    silent: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    unknown: str = ""
    counted: bool = False
    events: tuple[FabricEvent, ...] = ()

    @property
    def seconds(self) -> float:
        """How long after the scan before it this one was made; 0 for the first."""
        return (self.at - self.since).total_seconds() if self.since else 0.0

    def of(self, port: Port) -> PortFacts:
        """Return what is known of a port; an empty description for one that no tool spoke of."""
        return self.facts.get(port) or PortFacts(port)

    def growth(self, port: Port) -> Grown:
        """Return what a port counted since the scan before. A port without errors is not listed: it counted none."""
        return self.grown.get(port) or Grown(self.seconds)


def scanned(evidence: Evidence) -> Scanned:
    """Read a scan. Never raises: what was not read is said."""
    heard = _read(evidence)
    facts = joined(heard.ports)
    then, counters, unknown = _earlier(evidence)
    seconds = (evidence.at - then).total_seconds() if then else 0.0
    counting = {port for port, told in facts.items() if told.counters}
    ports = counting | counters.keys() if then else ()
    return Scanned(
        evidence.at,
        facts,
        {port: grown(counters.get(port), facts.get(port) or PortFacts(port), seconds) for port in ports},
        switches.joined(heard.switches),
        heard.managers[0] if heard.managers else None,
        then,
        heard.silent,
        tuple(heard.problems),
        unknown,
        _counts(evidence, heard),
        tuple(heard.events),
    )


def earlier(evidence: Evidence | None) -> dict[str, Any]:
    """Return the channel `earlier` for the scan after this one.

    A scan that counted nothing hands on what it was given itself.
    """
    if evidence is None:
        return absent(FIRST)
    seen = scanned(evidence)
    if not seen.counted and seen.since:
        return dict(evidence.channels["earlier"])
    if not seen.counted:
        why = next(iter(seen.silent.values()), "no tool was asked")
        return absent(f"the scan of {evidence.at.isoformat()} counted nothing: {why}")
    counters: dict[str, dict[str, dict[str, int]]] = {}
    for port, facts in sorted(seen.facts.items()):
        if kept := {name: count for name, count in sorted(facts.counters.items()) if name not in TRAFFIC and count}:
            counters.setdefault(port.guid, {})[str(port.number)] = kept
    return {"at": value(evidence.at.isoformat()), "counters": value(counters)}


@dataclass
class _Heard:
    """What all commands said, in the order of their names."""

    silent: dict[str, str] = field(default_factory=dict)
    ports: list[PortFacts] = field(default_factory=list)
    switches: list[SwitchFacts] = field(default_factory=list)
    managers: list[SubnetManager] = field(default_factory=list)
    events: list[FabricEvent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def hear(self, name: str, text: str, stderr: str) -> None:
        if subnet.is_sminfo(text):
            manager = subnet.parse(text)
            self.managers += [manager] if manager else []
            self._troubles(name, [] if manager else [text.strip().splitlines()[0]])
        elif told.is_told(text):
            ports, told_switches, problems = told.parse(text)
            self.ports += ports
            self.switches += told_switches
            self._troubles(name, problems)
        else:
            self._read(name, text, stderr)

    def _read(self, name: str, text: str, stderr: str) -> None:
        try:
            said = readers.read(text, stderr)
        except Trouble as trouble:
            self._troubles(name, [str(trouble)])
            return
        self.ports += said.facts.values()
        self.events += said.events
        self.switches += [
            SwitchFacts(guid, temperature_c=warm)
            for guid, warm in said.temperatures.items()
            if guid in said.devices and said.devices[guid].kind == "switch"
        ]
        self._troubles(name, said.problems)

    def _troubles(self, name: str, problems: Iterable[str]) -> None:
        self.problems += [f"{name}: {problem}" for problem in problems]


def _read(evidence: Evidence) -> _Heard:
    branches = evidence.channels.get("ports")
    if branches is None:
        return _Heard(silent={COUNTERS: "the scan asked nobody about ports"})
    if reading := as_reading(branches):
        return _Heard(silent={COUNTERS: reading.reason})
    if not isinstance(branches, dict):
        return _Heard(silent={COUNTERS: f"{branches!r:.40} is no answer of a tool"})
    heard = _Heard()
    for name in sorted(branches):
        text = evidence.read("ports", name, "text")
        if text.kind == "value":
            heard.hear(name, str(text.value), str(evidence.read("ports", name, "stderr").value or ""))
        else:
            heard.silent[name] = text.reason
    return heard


def _counts(evidence: Evidence, heard: _Heard) -> bool:
    listed = evidence.read("ports", COUNTERS, "text").kind == "value"
    return listed or any(facts.counters for facts in heard.ports)


def _earlier(evidence: Evidence) -> tuple[datetime | None, dict[Port, PortFacts], str]:
    at, counters = evidence.read("earlier", "at"), evidence.read("earlier", "counters")
    if at.kind != "value" or counters.kind != "value":
        return None, {}, at.reason or counters.reason
    try:
        known = {
            Port(guid, int(number)): PortFacts(Port(guid, int(number)), counters=_counted(named))
            for guid, ports in counters.value.items()
            for number, named in ports.items()
        }
        return datetime.fromisoformat(at.value).astimezone(UTC), known, ""
    except (AttributeError, TypeError, ValueError, OverflowError) as wrong:
        return None, {}, f"what the scan before counted cannot be read: {wrong}"


def _counted(named: Any) -> dict[str, int]:
    """Return a port's counters by name. Raises TypeError for what is none."""
    if any(type(count) is not int for count in named.values()):
        raise TypeError("a count is no whole number")
    return dict(named)
