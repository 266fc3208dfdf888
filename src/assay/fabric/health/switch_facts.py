"""What a fabric's own parts report beside links: switches of their health, the subnet manager, a port's partitions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.fabric.discovery import PortFacts
from assay.fabric.health import counters
from assay.fabric.readers.interface_names import InterfaceNumbers
from assay.fabric.readers.lldp import read_mac_text, split_hosts
from assay.model.facts import frozen
from assay.model.specs.fabric.cable import PortId, normalize_guid
from assay.model.specs.fabric.design_parts import FULL_MEMBER_BIT

SMINFO = re.compile(
    r"sminfo: sm lid (\d+) sm guid (0x[0-9a-fA-F]{1,16}), activity count (\d+) priority (\d+) state (\d) (\w+)"
)
"""Source: infiniband-diags 44, `sminfo.c`; the states are those of the SMInfo attribute."""
MASTER = "SMINFO_MASTER"
ROW = re.compile(r"([0-9]{1,5}):((?: 0x[0-9a-fA-F]{4}){8})")
CAPACITY = re.compile(r"([0-9]{1,5}) pkeys capacity for this port")
SONIC = re.compile(r'"(?:COUNTERS_PORT_NAME_MAP|TRANSCEIVER_DOM_SENSOR\||DEVICE_METADATA\||PSU_INFO\|)')
DOWNS_FILE = re.compile(r"/sys/class/net/([^/\s]+)/carrier_down_count:(\d+)")
BUILD = re.compile(r"(?m)^build_version: *'?([^'\s]+)")
BLOCK = 32
"""Rows come in blocks of so many entries, also where the port has room for fewer."""


@frozen
class SwitchFacts:
    """One switch. A field that no tool reported is empty or None.

    `psus` has the state of each power supply, `ok` or what is wrong with it; `fans` the speed of each fan in rpm (of
    SONiC, in per cent).
    """

    guid: str
    firmware: str = ""
    temperature_c: float | None = None
    psus: Mapping[str, str] = field(default_factory=dict)
    fans: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed_psus(self) -> tuple[str, ...]:
        """The power supplies that are not `ok`, each with its state."""
        return tuple(f"{name}: {state}" for name, state in sorted(self.psus.items()) if state.lower() != "ok")

    @property
    def stopped_fans(self) -> tuple[str, ...]:
        """The fans that do not turn."""
        return tuple(name for name, rpm in sorted(self.fans.items()) if rpm <= 0)


def merge_switch_facts(facts: Iterable[SwitchFacts]) -> dict[str, SwitchFacts]:
    """Return one SwitchFacts a switch. Where two tools report the same field, the later one wins."""
    by_guid: dict[str, SwitchFacts] = {}
    for new in facts:
        old = by_guid.get(new.guid, new)
        temperature_c = old.temperature_c if new.temperature_c is None else new.temperature_c
        psus, fans = {**old.psus, **new.psus}, {**old.fans, **new.fans}
        by_guid[new.guid] = SwitchFacts(new.guid, new.firmware or old.firmware, temperature_c, psus, fans)
    return by_guid


def find_odd_firmware(switches: Iterable[SwitchFacts]) -> dict[str, str]:
    """Return, by GUID, the firmware of each switch that differs from that of most switches.

    Switches that do not report their firmware are left out.
    """
    known = {switch.guid: switch.firmware for switch in switches if switch.firmware}
    if not known:
        return {}
    usual, _ = Counter(sorted(known.values())).most_common(1)[0]
    return {guid: firmware for guid, firmware in known.items() if firmware != usual}


@frozen
class SubnetManager:
    """The manager that answered: its port's GUID and LID, its activity counter, its priority and state."""

    guid: str
    lid: int
    activity: int
    priority: int
    state: str

    @property
    def master(self) -> bool:
        """Whether it manages the subnet. Otherwise it is on standby for another manager."""
        return self.state == MASTER


def is_sminfo(text: str) -> bool:
    """Return whether sminfo printed a text."""
    return text.lstrip().startswith("sminfo:")


def parse_sminfo(text: str) -> SubnetManager | None:
    """Return the manager, None for a text that is not of sminfo or is incomplete."""
    match = SMINFO.search(text)
    if not match:
        return None
    lid, guid, activity, priority, _, state = match.groups()
    return SubnetManager(normalize_guid(guid), int(lid), int(activity), int(priority), state)


def describe_pkey_differences(designed: Iterable[int], present: Iterable[int]) -> list[str]:
    """Return how the 16-bit P_Keys of a port differ from the designed ones, in words, one text a partition."""
    missing, unexpected = set(designed) - set(present), set(present) - set(designed)
    bases = {key % FULL_MEMBER_BIT for key in missing | unexpected}
    return [_describe_difference(base, missing, unexpected) for base in sorted(bases)]


def _describe_difference(base: int, missing: set[int], unexpected: set[int]) -> str:
    wanted, present = ([key for key in (base, base | FULL_MEMBER_BIT) if key in keys] for keys in (missing, unexpected))
    if wanted and present:
        return f"is a {_membership(present[0])} member of 0x{base:04x}, designed as a {_membership(wanted[0])} one"
    if wanted:
        return f"is no {' or '.join(map(_membership, wanted))} member of 0x{base:04x}"
    return f"is a {' and '.join(map(_membership, present))} member of 0x{base:04x}, which is not designed"


def _membership(key: int) -> str:
    return "full" if key & FULL_MEMBER_BIT else "limited"


@dataclass
class PkeyTable:
    """The partition table of one port that `smpquery pkeys` prints, added line by line.

    ```
    table    = { row } capacity
    row      = index ":" key { key }          (8 keys; empty entries are 0x0000)
    key      = "0x" 4 hex digits
    capacity = n "pkeys capacity for this port"
    ```

    The table does not name its port. Source: infiniband-diags 44, `smpquery.c`, `pkey_table`.
    """

    entries: list[int] = field(default_factory=list)
    capacity: int = 0
    skipped: bool = False

    def add_line(self, line: str) -> bool:
        """Add a line, and return whether it belongs to a table. A row out of sequence shows that one was lost."""
        if match := ROW.fullmatch(line):
            self.skipped |= int(match[1]) != len(self.entries) or bool(self.capacity)
            self.entries += [int(key, 16) for key in match[2].split()]
        elif match := CAPACITY.fullmatch(line):
            self.skipped |= bool(self.capacity)
            self.capacity = int(match[1])
        return bool(match)

    @property
    def is_complete(self) -> bool:
        """Whether no row was lost."""
        blocks = -(-self.capacity // BLOCK)
        return self.capacity > 0 and not self.skipped and len(self.entries) == blocks * BLOCK

    @property
    def pkeys(self) -> frozenset[int]:
        """The P_Keys of the table. An entry with no bit but the membership bit is empty."""
        return frozenset(key for key in self.entries if key % FULL_MEMBER_BIT)


def parse_sonic(text: str, split: int = 0) -> tuple[list[PortFacts], list[SwitchFacts], list[str]]:
    """Return the ports, the switches, and what cannot be read, of switches that run SONiC. Never raises.

    ```
    file = as in `readers/lldp.py`; JSON of { host: [ document or text ] }
    part = `sonic-db-dump -n DATABASE -y` of CONFIG_DB, COUNTERS_DB and STATE_DB,
           `grep . /sys/class/net/*/carrier_down_count`, `cat /etc/sonic/sonic_version.yml`
    ```

    CONFIG_DB tells which switch it is, and how its ports are numbered: as in a design that splits cages in `split`, if
    that is known. What a switch does not tell is left out.
    Sources: sonic-py-swsssdk, `sonic-db-dump`; sonic-swss-common, schema.h; sonic-platform-daemons (xcvrd, psud,
    thermalctld); Linux, Documentation/ABI/testing/sysfs-class-net.
    """
    ports: list[PortFacts] = []
    switches: list[SwitchFacts] = []
    problems: list[str] = []
    for host, part in split_hosts(text, lambda part: isinstance(part, str | list)):
        try:
            tables, lines = _read_tables(part)
            _read_sonic_switch(tables, lines, split, ports, switches)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            problems.append(f"{host or 'the text'}: cannot be read: {str(error)[:120]}")
    return ports, switches, problems


Tables = Mapping[str, Mapping[str, str]]
"""The rows of all databases by their key, `TRANSCEIVER_INFO|Ethernet0`."""


def _read_tables(part: Any) -> tuple[dict[str, Mapping[str, str]], str]:
    """Return the rows, and the lines that are no JSON."""
    tables: dict[str, Mapping[str, str]] = {}
    lines = ""
    for piece in part if isinstance(part, list) else [part]:
        rest = piece if isinstance(piece, str) else json.dumps(piece)
        while start := re.search(r"(?m)^[ \t]*{", rest):
            document, end = json.JSONDecoder().raw_decode(rest, start.end() - 1)
            tables |= {key: row["value"] for key, row in document.items() if isinstance(row.get("value"), dict)}
            lines, rest = lines + rest[: start.start()], rest[end:]
        lines += f"{rest}\n"
    return tables, lines


def _read_sonic_switch(
    tables: Tables, lines: str, split: int, ports: list[PortFacts], switches: list[SwitchFacts]
) -> None:
    mac = read_mac_text(tables.get("DEVICE_METADATA|localhost", {}).get("mac", ""))
    if not mac:
        raise ValueError("it does not tell its MAC: dump CONFIG_DB too")
    guid = f"0x0000{mac}"
    aliases = {name: row.get("alias", "") for name, row in _rows(tables, "PORT|")}
    numbers = InterfaceNumbers((*aliases, *aliases.values()), aliases.items())
    downs = {name: int(count) for name, count in DOWNS_FILE.findall(lines)}
    ids = tables.get("COUNTERS_PORT_NAME_MAP", {})
    for name in aliases:
        cage, part = divmod(numbers.find(name) - 1, numbers.split or 1)
        if cage < 0 or (split and part >= split):
            continue  # for management, or a part of a cage that the design does not split
        row = tables.get(f"COUNTERS:{ids.get(name, '')}", {})
        counts = {counters.DOWNED: downs[name]} if name in downs else {}
        for ours, theirs in counters.SAI_COUNTERS.items():
            texts = [row.get(f"SAI_PORT_STAT_{counter}", "") for counter in theirs]
            counts |= {ours: sum(map(int, texts))} if all(texts) else {}
        bins = tuple(int(row[at]) for at in counters.FEC_BINS) if row.keys() >= set(counters.FEC_BINS) else ()
        port = PortId(guid, cage * (split or numbers.split or 1) + part + 1)
        ports.append(PortFacts(port, counters=counts, fec_bins=bins, module=_read_module(tables, name)))
    build = BUILD.search(lines)
    heat = [_number(row.get("temperature")) for name, row in _rows(tables, "TEMPERATURE_INFO|") if "ASIC" in name]
    psus = {name: _judge_part(row) for name, row in _rows(tables, "PSU_INFO|")}
    turning = [
        (name, _number(row.get("speed")) if _judge_part(row) == "ok" else 0.0)
        for name, row in _rows(tables, "FAN_INFO|")
    ]
    fans = {name: speed for name, speed in turning if speed is not None}
    hottest = max((degrees for degrees in heat if degrees is not None), default=None)
    switches.append(SwitchFacts(guid, build[1] if build else "", hottest, psus, fans))


def _rows(tables: Tables, table: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    return ((key.removeprefix(table), row) for key, row in tables.items() if key.startswith(table))


def _read_module(tables: Tables, name: str) -> dict[str, Any]:
    made, sensors = (tables.get(f"TRANSCEIVER_{table}|{name}", {}) for table in ("INFO", "DOM_SENSOR"))
    words = {
        "vendor": made.get("manufacturer", made.get("manufacturename", "")),
        "part": made.get("model", made.get("modelname", "")),
        "serial": made.get("serial", made.get("serialnum", "")),
    }
    lanes = {
        ours: tuple(number for lane in range(1, 9) if (number := _number(sensors.get(theirs.format(lane)))) is not None)
        for ours, theirs in counters.SONIC_LANES.items()
    }
    module: dict[str, Any] = {key: value for key, value in {**words, **lanes}.items() if value}
    degrees, volts = _number(sensors.get("temperature")), _number(sensors.get("voltage"))
    module |= {} if degrees is None else {"temperature_c": degrees}
    return module | ({} if volts is None else {"voltage_mv": volts * 1000})


def _number(text: str | None) -> float | None:
    """Return a number, None for none and for `N/A`."""
    match = re.match(r"-?(?:\d+(?:\.\d+)?|inf)", text or "")
    return float(match[0]) if match else None


def _judge_part(row: Mapping[str, str]) -> str:
    """Return the state of a power supply or fan: daemons write `true`, and older ones `True`."""
    has, works = (row.get(name, "").lower() == "true" for name in ("presence", "status"))
    return "ok" if has and works else "failed" if has else "not present"
