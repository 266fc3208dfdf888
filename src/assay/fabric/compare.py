"""The cabling that is, against the cabling that was designed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.fabric.design import Plan
from assay.fabric.diagnose import degraded, diagnose
from assay.fabric.discovery import AGGREGATION, Discovery, FoundCable
from assay.fabric.discrepancy import Discrepancy, Pair
from assay.fabric.fold import fold
from assay.fabric.matching import differences, matching
from assay.fabric.rate import rate_of, slower
from assay.model.cable import Cable, End, Port

FabricVerdict = Literal["match", "mismatch", "partial"]
FROM_ABSENCE = {"missing", "device-missing", "device-replaced"}


@dataclass(frozen=True)
class Comparison:
    """What a discovery says about a design. `matching` counts cables in their place at the designed rate.

    Of a partial discovery only those discrepancies are kept that were seen whole; `problems` says what is lacking.
    """

    design: str
    verdict: FabricVerdict
    expected: int
    found: int
    matching: int
    discrepancies: tuple[Discrepancy, ...] = ()
    problems: tuple[str, ...] = ()

    def of_node(self, node: str) -> list[Discrepancy]:
        """Return the discrepancies that touch a node."""
        return [one for one in self.discrepancies if node in one.nodes]

    def of_port(self, port: Port) -> list[Discrepancy]:
        """Return the discrepancies that name a port."""
        return [one for one in self.discrepancies if any(end.at == port for end in one.ends)]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "design": self.design,
            "verdict": self.verdict,
            "expected": self.expected,
            "found": self.found,
            "matching": self.matching,
            "discrepancies": [one.as_json() for one in self.discrepancies],
            "problems": list(self.problems),
        }


def compare(plan: Plan, discovery: Discovery) -> Comparison:
    """Compare a compiled design with a discovery."""
    look = _Look(plan, discovery)
    found = [cable for cable in discovery.cables if not look.inside_a_switch(cable)]
    problems = list(discovery.problems)
    places = {frozenset((cable.a.at, cable.b.at)): cable for cable in plan.cables}
    in_place = [(places[ports], cable) for cable in found if (ports := frozenset((cable.a, cable.b))) in places]
    problems += [f"the rate of {one.a} is {cable.rate!r}" for one, cable in in_place if not rate_of(cable.rate)]
    slow = [degraded(Pair(one, look.seen(cable))) for one, cable in in_place if slower(cable.rate, one.rate)]
    misplaced = fold(_misplaced(plan, found, look), plan, discovery)
    discrepancies = tuple(one for one in (*misplaced, *slow) if not problems or _seen_whole(one))
    verdict: FabricVerdict = "partial" if problems else "mismatch" if discrepancies else "match"
    matching_count = len(in_place) - len(slow)
    return Comparison(plan.name, verdict, len(plan.cables), len(found), matching_count, discrepancies, tuple(problems))


def _misplaced(plan: Plan, found: Iterable[FoundCable], look: _Look) -> list[Discrepancy]:
    expected = matching((cable.a.at, cable.b.at) for cable in plan.cables)
    actual = matching((cable.a, cable.b) for cable in found)
    return [diagnose(component, look.cable) for component in differences(expected, actual)]


def _seen_whole(one: Discrepancy) -> bool:
    return one.kind not in FROM_ABSENCE and all(pair.observed for pair in one.cables)


class _Look:
    """Turns ports into ends with names and places: the design's where it knows the device, else the device's own."""

    def __init__(self, plan: Plan, discovery: Discovery) -> None:
        self.plan, self.discovery = plan, discovery
        self.rates: Mapping[frozenset[Port], str] = {}

    def inside_a_switch(self, cable: FoundCable) -> bool:
        return any(
            port.guid not in self.plan.devices
            and (device := self.discovery.devices.get(port.guid))
            and device.description == AGGREGATION
            for port in (cable.a, cable.b)
        )

    def end(self, port: Port) -> End:
        known = self.plan.end(port)
        if known:
            return known
        device = self.discovery.devices.get(port.guid)
        return End(device.name if device else port.guid, port.guid, port.number)

    def cable(self, a: Port, b: Port, designed: bool) -> Cable:
        """Return a cable between two ports, its ends in the order asked for."""
        if designed and (cable := self.plan.cable_at(a)):
            return cable
        self.rates = self.rates or {frozenset((one.a, one.b)): one.rate for one in self.discovery.cables}
        return Cable(self.end(a), self.end(b), self.rates[frozenset((a, b))])

    def seen(self, cable: FoundCable) -> Cable:
        return Cable(self.end(cable.a), self.end(cable.b), cable.rate)
