"""Explains cables without link: which devices are dead, and which are only out of reach behind dead ones.

A discovery sees what it can reach. If a switch is off, its cables have no link, and neither do the cables behind it.
The first such switch that answering devices lead to is the cause. What lies behind it is neither healthy nor dead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from assay.fabric.compare.residual_diff import PortPair
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.model.specs.fabric.ports_and_cables import PortId

Unit = str


@dataclass
class AbsenceCause:
    """One dead node or switch, or one cable that cuts others off.

    `unit` is the node's name or the switch's GUID, "" for a cable. `cables` are its own, `cut_off` those behind it.
    `disabled`: a port of the cable is disabled.
    """

    unit: Unit
    cables: list[PortPair] = field(default_factory=list)
    cut_off: list[PortPair] = field(default_factory=list)
    disabled: bool = False


@dataclass
class AbsentDevices:
    """The explanation of all cables without link: `causes`, `single` missing cables, and `unreached` ones.

    No designed path leads from an answering device to an unreached cable: the discovery ran in another part.
    """

    causes: list[AbsenceCause]
    single: list[PortPair]
    unreached: list[PortPair]


def explain_absent_devices(
    topology: CompiledTopology, missing: Mapping[PortId, PortId], disabled: Collection[PortId], present: Collection[str]
) -> AbsentDevices:
    """Explain cables without link. `missing` has both ports of each, `present` the GUIDs of devices with any link.

    `disabled` are the ports that somebody disabled, which explains their cables.
    """
    return _AbsenceAnalysis(topology, missing, disabled, present).explain()


class _AbsenceAnalysis:
    def __init__(
        self,
        topology: CompiledTopology,
        missing: Mapping[PortId, PortId],
        disabled: Collection[PortId],
        present: Collection[str],
    ) -> None:
        self.topology, self.missing, self.disabled, self.present = topology, missing, disabled, present
        self.remaining = dict(missing)
        self.owner: dict[str, AbsenceCause] = {}
        devices = {port.guid: topology.devices[port.guid] for port in missing if port.guid not in present}
        self.switches = [guid for guid, device in devices.items() if device.kind != "hca"]
        self.nodes: dict[str, list[str]] = defaultdict(list)
        for guid, device in devices.items():
            if device.kind == "hca":
                self.nodes[device.node or guid].append(guid)

    def explain(self) -> AbsentDevices:
        off = [port for port in self.missing if port in self.disabled]
        disabled = [AbsenceCause("", [self._take_cable(port)], disabled=True) for port in off if port in self.remaining]
        dead = [*self._find_dead_switches(), *self._find_dead_nodes()]
        for cause in dead:
            self.owner |= dict.fromkeys(self.nodes.get(cause.unit, [cause.unit]), cause)
        for cause in disabled:
            for port in cause.cables[0]:
                if port.guid not in self.present:
                    self.owner.setdefault(port.guid, cause)
        causes = [*disabled, *dead, *self._find_only_links()]
        self._assign_owners()
        single = [edge for edge in self._list_remaining_cables() if not self._assign_cut_off(edge)]
        unreached = self._find_unreached(single)
        return AbsentDevices(causes, [edge for edge in single if edge not in unreached], [*unreached])

    def _find_dead_switches(self) -> list[AbsenceCause]:
        """Return the absent switches with at least two cables to present devices, those with most cables first."""
        dead = [guid for guid in self.switches if len(self._list_ports_to_present([guid])) > 1]
        order = sorted(dead, key=lambda guid: (-len(self.topology.rows[guid[2:]]), guid))
        return [AbsenceCause(guid, self._take_cables_of(guid)) for guid in order]

    def _find_dead_nodes(self) -> list[AbsenceCause]:
        """Return the nodes without an answering adapter, with at least two cables to present devices."""
        some = {node for node, guids in self.nodes.items() if len(self._list_ports_to_present(guids)) > 1}
        answering = {d.node for guid, d in self.topology.devices.items() if d.node in some and guid in self.present}
        dead = [(node, guids) for node, guids in self.nodes.items() if node in some - answering]
        return [
            AbsenceCause(node, [edge for guid in guids for edge in self._take_cables_of(guid)]) for node, guids in dead
        ]

    def _find_only_links(self) -> list[AbsenceCause]:
        """Return the cables that are the only link to an absent switch and to the devices behind it."""
        causes = []
        for guid in self.switches:
            links = [] if guid in self.owner else self._list_ports_to_present([guid])
            if links and any(port in self.remaining and port not in links for port in self._list_ports(guid)):
                self.owner[guid] = cause = AbsenceCause("", [self._take_cable(links[0])])
                causes.append(cause)
        return causes

    def _assign_owners(self) -> None:
        """Assign every device behind a cause to the nearest cause."""
        front = [guid for guid in self.owner if self.topology.devices[guid].kind != "hca"]
        while front:
            reached = []
            for guid in front:
                for port in self._list_ports(guid):
                    far = self.missing.get(port)
                    if far and far.guid not in self.present and far.guid not in self.owner:
                        self.owner[far.guid] = self.owner[guid]
                        reached.append(far.guid)
            front = [guid for guid in reached if self.topology.devices[guid].kind != "hca"]

    def _assign_cut_off(self, edge: PortPair) -> bool:
        """Add a cable between two absent devices to the cause that cuts it off. Return whether there is one."""
        a, b = edge
        if a.guid in self.present or b.guid in self.present:
            return False
        switches = [port.guid for port in edge if self.topology.devices[port.guid].kind != "hca"]
        cause = next((self.owner[guid] for guid in switches if guid in self.owner), None)
        if cause:
            cause.cut_off.append(edge)
        return cause is not None

    def _find_unreached(self, edges: list[PortPair]) -> dict[PortPair, None]:
        """Return the cables that no designed path joins to a present device."""
        if not any(a.guid not in self.present and b.guid not in self.present for a, b in edges):
            return {}
        joined = set(self.present)
        front = [guid for guid in joined if guid[2:] in self.topology.rows]
        while front:
            far = {f"0x{row[1]}" for guid in front for row in self.topology.rows[guid[2:]]} - joined
            joined |= far
            front = list(far)
        return dict.fromkeys((a, b) for a, b in edges if a.guid not in joined)

    def _list_ports_to_present(self, guids: list[str]) -> list[PortId]:
        """Return the ports whose unexplained cable leads to a present device."""
        ports = (port for guid in guids for port in self._list_ports(guid))
        return [port for port in ports if port in self.remaining and self.remaining[port].guid in self.present]

    def _list_ports(self, guid: str) -> list[PortId]:
        return [PortId(guid, int(row[0])) for row in self.topology.rows[guid[2:]]]

    def _take_cables_of(self, guid: str) -> list[PortPair]:
        return [self._take_cable(port) for port in self._list_ports(guid) if port in self.remaining]

    def _take_cable(self, port: PortId) -> PortPair:
        far = self.remaining.pop(port)
        self.remaining.pop(far, None)
        return port, far

    def _list_remaining_cables(self) -> list[PortPair]:
        """Return the cables that no cause explains yet, each once."""
        once: dict[frozenset[PortId], PortPair] = {}
        for edge in self.remaining.items():
            once.setdefault(frozenset(edge), edge)
        return list(once.values())
