"""Small fat trees of any shape, compiled by hand, and what may be done to them."""

from collections import Counter
from itertools import pairwise

from hypothesis import strategies as st

from assay.fabric.design.compiled_topology import CableTable, CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.specs.fabric.cable import PortId, PortLabelling

RATE = "4xNDR"


def fat_tree(units=2, nodes=3, rails=3, spines=2, pair=2, pods=1, cores=0, rate=RATE, ports=64) -> CompiledTopology:
    """A rail-optimised fat tree: `pods` of two tiers, joined by `cores` where there are any."""
    devices, links = [], CableTable()
    hcas = [_adapters(devices, pod, units * nodes, rails) for pod in range(pods)]
    leaves = [_switches(devices, "b", f"leaf-{pod}", units * rails, ports) for pod in range(pods)]
    tops = [_switches(devices, "c", f"spine-{pod}", spines, ports) for pod in range(pods)]
    core = _switches(devices, "d", "core", cores, ports)
    for adapters, leaf, top in zip(hcas, leaves, tops, strict=True):
        for node, own in enumerate(adapters):
            unit, place = divmod(node, nodes)
            links.add(own, [1] * rails, leaf[unit * rails : (unit + 1) * rails], [place + 1] * rails)
        _join(links, leaf, nodes, top, pair)
    _join(links, [one for top in tops for one in top], 32, core, pair)
    links.set_rate_and_length(rate, 5)
    return CompiledTopology("tree", devices, links)


def _adapters(devices, pod, nodes, rails):
    """Add the adapters of a pod's nodes; return their numbers, node by node."""
    found = []
    for node in range(nodes):
        name = f"n{pod}{node:02}"
        found.append(range(len(devices), len(devices) + rails))
        for rail in range(rails):
            guid = f"0xa{16 * len(devices):015x}"
            device = DesignedDevice(guid, f"{name} mlx5_{rail}", "hca", 1, f"r{pod}{node // 2}", node + 1, "lab", name)
            devices.append(device)
    return found


def _switches(devices, letter, name, many, ports):
    """Add switches, all of them in one rack; return their numbers."""
    first = len(devices)
    for number in range(many):
        guid = f"0x{letter}{16 * (first + number):015x}"
        devices.append(
            DesignedDevice(guid, f"{name}-{number}", "switch", ports, name, number + 1, "lab", labels=PortLabelling(2))
        )
    return range(first, first + many)


def _join(links, low, after, high, pair):
    """Join each of the lower switches, from the port `after` on, to each of the higher ones by `pair` cables."""
    for at, one in enumerate(low):
        for other, two in enumerate(high):
            down, up = after + other * pair, at * pair
            links.add([one] * pair, range(down + 1, down + pair + 1), [two] * pair, range(up + 1, up + pair + 1))


@st.composite
def fat_trees(draw):
    """Two tiers or three, none so small that two explanations would be equally good."""
    deep = draw(st.booleans())
    return fat_tree(
        units=draw(st.integers(1, 2)),
        nodes=draw(st.integers(3, 4)),
        rails=draw(st.integers(3, 4)),
        spines=draw(st.integers(2, 3)),
        pair=draw(st.integers(2, 3)),
        pods=2 if deep else 1,
        cores=draw(st.integers(2, 3)) if deep else 0,
    )


def as_built(plan) -> list[DiscoveredCable]:
    """Every designed cable, as found."""
    return [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in plan.cables]


def in_reach(plan, cables, extra=(), problems=()) -> FabricDiscovery:
    """What is discovered of `cables` from one place: the largest part that hangs together."""
    near: dict[str, set[str]] = {}
    for a, b, _ in cables:
        near.setdefault(a.guid, set()).add(b.guid)
        near.setdefault(b.guid, set()).add(a.guid)
    part: dict[str, str] = {}
    for start in near:
        front = [start] if start not in part else []
        while front:
            here = front.pop()
            if here not in part:
                part[here] = start
                front += near[here]
    (largest, _), *_ = Counter(part.values()).most_common(1)
    seen = [cable for cable in cables if part[cable.a.guid] == largest]
    guids = {port.guid for cable in seen for port in cable[:2]}
    known = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items() if g in guids}
    return FabricDiscovery(seen, known | {one.guid: one for one in extra if one.guid in guids}, problems)


def renamed(cables, guids) -> list[DiscoveredCable]:
    """The cables with some devices' GUIDs replaced by others."""
    there = lambda port: PortId(guids.get(port.guid, port.guid), port.number)  # noqa: E731
    return [DiscoveredCable(there(a), there(b), rate) for a, b, rate in cables]


def edge(cable):
    """A cable by its ports, whichever comes first."""
    return frozenset(cable[:2])


class Mischief:
    """What was done to a fabric, and by what name each of it must come out."""

    def __init__(self, plan, draw):
        self.plan, self.draw = plan, draw
        self.cables = as_built(plan)
        self.called: list[tuple[str, object]] = []
        self.touched: set[str] = set()
        self.extra: list[DiscoveredDevice] = []
        self.touched_nodes: set[str] = set()

    def __repr__(self):
        kinds = Counter(device.name.rpartition("-")[0] or "adapters" for device in self.plan.devices.values())
        return f"{dict(kinds)}: {self.called}"

    def units(self, kind):
        """Nodes (with all of their adapters), or switches, that nothing was done to yet."""
        found: dict[str, list[str]] = {}
        for guid, device in self.plan.devices.items():
            if device.kind == kind and guid not in self.touched:
                found.setdefault(device.node or device.name, []).append(guid)
        return found

    def pick(self, kind, many=1):
        """Choose units of one kind; of switches, of one tier."""
        units = self.units(kind)
        if not units:
            return []
        first = self.draw(st.sampled_from(sorted(units)))
        alike = sorted(name for name in units if name[:2] == first[:2] and name != first)
        names = [first, *self.draw(st.permutations(alike))[: many - 1]]
        if len(names) < many:
            return []
        for name in names:
            self.touched |= set(units[name])
        return [(name, units[name]) for name in names]

    def die(self, kind):
        """Must come before anything else is done: what is behind a dead switch is not seen to have been replaced."""
        for name, guids in self.pick(kind):
            self.cables = [one for one in self.cables if not {one.a.guid, one.b.guid} & set(guids)]
            self.called.append(("device-missing", name))

    def exchange(self, kind, many):
        units = self.pick(kind, many)
        if units:
            turned = [*units[1:], units[0]]
            pairs = [pair for (_, a), (_, b) in zip(units, turned, strict=True) for pair in zip(a, b, strict=True)]
            self.cables = renamed(self.cables, dict(pairs))
            self.called.append(("device-exchanged", frozenset(name for name, _ in units)))

    def replace(self, kind, whole=True):
        for name, guids in self.pick(kind):
            old = guids if whole else guids[:1]
            new = {guid: f"0xe{guid[3:]}" for guid in old}
            self.extra += [DiscoveredDevice(guid, kind, 64, "new") for guid in new.values()]
            self.touched |= set(new.values())
            self.cables = renamed(self.cables, new)
            if any(port.guid in new.values() for cable in self.cables for port in cable[:2]):  # else its leaf is dead
                self.called.append(("device-replaced", name if whole else self.plan.devices[old[0]].name))

    def cable_mischief(self):
        """Permute, lose, move and add cables of devices that are otherwise well."""
        mine = [one for one in self.cables if not {one.a.guid, one.b.guid} & self.touched]
        free = iter(self.draw(st.permutations(mine)))
        for size in self.draw(st.lists(st.integers(2, 5), max_size=4)):
            ring = list(self._apart(free, size))
            if len(ring) == size:
                self._permute(ring)
        for _ in range(self.draw(st.integers(0, 3))):
            for cable in self._apart(free, 1):
                self.cables.remove(cable)
                self.called.append(("missing", frozenset([edge(cable)])))
        for number in range(self.draw(st.integers(0, 3))):
            for cable in self._apart(free, 1):
                self.cables[self.cables.index(cable)] = cable._replace(b=PortId(cable.b.guid, 60 + number))
                self.called.append(("moved", frozenset([edge(cable)])))
        switches = sorted(self.units("switch").items())
        for number in range(self.draw(st.integers(0, 2))):
            (_, (a,)), (_, (b,)) = (self.draw(st.sampled_from(switches)) for _ in range(2))
            self.cables.append(DiscoveredCable(PortId(a, 50 + number), PortId(b, 54 + number), RATE))
            self.called.append(("unexpected", edge(self.cables[-1])))

    def _apart(self, free, many):
        """Take cables of nodes that nothing was done to yet, one of each, so that no node is changed as a whole."""
        found = []
        for cable in free:
            nodes = {self.plan.devices[port.guid].node for port in cable[:2]} - {""}
            if not nodes & self.touched_nodes:
                self.touched_nodes |= nodes
                found.append(cable)
            if len(found) == many:
                return found
        return []

    def _permute(self, ring):
        for cable, following in pairwise([*ring, ring[0]]):
            self.cables[self.cables.index(cable)] = cable._replace(b=following.b)
        self.called.append(("swap", frozenset(map(edge, ring))))
