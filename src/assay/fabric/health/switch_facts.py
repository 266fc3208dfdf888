"""What a switch says of itself: firmware, temperature, power supplies, fans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SwitchFacts:
    """One switch. What nobody said is empty or None.

    A power supply is `ok`, or its state says what ails it; a fan has its speed in rpm.
    """

    guid: str
    firmware: str = ""
    temperature_c: float | None = None
    psus: Mapping[str, str] = field(default_factory=dict)
    fans: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed_psus(self) -> tuple[str, ...]:
        """The power supplies that are not well, each with its state."""
        return tuple(f"{name}: {state}" for name, state in sorted(self.psus.items()) if state.lower() != "ok")

    @property
    def stopped_fans(self) -> tuple[str, ...]:
        """The fans that stand still."""
        return tuple(name for name, rpm in sorted(self.fans.items()) if rpm <= 0)


def merge_switch_facts(facts: Iterable[SwitchFacts]) -> dict[str, SwitchFacts]:
    """Return one SwitchFacts a switch. Where two tools speak of the same thing, the later one is believed."""
    by_guid: dict[str, SwitchFacts] = {}
    for one in facts:
        known = by_guid.get(one.guid, one)
        warm = known.temperature_c if one.temperature_c is None else one.temperature_c
        by_guid[one.guid] = SwitchFacts(
            one.guid, one.firmware or known.firmware, warm, {**known.psus, **one.psus}, {**known.fans, **one.fans}
        )
    return by_guid


def find_odd_firmware(switches: Iterable[SwitchFacts]) -> dict[str, str]:
    """Return the switches whose firmware is not that of most of them, by GUID. Those that do not say are left out."""
    known = {one.guid: one.firmware for one in switches if one.firmware}
    if not known:
        return {}
    usual, _ = Counter(sorted(known.values())).most_common(1)[0]
    return {guid: firmware for guid, firmware in known.items() if firmware != usual}
