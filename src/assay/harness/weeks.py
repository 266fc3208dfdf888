"""A week of a fabric as a check sees it: where ports stand among their peers, what creeps, which groups fail more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

from assay.fabric.many import many_objects
from assay.fabric.weekly.batches import Batch
from assay.fabric.weekly.evaluation import Evaluation, evaluate
from assay.fabric.weekly.kept import from_evidence, week_name
from assay.fabric.weekly.peers import METRICS
from assay.fabric.weekly.rails import rails_of
from assay.fabric.weekly.readings import READINGS
from assay.fabric.weekly.week import PortWeek
from assay.harness.links import Fabrics
from assay.harness.place import PortPlace
from assay.harness.silence import Silence
from assay.harness.spec import Limits
from assay.harness.trial import Trial
from assay.model.cable import Cable, Port

Key = Literal["errors", "temperature", "light", "bias", "ber_power"]
APART = {metric.key: (metric.name, metric.apart) for metric in METRICS}
CREEPS = {reading.key: reading for reading in READINGS}


class Weeks:
    """The weeks of one session, each evaluated once."""

    def __init__(self, fabrics: Fabrics) -> None:
        self.fabrics = fabrics
        self._evaluated: dict[str, Evaluation] = {}
        self._at: dict[str, dict[Port, PortWeek]] = {}
        self._between: dict[str, dict[str, list[PortWeek]]] = {}

    def evaluation(self, fabric: str, trial: Trial) -> Evaluation:
        """Return the last week of a fabric, evaluated. Raises Silence where none was gathered."""
        fleet = self.fabrics.fleet
        try:
            document = trial.look(week_name(fabric))
        except Silence as missing:
            if missing.where:  # it is there, and cannot be read
                raise
            why = f"no week of the fabric {fabric} is kept; run `assay fabric evaluate {fabric}`"
            raise trial.silent(Silence("failed", "", why)) from None
        if fabric not in self._evaluated:
            design = fleet.designs[fabric]
            with many_objects():
                week, cables = from_evidence(document.evidence), self.fabrics.cables(fabric)
                self._evaluated[fabric] = evaluate(week, cables, rails_of(fleet, design), design.limits)
        return self._evaluated[fabric]

    def ports_at(self, one: Evaluation) -> Mapping[Port, PortWeek]:
        """Return every port by where it is."""
        if one.fabric not in self._at:
            self._at[one.fabric] = {port.end.at: port for port in one.ports}
        return self._at[one.fabric]

    def between_switches(self, one: Evaluation) -> Mapping[str, list[PortWeek]]:
        """Return the ports to other switches by their own switch."""
        if one.fabric not in self._between:
            found = self._between[one.fabric] = defaultdict(list)
            for port in one.ports:
                if not (port.end.node or port.far.node):
                    found[port.end.device].append(port)
        return self._between[one.fabric]


class WeekView:
    """The last week of one fabric. Raises Silence where it cannot tell what a check asks for."""

    def __init__(self, weeks: Weeks, trial: Trial, fabric: str) -> None:
        self._weeks, self._trial, self.name = weeks, trial, fabric

    @property
    def gap_h(self) -> float:
        """The longest time without a whole scan. Raises Silence where scanning has only begun, or asks nobody."""
        week = self._evaluation.week
        if not week.asked or not week.has_begun:
            raise self.silent("unsupported", week.doubt[1] if week.doubt else "")
        return week.gap_h

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The modules by vendor, part and batch. Raises Silence where no module was read."""
        found = self.trusted.batches
        if not found:
            raise self.unread("no tool read vendor and serial number of any module")
        return found

    def rail(self, number: int) -> RailWeek:
        """Return one rail."""
        return RailWeek(number, *self.trusted.rail(number))

    def of_link(self, cable: Cable) -> list[PortWeekView]:
        """Return both ports of a cable, an adapter's first. Raises Silence where the week tells too little."""
        seen = self._weeks.ports_at(self.trusted)
        return self._seen(sorted((seen[end.at] for end in cable.ends), key=lambda port: not port.end.node))

    def of_switch(self, name: str) -> list[PortWeekView]:
        """Return a switch's ports to other switches; those to nodes are judged with the node. Raises Silence."""
        return self._seen(self._weeks.between_switches(self.trusted).get(name, []))

    def _seen(self, ports: Iterable[PortWeek]) -> list[PortWeekView]:
        return [PortWeekView(self, self._evaluation, port) for port in ports]

    @property
    def trusted(self) -> Evaluation:
        """The evaluation. Raises Silence where it rests on too few scans, or on too few whole ones."""
        if doubt := self._evaluation.week.doubt:
            raise self.silent(*doubt)
        return self._evaluation

    def unread(self, why: str) -> Silence:
        """Return the complaint about something that no tool told, or that one should have."""
        failed = self._evaluation.week.silent
        return self.silent("failed", failed) if failed else self.silent("unsupported", why)

    def silent(self, kind: str, why: str) -> Silence:
        """Return a complaint, which the trial remembers."""
        return self._trial.silent(Silence(kind, week_name(self.name), why))

    def limit(self, name: str) -> float:
        """Return a limit of the design. Raises Unjudgeable for one that it does not set."""
        fleet = self._weeks.fabrics.fleet
        return float(getattr(Limits(fleet.designs[self.name], fleet.lines), name))

    @property
    def _evaluation(self) -> Evaluation:
        return self._weeks.evaluation(self.name, self._trial)

    def __repr__(self) -> str:
        return f"<week of fabric/{self.name}>"


class Stand:
    """Where a port stands among its peers: `score`, positive on the worse side, and `place` with both in words."""

    def __init__(self, score: float, place: str) -> None:
        self.score, self.place = score, place


class RailWeek:
    """How many ports of one rail stand out, and how likely that is by chance, in percent."""

    def __init__(self, number: int, bad: int, ports: int, chance: float) -> None:
        self.chance_percent = 100 * chance
        self.place = f"on rail {number}: {bad} of {ports} ports stand out"


class PortWeekView(PortPlace):
    """One port of a designed cable through the week. Its numbers raise Silence where the scans did not tell them."""

    def __init__(self, view: WeekView, one: Evaluation, port: PortWeek) -> None:
        super().__init__(port.end)
        self._view, self._evaluation, self._port = view, one, port

    @property
    def downs_a_day(self) -> int:
        """The most often that the link went down within any 24 hours."""
        self._counts(self._port.told.downs_a_day)
        return self._port.told.downs_a_day

    def stand(self, key: Key) -> Stand:
        """Return where it stands among its peers by one number."""
        name, apart = APART[key]
        if key == "errors":
            self._counts(self._port.told.errors)
        elif self._port.told.usual(key) is None:
            raise self._view.unread(f"no tool read the {name} {self.place}")
        found = self._evaluation.standing[key].get(self._port.end.at)
        if found is None:
            self._view.limit(apart)
            raise self._view.silent("unsupported", f"too few ports are like the one {self.place} to compare its {name}")
        return Stand(found.score, f"{self.place}: {found}")

    def drift(self, key: Key) -> float:
        """Return by how much a reading creeps in a week, positive on the worse side."""
        reading, trend = CREEPS[key], self._port.told.trends.get(key)
        if trend is None:
            raise self._view.unread(f"no tool read the {reading.name} {self.place}")
        if trend.a_week is None:
            raise self._view.silent("unsupported", f"too few scans read the {reading.name} {self.place}")
        return trend.a_week * reading.worse

    def _counts(self, count: int) -> None:
        """Make sure that errors were counted here, before a zero is believed."""
        if not self._port.counted_h:
            why = "no two scans after each other counted errors"
            new = f"the port {self.place} was not designed yet when the week was looked at; run `assay fabric evaluate`"
            raise self._view.unread(why) if not self._evaluation.week.counted_h else self._view.silent("failed", new)
        if (stuck := self._port.told.stuck) and not count:
            raise self._view.silent("failed", f"{stuck} {self.place} stands at its end: clear it")

    def __repr__(self) -> str:
        return f"<week of {self._port.end}>"
