"""Turns ports into ends and cables that a person can find: the design's words where it knows the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assay.fabric.discovery import Discovery
from assay.fabric.planned import Plan
from assay.model.cable import Cable, End, Port


class Look:
    """`boxes` has, by place, the GUID of the box that stands there instead of its own; `rates` what was seen."""

    def __init__(
        self, plan: Plan, discovery: Discovery, rates: Mapping[Port, str], boxes: Mapping[str, str] | None = None
    ) -> None:
        self.plan, self.discovery, self.rates = plan, discovery, rates
        self.boxes = boxes or {}

    def end(self, port: Port) -> End:
        """Return a port as designed; of a device that is not, by the name that it announces."""
        known = self.plan.end(port)
        if known:
            return known
        device = self.discovery.devices.get(port.guid)
        return End(device.name if device else port.guid, port.guid, port.number)

    def expected(self, port: Port) -> Cable:
        """Return the designed cable at a port, its ends in the design's order."""
        return self.plan.cables[self.plan.mates[port]]

    def observed(self, a: Port, b: Port) -> Cable:
        """Return a cable that was seen between two places."""
        return Cable(self._seen(a), self._seen(b), self.rates[a])

    def called(self, a: Port, b: Port) -> Cable:
        """Return a cable that was seen between two places, its ends by what the GUIDs that answer there are called."""
        here, there = (self.end(Port(self.boxes.get(port.guid, port.guid), port.number)) for port in (a, b))
        return Cable(here, there, self.rates[a])

    def _seen(self, port: Port) -> End:
        """Return a port of a place, with the GUID of the box that stands there."""
        end = self.end(port)
        return replace(end, guid=self.boxes[port.guid]) if port.guid in self.boxes else end
