"""Devices of which nothing answers: which of them are dead, and which are only out of reach behind those.

A discovery sees what it can walk to. Of a switch that is off, every cable is without link, and so is every cable behind
it. The switch at which what answers ends is the cause; what lies behind can be neither called well nor called dead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from assay.fabric.comparison.device_identity import PortPair
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import PortId

Unit = str


@dataclass
class AbsenceCause:
    """One dead thing, or one cable behind which others are out of reach.

    `unit` is the node's name or the switch's GUID, "" for a cable. `cables` are its own, `cut_off` those behind it.
    `disabled`: a port of the cable is switched off.
    """

    unit: Unit
    cables: list[PortPair] = field(default_factory=list)
    cut_off: list[PortPair] = field(default_factory=list)
    disabled: bool = False


@dataclass
class AbsentDevices:
    """What the cables without link come to: `causes`, cables that are `single`, and those that are `unreached`.

    Nothing that answers leads to unreached ones, not even by design: the discovery looked in another part.
    """

    causes: list[AbsenceCause]
    single: list[PortPair]
    unreached: list[PortPair]


def explain_absent_devices(
    plan: CompiledTopology, missing: Mapping[PortId, PortId], disabled: Collection[PortId], present: Collection[str]
) -> AbsentDevices:
    """Explain cables without link. `missing` has both ports of each, `present` the GUIDs of what has any link.

    `disabled` are ports that somebody switched off, which says all about their cables.
    """
    return _AbsenceAnalysis(plan, missing, disabled, present).explain()


class _AbsenceAnalysis:
    def __init__(
        self,
        plan: CompiledTopology,
        missing: Mapping[PortId, PortId],
        disabled: Collection[PortId],
        present: Collection[str],
    ) -> None:
        self.plan, self.missing, self.disabled, self.present = plan, missing, disabled, present
        self.left = dict(missing)
        self.owner: dict[str, AbsenceCause] = {}
        devices = {port.guid: plan.devices[port.guid] for port in missing if port.guid not in present}
        self.switches = [guid for guid, device in devices.items() if device.kind != "hca"]
        self.nodes: dict[str, list[str]] = defaultdict(list)
        for guid, device in devices.items():
            if device.kind == "hca":
                self.nodes[device.node or guid].append(guid)

    def explain(self) -> AbsentDevices:
        off = [port for port in self.missing if port in self.disabled]
        closed = [AbsenceCause("", [self._pop(port)], disabled=True) for port in off if port in self.left]
        dead = [*self._dead_switches(), *self._dead_nodes()]
        for cause in dead:
            self.owner |= dict.fromkeys(self.nodes.get(cause.unit, [cause.unit]), cause)
        for cause in closed:
            for port in cause.cables[0]:
                if port.guid not in self.present:
                    self.owner.setdefault(port.guid, cause)
        causes = [*closed, *dead, *self._only_ways()]
        self._walk()
        single = [edge for edge in self._edges() if not self._is_behind(edge)]
        unreached = self._unreached(single)
        return AbsentDevices(causes, [edge for edge in single if edge not in unreached], [*unreached])

    def _dead_switches(self) -> list[AbsenceCause]:
        """Return the switches that at least two cables of what answers lead to, those with the most cables first."""
        dead = [guid for guid in self.switches if len(self._to_present([guid])) > 1]
        order = sorted(dead, key=lambda guid: (-len(self.plan.rows[guid[2:]]), guid))
        return [AbsenceCause(guid, self._take(guid)) for guid in order]

    def _dead_nodes(self) -> list[AbsenceCause]:
        """Return the nodes of which no adapter answers, though at least two of the cables lead to what does."""
        some = {node for node, guids in self.nodes.items() if len(self._to_present(guids)) > 1}
        answering = {d.node for guid, d in self.plan.devices.items() if d.node in some and guid in self.present}
        dead = [(node, guids) for node, guids in self.nodes.items() if node in some - answering]
        return [AbsenceCause(node, [edge for guid in guids for edge in self._take(guid)]) for node, guids in dead]

    def _only_ways(self) -> list[AbsenceCause]:
        """Return the cables that are the only way to an absent switch and what is behind it."""
        causes = []
        for guid in self.switches:
            ways = [] if guid in self.owner else self._to_present([guid])
            if ways and any(port in self.left and port not in ways for port in self._ports(guid)):
                self.owner[guid] = cause = AbsenceCause("", [self._pop(ways[0])])
                causes.append(cause)
        return causes

    def _walk(self) -> None:
        """Give every device behind a cause to the nearest one."""
        front = [guid for guid in self.owner if self.plan.devices[guid].kind != "hca"]
        while front:
            reached = []
            for guid in front:
                for port in self._ports(guid):
                    far = self.missing.get(port)
                    if far and far.guid not in self.present and far.guid not in self.owner:
                        self.owner[far.guid] = self.owner[guid]
                        reached.append(far.guid)
            front = [guid for guid in reached if self.plan.devices[guid].kind != "hca"]

    def _is_behind(self, edge: PortPair) -> bool:
        """Give a cable between two absent devices to what keeps the discovery from them; say whether there is such."""
        a, b = edge
        if a.guid in self.present or b.guid in self.present:
            return False
        switches = [port.guid for port in edge if self.plan.devices[port.guid].kind != "hca"]
        cause = next((self.owner[guid] for guid in switches if guid in self.owner), None)
        if cause:
            cause.cut_off.append(edge)
        return cause is not None

    def _unreached(self, edges: list[PortPair]) -> dict[PortPair, None]:
        """Return the cables that no designed cable joins, however far away, to anything that answers."""
        if not any(a.guid not in self.present and b.guid not in self.present for a, b in edges):
            return {}
        joined = set(self.present)
        front = [guid for guid in joined if guid[2:] in self.plan.rows]
        while front:
            far = {f"0x{row[1]}" for guid in front for row in self.plan.rows[guid[2:]]} - joined
            joined |= far
            front = list(far)
        return dict.fromkeys((a, b) for a, b in edges if a.guid not in joined)

    def _to_present(self, guids: list[str]) -> list[PortId]:
        """Return the ports whose cable without link leads to something that answers."""
        ports = (port for guid in guids for port in self._ports(guid))
        return [port for port in ports if port in self.left and self.left[port].guid in self.present]

    def _ports(self, guid: str) -> list[PortId]:
        return [PortId(guid, int(row[0])) for row in self.plan.rows[guid[2:]]]

    def _take(self, guid: str) -> list[PortPair]:
        return [self._pop(port) for port in self._ports(guid) if port in self.left]

    def _pop(self, port: PortId) -> PortPair:
        far = self.left.pop(port)
        self.left.pop(far, None)
        return port, far

    def _edges(self) -> list[PortPair]:
        """Return the cables that are left, each once."""
        once: dict[frozenset[PortId], PortPair] = {}
        for edge in self.left.items():
            once.setdefault(frozenset(edge), edge)
        return list(once.values())
