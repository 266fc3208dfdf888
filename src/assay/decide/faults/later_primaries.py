"""Finds what a sighting follows from among the sightings after it: the lines of one event come in any order."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from assay.model.faults.counting_and_correlation import EVENT_SECONDS, PrimaryFault, may_follow
from assay.model.faults.sightings import FaultSighting
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import parse_time


class LaterPrimaries:
    """When each primary fault was seen, by class and part."""

    def __init__(self, catalog: FaultCatalog, ordered: Iterable[FaultSighting]) -> None:
        self._catalog = catalog
        self._causes: dict[tuple[str, str], list[list[float]]] = {}
        self._times: defaultdict[PrimaryFault, list[float]] = defaultdict(list)
        for one in ordered:
            if one.fault_class in catalog.primary_faults:
                self._times[PrimaryFault(one.fault_class, one.part)].append(parse_time(one.at).timestamp())

    def has_one(self, sighting: FaultSighting, at: float) -> bool:
        """Whether a fault from which this sighting follows is seen just after it."""
        key = sighting.fault_class, sighting.part
        if key not in self._causes:
            self._causes[key] = self._list_causes(*key)
        return any(_is_soon_after(times, at) for times in self._causes[key])

    def _list_causes(self, name: str, part: str) -> list[list[float]]:
        """Return the times of each fault from which this one may follow."""
        others = (primary for primary in self._times if primary.name != name)
        return [self._times[primary] for primary in others if may_follow(self._catalog, name, part, primary)]


def _is_soon_after(times: list[float], at: float) -> bool:
    place = bisect_right(times, at)
    return place < len(times) and times[place] - at <= EVENT_SECONDS
