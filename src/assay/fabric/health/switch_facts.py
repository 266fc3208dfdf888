"""What a fabric's own parts report beside links: switches of their health, the subnet manager, a port's partitions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assay.model.specs.fabric.cable import normalize_guid
from assay.model.specs.fabric.design_parts import FULL_MEMBER_BIT

SMINFO = re.compile(
    r"sminfo: sm lid (\d+) sm guid (0x[0-9a-fA-F]{1,16}), activity count (\d+) priority (\d+) state (\d) (\w+)"
)
"""Source: infiniband-diags 44, `sminfo.c`; the states are those of the SMInfo attribute."""
MASTER = "SMINFO_MASTER"
ROW = re.compile(r"([0-9]{1,5}):((?: 0x[0-9a-fA-F]{4}){8})")
CAPACITY = re.compile(r"([0-9]{1,5}) pkeys capacity for this port")
BLOCK = 32
"""Rows come in blocks of so many entries, also where the port has room for fewer."""


@dataclass(frozen=True, slots=True)
class SwitchFacts:
    """One switch. A field that no tool reported is empty or None.

    `psus` has the state of each power supply, `ok` or what is wrong with it; `fans` the speed of each fan in rpm.
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


@dataclass(frozen=True, slots=True)
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
