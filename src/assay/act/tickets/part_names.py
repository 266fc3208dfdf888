"""What else a part of a node is called: by its BMC, by its serial number, and by the other end of its cable.

Ours comes first on every surface. A technician reads the others on the hardware.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.decide.faults.incidents import Incident
from assay.decide.state.fleet_snapshot import NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.faults.bmc_events import CHASSIS_PREFIX, map_bmc_gpus
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.fleet import Fleet
from assay.model.text.lists import fold_names, format_list
from assay.model.ticket import TicketPlace
from assay.observe.evidence_store import EvidenceStore


def name_parts(_: NodeState, incident: Incident) -> str:
    """Return our names of the parts that show what an incident's work is about; "" for the whole node."""
    return format_list(fold_names(incident.work_parts))


class PartNames:
    """Names of parts, read when somebody asks: evidence of nodes, and designs of fabrics."""

    def __init__(self, fleet: Fleet, evidence: EvidenceStore) -> None:
        self._fleet, self._evidence = fleet, evidence
        self._bmc_names: dict[str, Mapping[str, str]] = {}
        self._topologies: dict[str, CompiledTopology | None] = {}

    def describe_work(self, state: NodeState, incident: Incident) -> str:
        """Return the part that people work on because of an incident, with its other names; several by name alone."""
        named = name_parts(state, incident)
        return named if not named or "," in named else self.describe(state, named, incident.last_seen)

    def describe(self, state: NodeState, part: str, seen_at: str = "") -> str:
        """Return a part with its other names, such as `gpu4 (GPU_SXM_5, serial 1654922006135)`.

        `seen_at`: when something was seen of it last. A GPU that came later is called the new one.
        """
        others = []
        serial, new_at = state.gpus.get(part, ("", ""))[0], state.exchanged.get(part, "")
        if serial or part.startswith("gpu"):
            if state.node not in self._bmc_names:
                self._bmc_names[state.node] = self._read_bmc_names(state)
            since = f"new since {new_at[:16].replace('T', ' ')} UTC" if seen_at and new_at > seen_at else ""
            others = [self._bmc_names[state.node].get(part, ""), f"serial {serial}" if serial else "", since]
        elif place := self.find_far_end(state.node, part):
            label = f", label {place.label}" if place.label else ""
            others = [f"cable to {place.device} port {place.port} in {place.site} {place.rack} U{place.u}{label}"]
        shown = ", ".join(filter(None, others))
        return f"{part} ({shown})" if shown else part

    def find_far_end(self, node: str, part: str) -> TicketPlace | None:
        """Return where the cable of an adapter ends by the design, None for another part."""
        declared = self._fleet.nodes.get(node)
        topology = self._find_topology(declared.settings.fabric or "") if declared else None
        for cable in topology.cables_of_node(node) if topology else ():
            near = next((end for end in cable.ends if end.node == node), None)
            far = next((end for end in cable.ends if end is not near), None)
            if near and far and near.device.rpartition(" ")[2] == part:
                return TicketPlace(far.device, far.site, far.rack, far.u, str(far.port), far.label)
        return None

    def _find_topology(self, fabric: str) -> CompiledTopology | None:
        """Return the topology of a design, None for one that does not compile: `assay check` reports it."""
        if fabric not in self._topologies:
            self._topologies[fabric] = None
            if fabric in self._fleet.designs:
                try:
                    self._topologies[fabric] = compile_topology(self._fleet.designs[fabric], self._fleet)
                except AssayError:
                    return None
        return self._topologies[fabric]

    def _read_bmc_names(self, state: NodeState) -> dict[str, str]:
        """Return the BMC's name of each GPU; nothing from a damaged document, which its checks report."""
        if state.node not in self._fleet.nodes:
            return {}
        try:
            evidence = self._evidence.latest(state.node)
        except AssayError:
            return {}
        if evidence is None:
            return {}
        last_seen = {serial: gpu for gpu, (serial, _) in state.gpus.items() if serial}
        names = map_bmc_gpus(evidence, map_parts_by_pci(self._fleet.spec_of(state.node)), last_seen)
        return {gpu: name for name, gpu in names.items() if name.startswith("GPU") and CHASSIS_PREFIX not in name}


def make_place(view: NodeSnapshot, subject: str = "", names: PartNames | None = None) -> TicketPlace:
    """Return where a node or its part is; of a GPU, with its BMC's name and its serial number as the label."""
    part = subject.removeprefix(view.node.subject).strip("/")
    named = names.describe(view.node_state, part) if names and part.startswith("gpu") else part
    label = named.removeprefix(part).strip(" ()")
    return TicketPlace(view.name, view.node.site, view.node.rack, view.node.u, port=part, label=label)
