"""A fabric and its links as a check sees them: the last discovery, compared with the design."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from assay.fabric.compare import Comparison
from assay.fabric.design import plan
from assay.fabric.discrepancy import Discrepancy
from assay.fabric.health.partitions import differing
from assay.fabric.health.scanned import Scanned, scanned
from assay.fabric.health.subnet import SubnetManager
from assay.fabric.health.switches import odd_firmware
from assay.fabric.scan import judge, subject_name
from assay.harness.fabric_health import PortView, RailView, ScanView, SwitchView
from assay.harness.parts import PartView
from assay.harness.silence import Silence, Unjudgeable
from assay.harness.trial import Trial
from assay.model.cable import Cable
from assay.model.fleet import Fleet

RATE = "degraded"


class Fabrics:
    """Designs and discoveries of one session, each compiled and compared once."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._compared: dict[str, Comparison] = {}
        self._scanned: dict[str, Scanned] = {}
        self._cables: dict[str, list[Cable]] = {}
        self._at: dict[str, dict[str, list[Cable]]] = {}

    def comparison(self, design: str, trial: Trial) -> Comparison:
        """Return the newest discovery against a design. Raises Silence where the fabric was not discovered."""
        document = trial.look(subject_name(self.fleet.designs[design]))
        text = document.evidence.read("discovery", "text")
        if text.kind != "value":
            raise trial.silent(Silence(text.kind, f"{document.evidence.node}.discovery", text.reason))
        if document.digest not in self._compared:
            self._compared[document.digest] = judge(self.fleet, self.fleet.designs[design], document.evidence)
        return self._compared[document.digest]

    def cables(self, design: str) -> list[Cable]:
        """Return every cable of a design."""
        if design not in self._cables:
            self._cables[design] = list(plan(self.fleet.designs[design], self.fleet).cables)
        return self._cables[design]

    def cables_at(self, design: str, guid: str) -> list[Cable]:
        """Return the designed cables of one device."""
        if design not in self._at:
            at = self._at[design] = defaultdict(list)
            for cable in self.cables(design):
                for one in {cable.a.guid, cable.b.guid}:
                    at[one].append(cable)
        return self._at[design].get(guid, [])

    def scanned(self, design: str, trial: Trial) -> Scanned:
        """Return what the newest scan says of the ports. Raises Silence where the fabric was not scanned."""
        document = trial.look(subject_name(self.fleet.designs[design]))
        if document.digest not in self._scanned:
            self._scanned[document.digest] = scanned(document.evidence)
        return self._scanned[document.digest]


class FabricView:
    """One fabric: how many cables are designed, which of them are wrong, what the discovery could not tell."""

    def __init__(self, fabrics: Fabrics, trial: Trial, design: str) -> None:
        if design not in fabrics.fleet.designs:
            raise Unjudgeable(f"{trial.subject} names the fabric {design!r}, of which specs/fabrics has no design")
        self._fabrics, self._trial, self.name = fabrics, trial, design

    @cached_property
    def comparison(self) -> Comparison:
        """The newest discovery against the design. Raises Silence."""
        return self._fabrics.comparison(self.name, self._trial)

    @property
    def problems(self) -> tuple[str, ...]:
        """What the discovery could not tell; empty when it is whole."""
        return self.comparison.problems

    @property
    def misplaced(self) -> list[Discrepancy]:
        """Cables and devices that are not where the design has them. Raises Silence when that cannot be told."""
        return self._whole([one for one in self.comparison.discrepancies if one.kind != RATE])

    @property
    def slow(self) -> list[Discrepancy]:
        """Cables in their place that run below the designed rate. Raises Silence when that cannot be told."""
        return self._whole([one for one in self.comparison.discrepancies if one.kind == RATE])

    @property
    def cables(self) -> list[Cable]:
        """Every designed cable."""
        return self._fabrics.cables(self.name)

    @cached_property
    def health(self) -> ScanView:
        """What the last scan says of the ports. Raises Silence where there was none."""
        return ScanView(self._trial, self.name, self._fabrics.scanned(self.name, self._trial))

    def ports(self, cables: Iterable[Cable]) -> list[PortView]:
        """Return both ports of each cable."""
        health = self.health  # also where there are no cables: a check must have looked
        return [PortView(health, one) for one in health.ports(cables)]

    @property
    def every_port(self) -> list[PortView]:
        """Both ports of every cable."""
        return self.ports(self.cables)

    @property
    def manager(self) -> SubnetManager:
        """The subnet manager that answered. Raises Silence where none was asked, or none answered."""
        found = self.health.scan.manager
        if found is None:
            raise self.health.unread("no command asked for the subnet manager")
        return found

    @property
    def odd_firmware(self) -> dict[str, str]:
        """The switches whose firmware is not that of most, by name. Raises Silence where none said its firmware."""
        known = [one for one in self.health.scan.switches.values() if one.firmware]
        if not known:
            raise self.health.unread("no tool read the firmware of the switches")
        names = {end.guid: end.device for cable in self.cables for end in cable.ends}
        return {names.get(guid, guid): firmware for guid, firmware in odd_firmware(known).items()}

    def pkeys_of(self, node: str) -> frozenset[int]:
        """Return the P_Keys that the design gives a node's adapters. Raises Silence where it declares no partitions."""
        design = self._fabrics.fleet.designs[self.name]
        if not design.partitions:
            raise self._trial.silent(Silence("unsupported", f"FabricDesign/{self.name}", "it declares no `partitions`"))
        return design.pkeys_of(node)

    def switch(self, name: str) -> SwitchView:
        """Return one designed switch."""
        return SwitchView(self, name)

    def rail(self, number: int) -> RailView:
        """Return one rail."""
        nodes = self._fabrics.fleet.nodes.values()
        guids = (node.hca_guids[number] for node in nodes if len(node.hca_guids) > number)
        return RailView(self, number, frozenset(guids))

    def _whole(self, found: list[Discrepancy]) -> list[Discrepancy]:
        """Return `found`; that it is empty can be believed of a whole discovery only."""
        if self.problems and not found:
            raise self._trial.silent(Silence("failed", f"fabric-{self.name}", f"partial: {self.problems[0]}"))
        return found

    def __repr__(self) -> str:
        return f"<fabric/{self.name}>"


class LinkView:
    """The link at one InfiniBand adapter: the cable that the design has there, and what is wrong with it."""

    def __init__(self, fabrics: Fabrics, fabric: FabricView, hca: PartView) -> None:
        self._fabric, self._hca = fabric, hca
        guid = str(hca.declared.guid)
        self._designed = fabrics.cables_at(fabric.name, guid)

    @property
    def expected(self) -> Cable:
        """The designed cable. Raises Unjudgeable for an adapter that the design does not know."""
        if not self._designed:
            raise Unjudgeable(f"{self._hca.declared.guid} has no cable in the design of fabric {self._fabric.name}")
        return self._designed[0]

    @property
    def ports(self) -> list[PortView]:
        """Both of its ports, the adapter's first. Raises Silence where the fabric was not scanned."""
        return sorted(self._fabric.ports([self.expected]), key=lambda port: not port.node)

    @property
    def partitions(self) -> list[str]:
        """How the adapter's partitions differ from the designed ones. Raises Silence where either is not known."""
        port = self.ports[0]
        return differing(self._fabric.pkeys_of(port.node), port.pkeys)

    @property
    def misplaced(self) -> list[Discrepancy]:
        """What is wrong with where its cable leads. Raises Silence when that cannot be told."""
        return self._fabric._whole(self._here(self._fabric.comparison.discrepancies, rate=False))

    @property
    def slow(self) -> list[Discrepancy]:
        """What is wrong with its rate. Raises Silence when that cannot be told."""
        return self._fabric._whole(self._here(self._fabric.comparison.discrepancies, rate=True))

    def _here(self, found: tuple[Discrepancy, ...], *, rate: bool) -> list[Discrepancy]:
        ports = {end.at for end in self.expected.ends}
        at_either_end = [one for one in found if ports & {end.at for end in one.ends}]
        return [one for one in at_either_end if (one.kind == RATE) == rate]

    def __repr__(self) -> str:
        return f"<link of {self._hca.subject}>"
