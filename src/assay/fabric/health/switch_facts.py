"""What a switch reports of itself: firmware, temperature, power supplies, fans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


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
