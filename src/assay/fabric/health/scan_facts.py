"""What one stored scan says of the ports, and what they counted since the scan before it.

Channel `ports` of a fabric's evidence: one branch for each command of `fabric_facts`, with `text`, `stderr` and
`command`, or a failed reading in its place. Channel `make_earlier_channel`: `at` and `counters` (`{GUID: {PORT: {COUNTER: n}}}`) of
the scan before, so that a verdict can be derived again from this one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from assay.fabric.discovery import FabricEvent, PortFacts, merge_port_facts
from assay.fabric.health import subnet_manager, switch_facts, telemetry_schema
from assay.fabric.health.counter_growth import PortGrowth, measure_port_growth
from assay.fabric.health.subnet_manager import SubnetManager
from assay.fabric.health.switch_facts import SwitchFacts
from assay.fabric.readers import format_detection
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fabric.ports_and_cables import PortId
from assay.model.reading import absent, parse_reading, value

TRAFFIC = frozenset({"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts"})
"""Counters that grow with every packet. They say nothing of health, and would make each document larger."""

COUNTERS_COMMAND = "errors"
"""The name in `fabric_facts` of the command that lists error counters, ibqueryerrors as a rule."""

FIRST_SCAN_REASON = "this is the first scan that counted: what grew since the one before cannot be told yet"


@dataclass(frozen=True)
class FabricScan:
    """One scan. `silent` says by the name of each command that gave nothing why; `problems` what could not be read.

    `since` is the time of the scan before, None on the first; then `unknown` says why nothing can be said of growth.
    `counted`: a tool that lists counters was heard. It leaves out what is 0, so a port that it does not list has none.
    """

    at: datetime
    facts: Mapping[PortId, PortFacts] = field(default_factory=dict)
    growths: Mapping[PortId, PortGrowth] = field(default_factory=dict)
    switches: Mapping[str, SwitchFacts] = field(default_factory=dict)
    manager: SubnetManager | None = None
    since: datetime | None = None
    failed_commands: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    growth_unknown_reason: str = ""
    has_counters: bool = False
    events: tuple[FabricEvent, ...] = ()

    @property
    def seconds(self) -> float:
        """How long after the scan before it this one was made; 0 for the first."""
        return (self.at - self.since).total_seconds() if self.since else 0.0

    def find_port_facts(self, port: PortId) -> PortFacts:
        """Return what is known of a port; an empty description for one that no tool spoke of."""
        return self.facts.get(port) or PortFacts(port)

    def find_port_growth(self, port: PortId) -> PortGrowth:
        """Return what a port counted since the scan before. A port without errors is not listed: it counted none."""
        return self.growths.get(port) or PortGrowth(self.seconds)


def read_scan(evidence: EvidenceDocument) -> FabricScan:
    """Read a scan. Never raises: what was not read is said."""
    heard = _read(evidence)
    facts = merge_port_facts(heard.ports)
    then, counters, unknown = _earlier(evidence)
    seconds = (evidence.at - then).total_seconds() if then else 0.0
    counting = {port for port, told in facts.items() if told.counters}
    ports = counting | counters.keys() if then else ()
    return FabricScan(
        evidence.at,
        facts,
        {port: measure_port_growth(counters.get(port), facts.get(port) or PortFacts(port), seconds) for port in ports},
        switch_facts.merge_switch_facts(heard.switches),
        heard.managers[0] if heard.managers else None,
        then,
        heard.silent,
        tuple(heard.problems),
        unknown,
        _counts(evidence, heard),
        tuple(heard.events),
    )


def make_earlier_channel(evidence: EvidenceDocument | None) -> dict[str, Any]:
    """Return the channel `make_earlier_channel` for the scan after this one.

    A scan that counted nothing hands on what it was given itself.
    """
    if evidence is None:
        return absent(FIRST_SCAN_REASON)
    seen = read_scan(evidence)
    if not seen.has_counters and seen.since:
        return dict(evidence.channels["earlier"])
    if not seen.has_counters:
        why = next(iter(seen.failed_commands.values()), "no tool was asked")
        return absent(f"the scan of {evidence.at.isoformat()} counted nothing: {why}")
    counters: dict[str, dict[str, dict[str, int]]] = {}
    for port, facts in sorted(seen.facts.items()):
        if kept := {name: count for name, count in sorted(facts.counters.items()) if name not in TRAFFIC and count}:
            counters.setdefault(port.guid, {})[str(port.number)] = kept
    return {"at": value(evidence.at.isoformat()), "counters": value(counters)}


@dataclass
class _ScanReader:
    """What all commands said, in the order of their names."""

    silent: dict[str, str] = field(default_factory=dict)
    ports: list[PortFacts] = field(default_factory=list)
    switches: list[SwitchFacts] = field(default_factory=list)
    managers: list[SubnetManager] = field(default_factory=list)
    events: list[FabricEvent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read_command(self, name: str, text: str, stderr: str) -> None:
        if subnet_manager.is_sminfo(text):
            manager = subnet_manager.parse_sminfo(text)
            self.managers += [manager] if manager else []
            self._troubles(name, [] if manager else [text.strip().splitlines()[0]])
        elif telemetry_schema.is_telemetry(text):
            ports, told_switches, problems = telemetry_schema.parse_telemetry(text)
            self.ports += ports
            self.switches += told_switches
            self._troubles(name, problems)
        else:
            self._read(name, text, stderr)

    def _read(self, name: str, text: str, stderr: str) -> None:
        try:
            said = format_detection.read_tool_output(text, stderr)
        except AssayError as trouble:
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


def _read(evidence: EvidenceDocument) -> _ScanReader:
    branches = evidence.channels.get("ports")
    if branches is None:
        return _ScanReader(silent={COUNTERS_COMMAND: "the scan asked nobody about ports"})
    if reading := parse_reading(branches):
        return _ScanReader(silent={COUNTERS_COMMAND: reading.reason})
    if not isinstance(branches, dict):
        return _ScanReader(silent={COUNTERS_COMMAND: f"{branches!r:.40} is no answer of a tool"})
    heard = _ScanReader()
    for name in sorted(branches):
        text = evidence.read("ports", name, "text")
        if text.kind == "value":
            heard.read_command(name, str(text.value), str(evidence.read("ports", name, "stderr").value or ""))
        else:
            heard.silent[name] = text.reason
    return heard


def _counts(evidence: EvidenceDocument, heard: _ScanReader) -> bool:
    listed = evidence.read("ports", COUNTERS_COMMAND, "text").kind == "value"
    return listed or any(facts.counters for facts in heard.ports)


def _earlier(evidence: EvidenceDocument) -> tuple[datetime | None, dict[PortId, PortFacts], str]:
    at, counters = evidence.read("earlier", "at"), evidence.read("earlier", "counters")
    if at.kind != "value" or counters.kind != "value":
        return None, {}, at.reason or counters.reason
    try:
        known = {
            PortId(guid, int(number)): PortFacts(PortId(guid, int(number)), counters=_counted(named))
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
