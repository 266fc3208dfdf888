r"""Reads what the devices of an Ethernet fabric hear of each other by LLDP: lldpd, SONiC, NVUE (Cumulus) or OpenConfig.

```
file     = { host ": " line } | { host " | " line } | { "----" host "----" text } | JSON of { host: document or text }
document = `lldpctl -f json` or `-f json0`, `lldpcli -f json show chassis`, `nv show interface [lldp] -o json`,
           OpenConfig's /lldp as JSON
table    = `show lldp table` and `show interfaces status` of SONiC, `nv show interface lldp`
speed    = "/sys/class/net/" name "/speed:" Mb/s, as `grep . /sys/class/net/*/speed` prints it
```

The first form of `file` is what clush and pdsh print, the third is clush -b or dshbak. Neighbours alone do not say
whose they are: only OpenConfig and `show chassis` name the device that reports. A host's text may hold several
documents and tables. Names of devices count up to their first dot.

A switch is known by the MAC of its chassis, which its neighbours report, an adapter by the MAC of its port; both are
written as GUIDs with four zeros in front. A device of which only names are known gets an identity made of them
(`NAMED`), until a design says which it is. Adapters have one port. Switches are told by the names of their ports; their
other ports (`eth0`) are for management and left out. LLDP tells no speed beyond 100 Gb/s, so speeds come from the
tables and from /sys; a cable runs at the slowest that was read.
Sources: lldpd 1.0.16, `lldpcli.8`, and its own output; sonic-utilities, `scripts/lldpshow`, `scripts/intfutil`; NVIDIA
NVUE reference, `nv show interface lldp`, and napalm-cumulus; openconfig-lldp.yang.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import from_json

from assay.fabric.discovery import LocalProblem
from assay.fabric.lazy_discovery import DeviceHead, LazyDiscovery, PortRow, PortRows
from assay.fabric.link_words import find_slowest_rate, parse_rate
from assay.fabric.readers.interface_names import InterfaceNumbers, is_switch_port
from assay.fabric.readers.tool_text import find_stderr_problems

NAMED = "eeee"
"""How the identity of a device begins that was made of names."""
MAC = re.compile(r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}")
PREFIX = re.compile(r"([\w.-]+)(?:: ?| \| )")
HEADED = re.compile(r"(?m)^-{4,}\n([\w.-]+)(?: \(1\))?\n-{4,}\n")
MAU = re.compile(r"(\d+)(G(?:ig)?)?[Bb]ase")
SPEED_FILE = re.compile(r"/sys/class/net/([^/\s]+)/speed:(\d+)")
COLUMNS = re.compile(r"-+")
NEIGHBOUR_TITLES = ("LocalPort", "RemoteDevice", "RemotePortID", "RemotePortDescr", "Remote Host", "Remote Port")
TITLES = frozenset(("Interface", "Speed", "Alias", *NEIGHBOUR_TITLES))
REFUSED = re.compile(r"exited with|refused|Permission denied|lost connection|No route to host|not found|Killed", re.I)
NO_HOST = "the text does not say whose neighbours these are: run it by `clush -w SWITCHES …`, which names the host"


class Neighbour(NamedTuple):
    """What one port hears: the name and the chassis' MAC of a device, and two names of the port there.

    `rate` is that of the cable, "" where it is not told.
    """

    port: str
    name: str
    chassis: str
    far_port: str
    far_text: str
    rate: str = ""


@dataclass
class HostReport:
    """What one device reports: its neighbours, the speeds and other names of its ports, and perhaps its own MAC."""

    neighbours: list[Neighbour] = field(default_factory=list)
    rates: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    chassis: str = ""

    @property
    def is_switch(self) -> bool:
        """Whether its ports have the names that switches give."""
        return any(map(is_switch_port, (*(entry.port for entry in self.neighbours), *self.rates)))


class LldpDiscovery(LazyDiscovery):
    """A discovery of an Ethernet fabric. `split` is that of `InterfaceNumbers`; the names of ports are in `labels`."""

    def __init__(self, heads: Mapping[str, DeviceHead], rows: PortRows, **known: Any) -> None:
        super().__init__(heads, rows, known.pop("problems"))
        self.__dict__.update(known)

    names_devices = True
    split: int
    tells_rates: bool


def parse(text: str, stderr: str = "") -> LldpDiscovery:
    """Read a fabric. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    problems += [f"stderr: {line}" for line in stderr.splitlines() if REFUSED.search(line) and line not in problems]
    reports: dict[str, HostReport] = defaultdict(HostReport)
    for host, part in split_hosts(text, _is_part):
        try:
            _read_part(host, part, reports)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            problems.append(f"{host or 'the text'}: cannot be read: {str(error)[:120]}")
    if nameless := reports.pop("", None):
        problems += [NO_HOST] if nameless.neighbours else []
    return _Fabric(reports, problems).to_discovery()


def split_hosts(text: str, is_part: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Yield each host with its text or document; "" for what names no host. A part is what belongs to one host."""
    if ("\n----" in text or text.startswith("----")) and (headed := HEADED.split(text)[1:]):
        yield from zip(headed[::2], headed[1::2], strict=True)
        return
    if text.lstrip().startswith(("{", "[")):
        documents = None
        with suppress(ValueError):  # several documents
            documents = from_json(text) if text.rstrip().endswith(("}", "]")) else None
        if isinstance(documents, dict) and documents and all(map(is_part, documents.values())):
            yield from ((_shorten(host), part) for host, part in documents.items())
        else:
            yield "", text
        return
    blocks_of: dict[str, list[str]] = defaultdict(list)
    at = 0
    while at < len(text):
        match = PREFIX.match(text, at)
        host, prefix = (match[1], match[0]) if match else ("", "")
        block: str = _compile_block(prefix).match(text, at)[0]  # type: ignore[index]  # it matches any line
        blocks_of[host].append(block[len(prefix) :].replace(f"\n{prefix}", "\n") if prefix else block)
        at += len(block)
    yield from ((_shorten(host), "".join(blocks)) for host, blocks in blocks_of.items())


@lru_cache(None)
def _compile_block(prefix: str) -> re.Pattern[str]:
    """Return what matches one line, or all lines in a row that begin alike: one at a time, millions cost seconds."""
    return re.compile(rf"(?:{re.escape(prefix)}.*\n?)++" if prefix.endswith(" ") else ".*\n?")


def _is_part(part: Any) -> bool:
    """Whether this is the text or document of one host, and no interface or part of a document."""
    return isinstance(part, str | list) or (isinstance(part, dict) and _find_reader(part) is not None)


@lru_cache(100_000)
def _shorten(host: str) -> str:
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0]


def _read_part(host: str, part: Any, reports: dict[str, HostReport]) -> None:
    """Read one host's text or document. A document that names its device is that device's."""
    if not isinstance(part, str):
        for document in part if isinstance(part, list) else [part]:
            if isinstance(document, str):
                _read_part(host, document, reports)
            elif reader := _find_reader(document):
                reader(host, document, reports)
        return
    decoder, rest = json.JSONDecoder(), part.strip()
    whole = None
    if rest.startswith("{") and rest.endswith("}"):
        with suppress(ValueError):  # several documents, which the slower loop parts
            whole = from_json(rest)
    if whole is not None:
        _read_part(host, whole, reports)
        return
    while start := re.search(r"(?m)^[ \t]*[{\[]", rest):
        _read_tables(rest[: start.start()], reports[host])
        document, end = decoder.raw_decode(rest, start.end() - 1)
        _read_part(host, document, reports)
        rest = rest[end:]
    _read_tables(rest, reports[host])


def _find_reader(document: dict[str, Any]) -> Any:
    """Return what reads a document, None for an unknown one."""
    names = set(document)
    if "local-chassis" in names:
        return _read_own_chassis
    if any(name.endswith(":lldp") for name in names) or (
        "lldp" in names and {"interfaces", "state", "config"} & set(_one(document["lldp"]))
    ):
        return _read_openconfig
    if "lldp" in names and not {"link", "type"} & names and "neighbor" not in _one(document["lldp"]):
        return _read_lldpctl
    entries = [entry for entry in document.values() if isinstance(entry, dict)]
    return _read_nvue if entries and any({"lldp", "link"} & set(entry) for entry in entries) else None


def _one(part: Any) -> Any:
    """Return the only entry of a list, as `json0` and gNMI write single parts; any other part unchanged."""
    return (part[0] if part else {}) if isinstance(part, list) else part


def _text(part: Any) -> str:
    entry = part if isinstance(part, str) else _one(part)
    return str(entry.get("value", "") if isinstance(entry, dict) else entry or "")


def _read_lldpctl(host: str, document: dict[str, Any], reports: dict[str, HostReport]) -> None:
    listed = _one(document["lldp"]).get("interface", [])
    for entry in listed if isinstance(listed, list) else [{name: part} for name, part in listed.items()]:
        port, part = (entry["name"], entry) if "chassis" in entry else next(iter(entry.items()))
        if str(part.get("via", "LLDP")).startswith("LLDP"):
            name, chassis = _read_chassis(part["chassis"])
            far, current = _one(part["port"]), _one(_one(part["port"]).get("auto-negotiation", {})).get("current", "")
            rate = _read_mau(_text(current))
            far_port, far_text = _text(far["id"]), _text(far.get("descr", ""))
            reports[host].neighbours.append(Neighbour(port, name, chassis, far_port, far_text, rate))


def _read_chassis(part: Any) -> tuple[str, str]:
    """Return the name of a chassis, and its MAC."""
    chassis = _one(part)
    name = _text(chassis.get("name", ""))
    if "id" not in chassis and chassis:
        name, chassis = next(iter(chassis.items()))
    return _shorten(name), read_mac_text(_text(chassis.get("id", "")))


def _read_own_chassis(host: str, document: dict[str, Any], reports: dict[str, HostReport]) -> None:
    name, chassis = _read_chassis(_one(document["local-chassis"])["chassis"])
    reports[host or name].chassis = chassis


def _read_openconfig(host: str, document: dict[str, Any], reports: dict[str, HostReport]) -> None:
    plain = _without_modules(document)["lldp"]
    own = plain.get("config", {}) | plain.get("state", {})
    report = reports[host or _shorten(own.get("system-name", ""))]
    report.chassis = read_mac_text(own.get("chassis-id", "")) or report.chassis
    for port in plain.get("interfaces", {}).get("interface", []):
        for entry in port.get("neighbors", {}).get("neighbor", []):
            state = entry | entry.get("state", {})
            name, chassis = _shorten(state.get("system-name", "")), read_mac_text(state.get("chassis-id", ""))
            far = Neighbour(port["name"], name, chassis, state.get("port-id", ""), state.get("port-description", ""))
            report.neighbours.append(far)


def _without_modules(part: Any) -> Any:
    """Return JSON without the names of YANG modules in front of its names (RFC 7951)."""
    if isinstance(part, dict):
        return {name.rpartition(":")[2]: _without_modules(entry) for name, entry in part.items()}
    return [_without_modules(entry) for entry in part] if isinstance(part, list) else part


def _read_nvue(host: str, document: dict[str, Any], reports: dict[str, HostReport]) -> None:
    report = reports[host]
    for port, entry in document.items():
        if rate := _read_speed(str(entry.get("link", {}).get("speed") or "")):
            report.rates[port] = rate
        for part in entry.get("lldp", {}).get("neighbor", {}).values():
            chassis, far = part.get("chassis", {}), part.get("port", {})
            name, mac = _shorten(chassis.get("system-name", "")), read_mac_text(chassis.get("chassis-id", ""))
            rate = _read_mau(str(far.get("pmd-autoneg", {}).get("mau-oper-type", "")))
            far_port, far_text = str(far.get("name", "")), str(far.get("description", ""))
            report.neighbours.append(Neighbour(port, name, mac, far_port, far_text, rate))


def _read_tables(text: str, report: HostReport) -> None:
    for row in list_table_rows(text):
        if far := row.get("RemotePortID", row.get("Remote Port", "")):
            port = row.get("LocalPort", row.get("Interface", ""))
            name = _shorten(row.get("RemoteDevice", row.get("Remote Host", "")))
            report.neighbours.append(Neighbour(port, name, "", far, row.get("RemotePortDescr", "")))
        if rate := _read_speed(row.get("Speed", "")):
            report.rates[row["Interface"]] = rate
        if alias := row.get("Alias", ""):
            report.aliases[row["Interface"]] = alias
    report.rates |= {name: _read_speed(f"{mbps}M") for name, mbps in SPEED_FILE.findall(text)}


def list_table_rows(text: str) -> Iterator[dict[str, str]]:
    """Yield what is wanted of the rows of tables whose columns stand below dashes, as SONiC and NVUE print them."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        spans = [match.span() for match in COLUMNS.finditer(line)]
        if number and len(spans) > 2 and not line.strip("- "):
            titles = {lines[number - 1][start:end].strip(): slice(start, end) for start, end in spans}
            wanted = [(title, place) for title, place in titles.items() if title in TITLES]
            for row in lines[number + 1 :]:
                if not row.strip() or row.startswith("--"):
                    break
                yield {title: row[place].strip() for title, place in wanted}


@lru_cache(1024)
def _read_speed(text: str) -> str:
    """Return the rate of `400G`, `400000M` or `400Gbps`, "" for a text that is none."""
    match = re.fullmatch(r"(\d+)\s*([MG])(?:b(?:it)?(?:ps|/s))?", text)
    rate = f"{int(match[1]) // (1000 if match[2] == 'M' else 1)}G" if match else ""
    return rate if parse_rate(rate) else ""


@lru_cache(1024)
def _read_mau(text: str) -> str:
    """Return the rate of an operational MAU type, such as `100GbaseCR4 - …`, "" for one that has none."""
    match = MAU.match(text)
    return _read_speed(f"{match[1]}{'G' if match[2] else 'M'}") if match else ""


@lru_cache(1 << 17)
def read_mac_text(text: str) -> str:
    """Return the 12 hex digits of a MAC, "" for another text."""
    return re.sub("[:-]", "", text).lower() if MAC.fullmatch(text) else ""


def make_named_digits(name: str) -> str:
    """Return the identity, 16 hex digits, of a device of which only a name is known."""
    return NAMED + hashlib.sha256(name.encode()).hexdigest()[:12]


class _Fabric:
    """Joins the reports of all devices."""

    def __init__(self, reports: Mapping[str, HostReport], problems: list[str]) -> None:
        self.reports, self.problems = reports, problems
        self.heads: dict[str, DeviceHead] = {}
        self.ends: dict[tuple[str, int], tuple[str, int, str]] = {}
        self.switches = {host for host, report in reports.items() if report.is_switch}
        self.known = [entry for report in reports.values() for entry in report.neighbours]
        self.numbers = self._number_ports()
        self.ports: dict[str, int] = defaultdict(int)
        self.chassis_of: dict[str, set[str]] = defaultdict(set)
        self.mac_of: dict[tuple[str, str], str] = {}
        for entry in self.known:
            if entry.name and entry.chassis:
                self.chassis_of[entry.name].add(entry.chassis)
            if (mac := read_mac_text(entry.far_port)) and entry.name:
                self.mac_of[entry.name, entry.far_text] = mac
        for host, report in reports.items():
            if report.chassis:
                self.chassis_of[host] = {report.chassis}

    def _number_ports(self) -> InterfaceNumbers:
        own = [(entry.port, entry.far_port, entry.far_text) for entry in self.known]
        pairs = [(text, far) for _, far, text in own]
        pairs += [pair for report in self.reports.values() for pair in report.aliases.items()]
        names = {name for entry in own for name in entry}
        names |= {name for pair in pairs for name in pair}
        return InterfaceNumbers(names, pairs)

    def to_discovery(self) -> LldpDiscovery:
        """Return the discovery."""
        left_out = sum(self._add_report(host, report) for host, report in self.reports.items())
        rates = any(rate for _, _, rate in self.ends.values())
        rows: dict[str, list[PortRow]] = {digits: [] for digits in self.heads}
        for (digits, number), (far, far_number, rate) in self._mirror():
            rows[digits].append((str(number), far, str(far_number), rate))
        for device_rows in rows.values():
            device_rows.sort(key=lambda row: int(row[0]))
        for digits, ports in self.ports.items():
            self.heads[digits] = ("switch", str(ports), self.heads[digits][2], "")
        notes = [] if rates or not rows else ["no speeds were read: only where cables lead was compared"]
        notes += [f"{left_out} neighbours at ports for management were left out"] if left_out else []
        return LldpDiscovery(
            self.heads,
            rows,
            problems=self.problems,
            notes=tuple(notes),
            split=self.numbers.split,
            tells_rates=rates,
        )

    def _add_report(self, host: str, report: HostReport) -> int:
        """Add what one device hears. Return how many neighbours are not of the fabric."""
        is_switch, left_out = host in self.switches, 0
        own = self._add_switch(host, next(iter(self.chassis_of[host]), "")) if is_switch else ""
        if is_switch and len(self.chassis_of[host]) > 1:
            self.problems.append(f"{len(self.chassis_of[host])} devices announce the name {host}: give each its own")
        for entry in self._choose(host, report.neighbours):
            number = self.numbers.find(entry.port) if is_switch else 1
            far_port = entry.far_text if self.numbers.find(entry.far_text) else entry.far_port
            far_number = self.numbers.find(far_port)
            if not number or not (is_switch or far_number):
                left_out += 1
                continue
            digits = own or self._add_adapter(host, entry.port, self.mac_of.get((host, entry.port), ""))
            if far_number:
                far = self._add_switch(entry.name or entry.chassis, entry.chassis, far_number)
            else:
                mac = read_mac_text(entry.far_port) or self.mac_of.get((entry.name, entry.far_port), "")
                port = entry.far_text if read_mac_text(entry.far_port) else entry.far_port
                far, far_number = self._add_adapter(entry.name, port, mac), 1
            rate = self._find_rate(host, entry, far_port)
            self.ends[digits, number] = far, far_number, rate
        return left_out

    def _choose(self, host: str, neighbours: Iterable[Neighbour]) -> Iterator[Neighbour]:
        """Yield one neighbour a port: beside the host's own daemon, an adapter's firmware may speak, without a name."""
        heard: dict[str, list[Neighbour]] = defaultdict(list)
        for entry in neighbours:
            heard[entry.port].append(entry)
        for port, entries in heard.items():
            named = [entry for entry in entries if entry.name] or entries
            if len({(entry.name, entry.chassis) for entry in named}) > 1 and self.numbers.find(port):
                names = ", ".join(entry.name or entry.chassis for entry in named)
                problem = f"{port} of {host} hears several devices: {names}"
                self.problems.append(LocalProblem(problem, f"0x{self._find_switch(host)}"))
                continue
            yield named[0]

    def _find_switch(self, name: str, chassis: str = "") -> str:
        known = self.chassis_of.get(name, ())
        mac = chassis or (next(iter(known)) if len(known) == 1 else "")
        return f"0000{mac}" if mac else make_named_digits(name)

    def _add_switch(self, name: str, chassis: str, port: int = 0) -> str:
        digits = f"0000{chassis}" if chassis else self._find_switch(name)
        self.ports[digits] = max(port, self.ports[digits])
        self.heads[digits] = ("switch", "", name, "")
        return digits

    def _add_adapter(self, host: str, port: str, mac: str) -> str:
        digits = f"0000{mac}" if mac else make_named_digits(f"{host} {port}")
        self.heads.setdefault(digits, ("hca", "1", f"{host} {port}".strip(), ""))
        return digits

    def _find_rate(self, host: str, entry: Neighbour, far_port: str) -> str:
        far, slowest = self.reports.get(entry.name), entry.rate
        for rate in (self.reports[host].rates.get(entry.port), far.rates.get(far_port) if far else ""):
            if rate and rate != slowest:
                slowest = find_slowest_rate(slowest, rate) if slowest else rate
        return slowest

    def _mirror(self) -> Iterator[tuple[tuple[str, int], tuple[str, int, str]]]:
        """Yield each end, and the other ends at devices that report nothing themselves, with the rate of either."""
        reporting = {digits for digits, _ in self.ends}
        for here, (far, number, rate) in self.ends.items():
            back = self.ends.get((far, number))
            if back is None and far not in reporting:
                yield (far, number), (*here, rate)
            other = back[2] if back and back[:2] == here else rate
            yield here, (far, number, rate if rate == other else find_slowest_rate(rate, other) or rate or other)
