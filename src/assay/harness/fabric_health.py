"""Ports, switches and rails of a fabric as a check sees them: what the last scan says of how well they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.fabric.health import counters
from assay.fabric.health.ber import Ber
from assay.fabric.health.flaps import booted_between
from assay.fabric.health.ports import PortHealth, ports_of
from assay.fabric.health.scanned import Scanned
from assay.fabric.health.switches import SwitchFacts
from assay.harness.place import PortPlace
from assay.harness.silence import Silence
from assay.harness.trial import Trial
from assay.model.cable import Cable

if TYPE_CHECKING:
    from assay.harness.links import FabricView


class PortView(PortPlace):
    """One port of a designed cable. Its numbers raise Silence where the scan did not tell them."""

    def __init__(self, health: ScanView, port: PortHealth) -> None:
        super().__init__(port.end)
        self._health, self._port = health, port

    @property
    def symbol_errors(self) -> float:
        """Symbol errors an hour since the scan before."""
        return self._grown(self._port.symbol_errors, counters.SYMBOL)

    @property
    def recoveries(self) -> float:
        """Recoveries of the link an hour since the scan before."""
        return self._grown(self._port.recoveries, counters.RECOVERY)

    @property
    def receive_errors(self) -> float:
        """Broken packets an hour since the scan before."""
        return self._grown(self._port.receive_errors, *counters.LINK_ERRORS)

    @property
    def discards(self) -> float:
        """Packets an hour that could not leave, since the scan before."""
        return self._grown(self._port.discards, counters.DISCARDS)

    @property
    def forbidden(self) -> float:
        """Packets an hour of partitions that may not pass, since the scan before."""
        return self._grown(self._port.forbidden, *counters.CONSTRAINTS)

    @property
    def management_drops(self) -> float:
        """Management packets an hour that were dropped, since the scan before."""
        return self._grown(self._port.management_drops, counters.VL15)

    @property
    def downs(self) -> int:
        """How often the link went down since the scan before, less what a reboot of its node explains."""
        count = int(self._grown(self._port.downs().count, counters.DOWNED))
        return self._port.downs(self._health.boots_of(self._port)).unexplained if count else 0

    @property
    def ber_kind(self) -> str:
        """Which bit error ratio counts at its speed: `symbol` or `effective`. Raises Silence where none was read."""
        return self._ber.kind

    @property
    def ber(self) -> float:
        """The bit error ratio that counts at its speed. Raises Silence where none was read."""
        return self._ber.ratio

    @property
    def temperature_c(self) -> float:
        """The module's temperature. Raises Silence where none was read."""
        return self._read("temperature_c", self._port.optics.temperature_c)

    @property
    def rx_power_dbm(self) -> Sequence[float]:
        """The light that arrives, a number a lane; none for copper. Raises Silence where no module was read."""
        return self._lanes("rx_power_dbm")

    @property
    def tx_power_dbm(self) -> Sequence[float]:
        """The light that leaves, a number a lane; none for copper. Raises Silence where no module was read."""
        return self._lanes("tx_power_dbm")

    @property
    def pkeys(self) -> frozenset[int]:
        """The P_Keys of its partition table, 16 bits each. Raises Silence where none was read."""
        if self._port.facts.pkeys is None:
            raise self._health.unread(f"no tool read the P_Keys {self.place}")
        return self._port.facts.pkeys

    @property
    def _ber(self) -> Ber:
        ber = self._port.ber
        if ber is None:
            raise self._health.unread(f"no tool read the bit error ratio {self.place}")
        return ber

    def _grown(self, number: float, *names: str) -> float:
        stuck = [name for name in names if name in self._port.stuck]
        return self._health.grown(number, f"{stuck[0]} {self.place} stands at its end: clear it" if stuck else "")

    def _lanes(self, name: str) -> Sequence[float]:
        """Return a list of readings; that it is empty can be believed of a module that answered only."""
        lanes: tuple[float, ...] = getattr(self._port.optics, name)
        return lanes if lanes or self.temperature_c else ()

    def _read(self, name: str, number: float | None) -> float:
        if number is None:
            raise self._health.unread(f"no tool read {name} of the module {self.place}")
        return number


class ScanView:
    """The last scan of one fabric. Raises Silence where it did not tell what a check asks for."""

    def __init__(self, trial: Trial, fabric: str, scan: Scanned) -> None:
        self._trial, self._document, self.scan = trial, f"fabric-{fabric}", scan

    def ports(self, cables: Iterable[Cable]) -> list[PortHealth]:
        """Return both ports of each cable."""
        return ports_of(cables, self.scan)

    def grown(self, number: float, doubt: str = "") -> float:
        """Return what was counted since the scan before.

        That it is 0 can be believed only of a whole reading, and of counters that can still count: else `doubt` says
        why not.
        """
        if not self.scan.counted:
            why = next(iter(self.scan.silent.values()), "no tool counted")
            raise self._silent(self._kind, "ports", why)
        if self.scan.since is None:
            raise self._silent("unsupported", "earlier", self.scan.unknown)
        doubt = doubt or (f"partial: {self.scan.problems[0]}" if self.scan.problems else "")
        if doubt and not number:
            raise self._silent("failed", "ports", doubt)
        return number

    def unread(self, why: str) -> Silence:
        """Return the complaint about something that no command of `fabric_facts` told, or that one should have."""
        said = [*self.scan.silent.values(), *self.scan.problems]
        if said and self._kind == "failed":
            return self._silent("failed", "ports", said[0])
        return self._silent("unsupported", "ports", why)

    def boots_of(self, port: PortHealth) -> int:
        """Return how often the port's node, at either end, is known to have booted since the scan before."""
        nodes = {end.node for end in (port.end, port.far) if end.node}
        return sum(self._booted(node) for node in nodes)

    def _booted(self, node: str) -> bool:
        try:
            document = self._trial.shelf.latest(node)
        except Silence:
            return False  # a reboot that nobody saw explains nothing
        uptime, since = document.evidence.read("probe", "host", "uptime_s"), self.scan.since
        if uptime.kind != "value" or since is None:
            return False
        explained = booted_between(since, self.scan.at, document.evidence.at, float(uptime.value))
        if explained:
            self._trial.documents[node] = document
        return explained

    @property
    def _kind(self) -> str:
        """What it means that something was not told: a tool failed, or there is none that tells it."""
        asked = self._trial.look(self._document).evidence.channels.get("ports", {})
        well = not self.scan.silent and not self.scan.problems
        return "unsupported" if "unsupported" in asked or well else "failed"

    def _silent(self, kind: str, channel: str, why: str) -> Silence:
        return self._trial.silent(Silence(kind, f"{self._document}.{channel}", why))


class SwitchView:
    """One designed switch: its ports to other switches, and what it says of itself."""

    def __init__(self, fabric: FabricView, name: str) -> None:
        self._fabric, self.name = fabric, name
        self._cables = [cable for cable in fabric.cables if name in (cable.a.device, cable.b.device)]

    @property
    def ports(self) -> list[PortView]:
        """Its ports to other switches; those to nodes are judged with the node."""
        between = [cable for cable in self._cables if not (cable.a.node or cable.b.node)]
        return [one for one in self._fabric.ports(between) if one.device == self.name]

    @property
    def temperature_c(self) -> float:
        """The switch's own temperature. Raises Silence where nobody read it."""
        return self._said("temperature_c", self._facts.temperature_c)

    @property
    def failed_psus(self) -> tuple[str, ...]:
        """Power supplies that are not well. Raises Silence where nobody read them."""
        self._said("power supplies", len(self._facts.psus) or None)
        return self._facts.failed_psus

    @property
    def stopped_fans(self) -> tuple[str, ...]:
        """Fans that stand still. Raises Silence where nobody read them."""
        self._said("fans", len(self._facts.fans) or None)
        return self._facts.stopped_fans

    @property
    def _facts(self) -> SwitchFacts:
        guid = next((end.guid for cable in self._cables for end in cable.ends if end.device == self.name), "")
        return self._fabric.health.scan.switches.get(guid) or SwitchFacts(guid)

    def _said(self, what: str, number: float | None) -> float:
        if number is None:
            raise self._fabric.health.unread(f"no tool read the {what} of {self.name}")
        return number

    def __repr__(self) -> str:
        return f"<switch {self.name}>"


class RailView:
    """One rail: the switches' ports towards its adapters."""

    def __init__(self, fabric: FabricView, number: int, adapters: frozenset[str]) -> None:
        self._fabric, self.number, self._adapters = fabric, number, adapters

    @property
    def ports(self) -> list[PortView]:
        """The ports of its leaves that lead to nodes."""
        mine = [one for one in self._fabric.cables if self._adapters & {one.a.guid, one.b.guid}]
        return [one for one in self._fabric.ports(mine) if not one.node]

    def __repr__(self) -> str:
        return f"<rail {self.number}>"
