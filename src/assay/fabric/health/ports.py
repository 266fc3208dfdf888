"""One designed port, with all that is known of how well it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.fabric.health import counters
from assay.fabric.health.ber import Ber, ber_of
from assay.fabric.health.counters import Grown
from assay.fabric.health.flaps import Downs, downs
from assay.fabric.health.optics import Optics, optics_of
from assay.fabric.health.scanned import Scanned
from assay.fabric.port_facts import PortFacts
from assay.model.cable import Cable, End


@dataclass(frozen=True, slots=True)
class PortHealth:
    """A port of a designed cable: where it is, where its cable leads, what was read there, what it counted."""

    end: End
    far: End
    rate: str
    facts: PortFacts
    grown: Grown

    @property
    def symbol_errors(self) -> float:
        """Symbol errors an hour."""
        return self.grown.per_hour(counters.SYMBOL)

    @property
    def recoveries(self) -> float:
        """How often an hour the link had to recover from errors, without going down."""
        return self.grown.per_hour(counters.RECOVERY)

    @property
    def receive_errors(self) -> float:
        """Packets an hour that arrived broken, or broke here: the worst of the counters of the link's own errors."""
        return max(self.grown.per_hour(name) for name in counters.LINK_ERRORS)

    @property
    def discards(self) -> float:
        """Packets an hour that could not leave by this port: it was congested, or down."""
        return self.grown.per_hour(counters.DISCARDS)

    @property
    def forbidden(self) -> float:
        """Packets an hour that were dropped because their partition may not pass here."""
        return sum(self.grown.per_hour(name) for name in counters.CONSTRAINTS)

    @property
    def management_drops(self) -> float:
        """Management packets an hour that were dropped for want of room."""
        return self.grown.per_hour(counters.VL15)

    @property
    def ber(self) -> Ber | None:
        """The bit error ratio that counts at its speed, None where nobody read it."""
        return ber_of(self.facts, self.rate)

    @property
    def optics(self) -> Optics:
        """What the module plugged in here says of itself."""
        return optics_of(self.facts)

    @property
    def stuck(self) -> tuple[str, ...]:
        """The counters that stood at their end already, and so can tell nothing until they are cleared."""
        return tuple(sorted(name for name, growth in self.grown.counters.items() if growth.stuck))

    def downs(self, boots: int = 0) -> Downs:
        """Return how often the link went down; `boots` of its node explain some of that."""
        return downs(self.grown, boots)


def ports_of(cables: Iterable[Cable], scan: Scanned) -> list[PortHealth]:
    """Return both ports of each cable."""
    return [
        PortHealth(end, far, cable.rate, scan.of(end.at), scan.growth(end.at))
        for cable in cables
        for end, far in ((cable.a, cable.b), (cable.b, cable.a))
    ]
