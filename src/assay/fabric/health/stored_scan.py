"""Reads what one stored scan reports of the ports, and how their counters grew since the scan before it.

Channel `ports` of a fabric's evidence has one branch for each command of `fabric_facts`, with `text`, `stderr` and
`command`, or a failed reading instead. Channel `earlier` holds the time (`at`) and the `counters` of the scan before
(`{GUID: {PORT: {COUNTER: n}}}`), so that growth can be derived again from this one document. A command may be a site's
own telemetry, which writes a FabricTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field, ValidationError

from assay.fabric.discovery import ModuleValue, PortFacts, merge_port_facts
from assay.fabric.health.counters import ETHERNET_COUNTERS, PortGrowth, measure_port_growth
from assay.fabric.health.switch_facts import (
    SONIC,
    SubnetManager,
    SwitchFacts,
    is_sminfo,
    merge_switch_facts,
    parse_sminfo,
    parse_sonic,
)
from assay.fabric.readers import format_detection
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.reading import absent, parse_reading, value
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.design_parts import DeviceGuid
from assay.model.specs.spec_document import StrictModel

SCHEMA = "assay.fabric-facts/1"
TRAFFIC = frozenset({"PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts"})
"""Counters that grow with every packet. They show nothing of health, and would make each document larger."""
COUNTERS_COMMAND = "errors"
"""The name in `fabric_facts` of the command that lists error counters, usually ibqueryerrors."""
FIRST_SCAN_REASON = "this is the first scan with counters: growth is known from the next scan on"
Pkey = Annotated[str, Field(pattern="^0x[0-9a-f]{4}$")]


@dataclass(frozen=True)
class FabricScan:
    """One scan. `failed_commands` has, by name, why a command gave nothing; `problems` what could not be read.

    `since` is the time of the scan before, None for the first scan. Without it, `growth_unknown_reason` gives the
    reason. With `has_counters`, a tool listed the counters; a port that it leaves out has none above 0.
    `unread_commands` names the commands of which nothing could be read: they failed, or printed what no reader knows.
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
    unread_commands: frozenset[str] = frozenset()

    @property
    def seconds(self) -> float:
        """Seconds since the scan before, 0 for the first scan."""
        return (self.at - self.since).total_seconds() if self.since else 0.0

    def find_port_facts(self, port: PortId) -> PortFacts:
        """Return the facts of a port, empty ones for a port that no tool reported."""
        return self.facts.get(port) or PortFacts(port)

    def find_port_growth(self, port: PortId) -> PortGrowth:
        """Return how a port's counters grew since the scan before. A port without errors is not listed: none grew."""
        return self.growths.get(port) or PortGrowth(self.seconds)


def read_scan(evidence: EvidenceDocument, split: int = 0) -> FabricScan:
    """Read a scan of a fabric whose design splits cages in `split`, 0 if unknown.

    Never raises: what could not be read is in `failed_commands`, `problems` and the growth's reason.
    """
    reader = _read_commands(evidence, split)
    facts = merge_port_facts(reader.ports)
    since, earlier, unknown_reason = _read_earlier(evidence)
    seconds = (evidence.at - since).total_seconds() if since else 0.0
    counting = {port for port, port_facts in facts.items() if port_facts.counters} | earlier.keys() if since else ()
    listed = evidence.read("ports", COUNTERS_COMMAND, "text").kind == "value"
    is_listed = listed and COUNTERS_COMMAND not in reader.unreadable
    return FabricScan(
        evidence.at,
        facts,
        {
            port: measure_port_growth(earlier.get(port), facts.get(port) or PortFacts(port), seconds)
            for port in counting
        },
        merge_switch_facts(reader.switches),
        reader.managers[0] if reader.managers else None,
        since,
        reader.failed_commands,
        tuple(reader.problems),
        unknown_reason,
        is_listed or any(port.counters for port in reader.ports),
        frozenset(reader.unreadable | reader.failed_commands.keys()),
    )


def make_earlier_channel(evidence: EvidenceDocument | None, split: int = 0) -> dict[str, Any]:
    """Return the channel `earlier` for the scan after this one.

    A scan without counters passes on its own channel `earlier`, so that growth covers the time of both.
    """
    if evidence is None:
        return absent(FIRST_SCAN_REASON)
    scan = read_scan(evidence, split)
    if not scan.has_counters and scan.since:
        return dict(evidence.channels["earlier"])
    if not scan.has_counters:
        reason = next(iter((*scan.failed_commands.values(), *scan.problems)), "no command reads them")
        return absent(f"the scan of {evidence.at.isoformat()} has no counters: {reason}")
    counters: dict[str, dict[str, dict[str, int]]] = {}
    for port, facts in sorted(scan.facts.items()):
        tells_all = not facts.counters.keys().isdisjoint(ETHERNET_COUNTERS)
        counts = sorted(facts.counters.items())
        errors = {name: count for name, count in counts if name not in TRAFFIC and (count or tells_all)}
        if errors:
            counters.setdefault(port.guid, {})[str(port.number)] = errors
    return {"at": value(evidence.at.isoformat()), "counters": value(counters)}


def _read_commands(evidence: EvidenceDocument, split: int) -> _ScanReader:
    """Read the outputs of all commands in channel `ports`, in the order of their names."""
    branches = evidence.channels.get("ports")
    if branches is None:
        return _ScanReader(failed_commands={COUNTERS_COMMAND: "the scan has no channel `ports`"})
    if reading := parse_reading(branches):
        return _ScanReader(failed_commands={COUNTERS_COMMAND: reading.reason})
    if not isinstance(branches, dict):
        return _ScanReader(failed_commands={COUNTERS_COMMAND: f"channel `ports` holds {branches!r:.40}, no commands"})
    reader = _ScanReader(split=split)
    for name in sorted(branches):
        text = evidence.read("ports", name, "text")
        if text.kind == "value":
            reader.read_command(name, str(text.value), str(evidence.read("ports", name, "stderr").value or ""))
        else:
            reader.failed_commands[name] = text.reason
    return reader


@dataclass
class _ScanReader:
    """What the commands read so far have reported."""

    failed_commands: dict[str, str] = field(default_factory=dict)
    ports: list[PortFacts] = field(default_factory=list)
    switches: list[SwitchFacts] = field(default_factory=list)
    managers: list[SubnetManager] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    split: int = 0

    def read_command(self, name: str, text: str, stderr: str) -> None:
        if is_sminfo(text):
            manager = parse_sminfo(text)
            self.managers += [manager] if manager else []
            self._add_problems(name, [] if manager else [text.strip().splitlines()[0]])
        elif is_telemetry(text) or SONIC.search(text):
            ports, switches, problems = parse_telemetry(text) if is_telemetry(text) else parse_sonic(text, self.split)
            self.ports += ports
            self.switches += switches
            if problems and not (ports or switches):
                self.unreadable.add(name)
            self._add_problems(name, problems)
        else:
            self._read_tool_output(name, text, stderr)

    def _read_tool_output(self, name: str, text: str, stderr: str) -> None:
        try:
            discovery = format_detection.read_tool_output(text, stderr)
        except AssayError as error:
            self.unreadable.add(name)
            self._add_problems(name, [str(error)])
            return
        self.ports += discovery.facts.values()
        self.switches += [
            SwitchFacts(guid, temperature_c=temperature_c)
            for guid, temperature_c in discovery.temperatures.items()
            if guid in discovery.devices and discovery.devices[guid].kind == "switch"
        ]
        self._add_problems(name, discovery.problems)

    def _add_problems(self, name: str, problems: Iterable[str]) -> None:
        self.problems += [f"{name}: {problem}" for problem in problems]


def _read_earlier(evidence: EvidenceDocument) -> tuple[datetime | None, dict[PortId, PortFacts], str]:
    """Return the time and the counters of the scan before; or None, none, and the reason."""
    at, counters = evidence.read("earlier", "at"), evidence.read("earlier", "counters")
    if at.kind != "value" or counters.kind != "value":
        return None, {}, at.reason or counters.reason
    try:
        facts = {}
        for guid, ports in counters.value.items():
            for number, counts in ports.items():
                if any(type(count) is not int for count in counts.values()):
                    raise TypeError("a count is no whole number")
                port = PortId(guid, int(number))
                facts[port] = PortFacts(port, counters=dict(counts))
        return datetime.fromisoformat(at.value).astimezone(UTC), facts, ""
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        return None, {}, f"the counters of the scan before cannot be read: {error}"


class PortTelemetry(StrictModel):
    """One port. Lanes are lists, in order; `pkeys` is its whole partition table, 16 bits an entry.

    `fec_bins` counts blocks by the number of their wrong symbols, from none upwards.
    """

    guid: DeviceGuid
    port: int = Field(ge=0, le=254)
    rate: str = ""
    counters: dict[str, int] = Field(default_factory=dict)
    ber: dict[str, float] = Field(default_factory=dict)
    module: dict[str, Annotated[ModuleValue, Field(union_mode="left_to_right")]] = Field(default_factory=dict)
    pkeys: list[Pkey] | None = None
    fec_bins: list[Annotated[int, Field(ge=0)]] = Field(default=[], max_length=64)
    m_key_protect: int | None = Field(default=None, ge=0, le=3)

    def to_port_facts(self) -> PortFacts:
        """Return the PortFacts that readers give."""
        pkeys = None if self.pkeys is None else frozenset(int(key, 16) for key in self.pkeys)
        here = PortId(self.guid, self.port)
        return PortFacts(
            here,
            rate=self.rate,
            counters=self.counters,
            ber=self.ber,
            module=self.module,
            pkeys=pkeys,
            fec_bins=tuple(self.fec_bins),
            m_key_protect=self.m_key_protect,
        )


class SwitchTelemetry(StrictModel):
    """One switch: the state of power supplies by name (`ok` or what is wrong), the speed of fans by name in rpm."""

    guid: DeviceGuid
    firmware: str = ""
    temperature_c: float | None = None
    psus: dict[str, str] = Field(default_factory=dict)
    fans: dict[str, float] = Field(default_factory=dict)


class FabricTelemetry(StrictModel):
    """The facts of ports and switches that a site's own telemetry writes, as one JSON document.

    ```
    {"schema": "assay.fabric-facts/1",
     "ports":    [{"guid": "0x…", "port": 1, "ber": {"symbol": 1e-16}, "pkeys": ["0xffff"],
                   "module": {"temperature_c": 48.0, "vendor": "…"}}],
     "switches": [{"guid": "0x…", "firmware": "31.2014", "temperature_c": 61.0, "psus": {"1": "ok"},
                   "fans": {"1": 8e3}}]}
    ```

    It carries what no fabric-wide tool prints: mlxlink reads one port a time, and only the switches' own management
    knows fans and power supplies. Names are those of PortFacts and SwitchFacts; a site leaves out what it cannot tell.
    """

    schema_: str = Field(alias="schema", pattern=f"^{SCHEMA}$")
    ports: list[PortTelemetry] = Field(default=[])
    switches: list[SwitchTelemetry] = Field(default=[])


def is_telemetry(text: str) -> bool:
    """Return whether a text claims to be such a document."""
    return text.lstrip().startswith("{") and f'"{SCHEMA}"' in text[:200]


def parse_telemetry(text: str) -> tuple[list[PortFacts], list[SwitchFacts], list[str]]:
    """Return the ports, the switches, and the problems. Never raises. A document with a problem gives nothing else."""
    try:
        telemetry = FabricTelemetry.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "the document"
        return [], [], [f"{place}: {first['msg']}"]
    switches = [
        SwitchFacts(switch.guid, switch.firmware, switch.temperature_c, switch.psus, switch.fans)
        for switch in telemetry.switches
    ]
    return [port.to_port_facts() for port in telemetry.ports], switches, []
