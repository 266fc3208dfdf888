"""The weekly evaluation: everything that the page, the text, the JSON and the checks tell, computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assay.fabric.weekly.batches import Batch, batches, chance
from assay.fabric.weekly.findings import FLAPS, Found, drifting, flapping, outliers, over_limits
from assay.fabric.weekly.peers import METRICS, PEER_SCORE, Limits, Standing, standings
from assay.fabric.weekly.readings import READINGS
from assay.fabric.weekly.week import PortWeek, Week, port_weeks
from assay.model.cable import Cable, Port

WORST = 10
READ = (PEER_SCORE, FLAPS, *(one.apart for one in METRICS), *(one.drift for one in READINGS))
"""The limits of a design without which something is not judged."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One port that stands out, with all that was found."""

    port: PortWeek
    found: tuple[Found, ...]

    @property
    def weight(self) -> float:
        """What orders the worst: the weights of all findings together."""
        return sum(one.weight for one in self.found)


@dataclass(frozen=True)
class Evaluation:
    """One week of one fabric. `standing` says by metric and port where it stands among its peers.

    `unseen` says what the scans could not tell, and what the design does not judge.
    """

    week: Week
    ports: tuple[PortWeek, ...]
    standing: Mapping[str, Mapping[Port, Standing]]
    ranked: tuple[Ranked, ...]
    batches: tuple[Batch, ...]
    unseen: tuple[str, ...] = ()

    @property
    def fabric(self) -> str:
        """The design's name."""
        return self.week.fabric

    @property
    def scans(self) -> int:
        """How many scans there were."""
        return self.week.scans

    @property
    def start(self) -> datetime:
        """Since when errors were counted."""
        return self.week.start

    @property
    def end(self) -> datetime:
        """The newest scan."""
        return self.week.end

    @property
    def worst(self) -> tuple[Ranked, ...]:
        """The ten worst ports."""
        return self.ranked[:WORST]

    @property
    def bad(self) -> set[Port]:
        """The ports that stand out."""
        return {one.port.end.at for one in self.ranked}

    def of(self, kind: str) -> list[Found]:
        """Return the findings of a kind, the worst first."""
        found = [one for ranked in self.ranked for one in ranked.found if one.kind == kind]
        return sorted(found, key=lambda one: -one.weight)

    @property
    def errors(self) -> int:
        """Errors of all links together."""
        return sum(port.told.errors for port in self.ports)

    def rail(self, number: int) -> tuple[int, int, float]:
        """Return how many ports of a rail stand out, how many it has, and how likely that is by chance."""
        bad = self.bad
        on_rails = [port for port in self.ports if port.rail is not None]
        here = [port for port in on_rails if port.rail == number]
        count = sum(port.end.at in bad for port in here)
        of_all = sum(port.end.at in bad for port in on_rails)
        rails = len({port.rail for port in on_rails})
        return count, len(here), min(1.0, rails * chance(count, len(here), of_all, len(on_rails)))


def evaluate(week: Week, cables: Sequence[Cable], rails: Mapping[str, int], limits: Limits) -> Evaluation:
    """Evaluate a week. `rails` has the rail of each adapter by its GUID, `limits` are those of the design."""
    ports = port_weeks(cables, rails, week)
    standing = {metric.key: standings(ports, metric, limits) for metric in METRICS}
    found = [*over_limits(ports, limits), *flapping(ports, limits), *drifting(ports, limits)]
    found += [one for stands in standing.values() for one in outliers(stands, ports, limits)]
    ranked = _ranked(found)
    return Evaluation(
        week,
        tuple(ports),
        {key: {ports[number].end.at: one for number, one in stands.items()} for key, stands in standing.items()},
        ranked,
        batches(ports, {one.port.end.at for one in ranked}),
        (*([week.doubt[1]] if week.doubt else []), *week.unseen, *_unjudged(limits)),
    )


def _ranked(found: Iterable[Found]) -> tuple[Ranked, ...]:
    by_port: dict[Port, list[Found]] = defaultdict(list)
    for one in found:
        by_port[one.port.end.at].append(one)
    ranked = [Ranked(ones[0].port, tuple(sorted(ones, key=lambda one: -one.weight))) for ones in by_port.values()]
    return tuple(sorted(ranked, key=lambda one: (-one.weight, one.port.end.at)))


def _unjudged(limits: Limits) -> Iterable[str]:
    if lacking := [name for name in READ if name not in limits]:
        yield f"the design sets no limit {', '.join(lacking)}: what they judge was not looked at"
