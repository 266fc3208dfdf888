"""What the loss of one device or cable costs: who is cut off, who has less bandwidth, how many ways are left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from assay.fabric.graph import between, bisection, graph, mixed, parts, ways
from assay.fabric.levels import costs, levels
from assay.fabric.planned import Plan
from assay.model.cable import Cable, Port
from assay.model.errors import Trouble


@dataclass(frozen=True)
class Impact:
    """What is told of a loss: `lost` names it, `lines` say it; the figures are Gb/s and ways, before and after."""

    lost: str
    lines: tuple[str, ...]
    cut_off: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        figures = {name: {"before": before, "after": after} for name, (before, after) in self.figures.items()}
        plain = {"lost": self.lost, "lines": list(self.lines), "cut_off": list(self.cut_off)}
        return plain | ({"leaf_pair": list(self.pair)} if self.pair else {}) | figures


def impact(plan: Plan, what: str) -> Impact:
    """Return what the loss of a node, a switch, or the cable at a port costs. Raises Trouble for a name that is none.

    A port is written `leaf-su01-r0[33]` or `n0005/mlx5_3`.
    """
    name, _, port = what.removesuffix("]").partition("[")
    if name and any(device.node == name for device in plan.devices.values()):
        return _Loss(plan, name, without=(name,)).told()
    device = next((one for one in plan.devices.values() if name.replace("/", " ") in (one.name, one.guid)), None)
    if device is None:
        raise Trouble(
            f"the fabric {plan.name} has no {what!r}",
            fix="name a node, a switch, or a port: leaf-su01-r0[33], n0005/mlx5_3",
        )
    if device.kind == "switch" and not port:
        return _Loss(plan, device.name, without=(device.guid,)).told()
    number = int(port) if re.fullmatch(r"\d{1,5}", port) else 1
    cable = plan.cable_at(Port(device.guid, number))
    if cable is None or (port and not port.isdecimal()):
        raise Trouble(f"no cable is designed at {what}", fix=f"{device.name} has {device.ports} ports")
    return _Loss(plan, f"the cable from {cable.a} to {cable.b}", cable=cable).told()


class _Loss:
    def __init__(self, plan: Plan, lost: str, without: tuple[str, ...] = (), cable: Cable | None = None) -> None:
        self.plan, self.lost, self.without, self.cable = plan, lost, without, cable
        self.level = levels(plan)
        self.before = graph(plan)
        self.after = graph(plan, without, [cable.a.at] if cable else ())

    def told(self) -> Impact:
        cut_off = self._cut_off()
        pair = self._pair()
        figures = {"bisection_gbps": (bisection(self.plan, self.before), bisection(self.plan, self.after))}
        if pair:
            figures["leaf_pair_gbps"] = self._both(between, pair)
            figures["leaf_pair_ways"] = self._both(ways, pair)
        lines = (
            self._loses(),
            *self._cut(cut_off),
            *self._pair_line(pair, figures),
            self._half(figures),
            *self._rails(),
        )
        return Impact(self.lost, tuple(line for line in lines if line), cut_off, tuple(map(self._name, pair)), figures)

    def _loses(self) -> str:
        if self.cable:
            return f"{self.lost} carries {self._own(self.cable)}"
        if self.without[0] in self.plan.devices:
            said = costs(self.plan, self.without[0], self.level)
            return f"without {self.lost} {said}" if said else f"without {self.lost} nothing below it loses bandwidth"
        return f"without {self.lost} no other node loses bandwidth to any other"

    def _own(self, cable: Cable) -> str:
        """Say what share of its lower end's bandwidth a cable is."""
        low, high = sorted(cable.ends, key=lambda end: self.level.get(end.guid, 0))
        if low.node:
            return f"1 of the {len(self.plan.of_node(low.node))} links of {low.node}"
        own = self.plan.of_device(low.guid)
        up = [one for one in own for end in one.ends if self.level.get(end.guid, 0) > self.level[low.guid]]
        both = [one for one in up if high.guid in (one.a.guid, one.b.guid)]
        return f"1 of the {len(up)} cables up of {low.device}, 1 of the {len(both)} to {high.device}"

    def _cut_off(self) -> tuple[str, ...]:
        """Return what hangs together with the rest before, and not after."""
        largest = parts(self.before)[0]
        rest = parts(self.after)
        gone = largest - rest[0] - set(self.without) if rest else set()
        return tuple(sorted(map(self._name, gone)))

    def _cut(self, cut_off: tuple[str, ...]) -> Iterator[str]:
        if cut_off:
            few = ", ".join(cut_off[:4]) + (" …" if len(cut_off) > 4 else "")
            yield f"cut off from the rest: {len(cut_off)} of nodes and switches ({few})"

    def _pair(self) -> tuple[str, ...]:
        """Return two leaves between which traffic may go over what is lost: the farthest apart of those below it."""
        lost = self.without[0] if self.without else self._upper()
        if self.level.get(lost, 0) < 2:
            return ()
        below = [lost]
        for step in range(self.level[lost] - 1, 0, -1):
            rows = (row for guid in below for row in self.plan.rows[guid[2:]])
            below = list(dict.fromkeys(f"0x{row[1]}" for row in rows if self.level.get(f"0x{row[1]}") == step))
        if self.cable:
            low = min(self.cable.ends, key=lambda end: self.level[end.guid]).guid
            below = [low, *(one for one in below if one != low)] if self.level[low] == 1 else below
        return (below[0], below[-1]) if len(below) > 1 else ()

    def _upper(self) -> str:
        assert self.cable is not None, "either a device or a cable is lost"
        return max(self.cable.ends, key=lambda end: self.level.get(end.guid, 0)).guid

    def _both(self, measure: Any, pair: tuple[str, ...]) -> tuple[float, float]:
        return measure(self.plan, self.before, *pair), measure(self.plan, self.after, *pair)

    def _pair_line(self, pair: tuple[str, ...], figures: dict[str, tuple[float, float]]) -> Iterator[str]:
        if pair:
            (gbps, left), (many, fewer) = figures["leaf_pair_gbps"], figures["leaf_pair_ways"]
            one, other = map(self._name, pair)
            yield (
                f"between {one} and {other}: {left:g} of {gbps:g} Gb/s{_share(left, gbps)}, "
                f"over {fewer:g} of {many:g} ways that share no switch"
            )

    def _half(self, figures: dict[str, tuple[float, float]]) -> str:
        """Say it of the fabric as a whole; a lost node only takes its own traffic with it."""
        if self.without and self.without[0] not in self.plan.devices:
            return ""
        before, after = figures["bisection_gbps"]
        return f"between the two halves of the nodes: {after:g} of {before:g} Gb/s{_share(after, before)}"

    def _rails(self) -> Iterator[str]:
        if odd := mixed(self.plan):
            few = ", ".join(map(self._name, list(odd)[:3]))
            yield f"rails are not kept apart: adapters of several meet on {few}"

    def _name(self, vertex: str) -> str:
        device = self.plan.devices.get(vertex)
        return device.name if device else vertex


def _share(left: float, of: float) -> str:
    return f" ({left / of:.1%})" if of else ""
