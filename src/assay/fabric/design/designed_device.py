"""One device of a design: its name, its place, its ports, and the box that it is a chip of. Plain data."""

from __future__ import annotations

from typing import NamedTuple

from assay.model.specs.fabric.ports_and_cables import CableEnd, DeviceKind, PortLabelling


class DesignedDevice(NamedTuple):
    """One designed device: its name, its place, and how its ports are labelled. `node` is the node of an adapter.

    `box` is the chassis that a chip is in, "" for a device that is a box of its own; `module` its card there. `plane`
    is the plane that it carries, 0 without planes: the chips of the box then share each plug.
    """

    guid: str
    name: str
    kind: DeviceKind
    ports: int
    rack: str
    u: int
    site: str = ""
    node: str = ""
    product: str = ""
    labels: PortLabelling | None = None
    hca_label: str = ""
    box: str = ""
    module: str = ""
    plane: int = 0

    def label(self, port: int) -> str:
        """Return the label that is printed at a port."""
        return self.labels.label(port) if self.labels else self.hca_label

    def end(self, port: int) -> CableEnd:
        """Return one of the device's ports, with the place where a technician finds it."""
        place = (self.rack, self.u, self.site, self.node, self.box, self.plane)
        return CableEnd(self.name, self.guid, port, self.label(port), *place)

    def ports_sharing_plug(self, port: int) -> range:
        """Return the ports whose links go down when the plug of this one is pulled."""
        return self.labels.ports_sharing_cage(port) if self.labels else range(port, port + 1)

    @property
    def description(self) -> str:
        """The NodeDesc that the device announces by default."""
        return f"MF0;{self.name}:{self.product}/U1" if self.product else self.name
