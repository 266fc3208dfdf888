"""Which bit error ratio says how well a link is: after the error correction that its speed class has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.fabric.port_facts import PortFacts
from assay.fabric.rate import SPEEDS, rate_of

Judged = Literal["symbol", "effective"]
FIRST_BY_SYMBOL = SPEEDS.index("HDR")
"""From HDR on, forward error correction is always on and symbol errors are what the application meets; EDR is judged by
its effective errors (ibdiagnet user manual, Bit Error Rate)."""


@dataclass(frozen=True, slots=True)
class Ber:
    """The ratio that counts for a port. `kind` names its limit: `symbol_ber`, `effective_ber`."""

    kind: Judged
    ratio: float


def judged_by(rate: str) -> Judged | None:
    """Return which ratio counts at a rate (`4xNDR`), None for a text that is no rate."""
    known = rate_of(rate)
    if known is None:
        return None
    return "symbol" if known.speed >= FIRST_BY_SYMBOL else "effective"


def ber_of(facts: PortFacts, rate: str = "") -> Ber | None:
    """Return the ratio that counts for a port at its rate, or at `rate` where it does not say; None if unread."""
    kind = judged_by(facts.rate or rate)
    if kind is None or kind not in facts.ber:
        return None
    return Ber(kind, facts.ber[kind])
