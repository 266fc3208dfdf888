"""Ties sightings to assay's own acts: what a flash, a restart, a wipe or a take-over causes is no fault of the node.

What is tied is recorded and does not count. A failed check is not even that: it is judged anew. An act that failed ties
nothing, so what it left behind is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from assay.decide.state.node_state import EffectRecord, NodeState
from assay.model.faults.sightings import FaultSighting
from assay.model.specs.fault_relations import OwnAct, matches
from assay.model.timestamps import format_time, parse_time

CLOCKS_APART = timedelta(minutes=1)
"""So far may the clock of a BMC or node be behind ours."""
NEVER = "9999"
"""Sorts after every time."""


@dataclass(frozen=True, slots=True)
class _ActTime:
    """When one act of assay may show itself, and by what. Times are ISO 8601 UTC: they sort as text."""

    act: OwnAct
    effect: EffectRecord
    start: str
    end: str

    def causes(self, sighting: FaultSighting) -> bool:
        """Whether a sighting tells of this act."""
        return (
            self.start <= sighting.at <= self.end
            and matches(self.act.symptoms, sighting.fault_class)
            and matches(self.act.parts, sighting.part)
            and (self.act.events is None or re.search(self.act.events, sighting.detail) is not None)
        )


def tie_to_acts(
    acts: Sequence[OwnAct], node_state: NodeState, sightings: Iterable[FaultSighting]
) -> Iterator[FaultSighting]:
    """Yield the sightings. Those that an act of assay caused do not count, and name it; failed checks are left out."""
    seen = list(sightings)
    first = min((sighting.at for sighting in seen), default=NEVER)
    spans = [_find_time(act, effect, node_state) for effect in node_state.effects for act in acts]
    times = [span for span in spans if span is not None and first <= span.end]
    for sighting in seen:
        cause = next((each.effect for each in times if each.causes(sighting)), None)
        if cause is None:
            yield sighting
        elif sighting.source != "check":
            detail = f"{sighting.detail} [caused by assay's own {cause.action} of {cause.started_at}]"
            yield sighting._replace(counts=False, detail=detail)


def _find_time(act: OwnAct, effect: EffectRecord, node_state: NodeState) -> _ActTime | None:
    """Return when an act may show itself, None for one that failed or is of another kind.

    One that nobody has read back goes on until its node leaves the state. The clocks of BMCs and nodes may be off.
    """
    if effect.standing == "failed" or effect.action not in act.actions:
        return None
    goes_on = effect.standing != "verified" and effect.at >= node_state.since
    end = parse_time(effect.at) + timedelta(minutes=act.minutes)
    start = parse_time(effect.started_at or effect.at) - CLOCKS_APART
    return _ActTime(act, effect, format_time(start), NEVER if goes_on else format_time(end))
