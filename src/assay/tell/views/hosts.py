"""Each node for who manages capacity: which machine it is, how its parts are, who has it, and what runs there now.

Also what groups of nodes have: delivered, healthy, reserved, active, and out of service by reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Literal

from assay.act.ingest.silent_nodes import list_sources, read_reading_times, read_unknown_times
from assay.act.tickets.repair_history import REPAIRS
from assay.adapters.scheduler import StatusReadings
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import expect_return, list_fleet_absences
from assay.ledger.ledger_reader import read_projection
from assay.model.decision import PERSON_RULE, find_rule_name
from assay.model.evidence import EvidenceDocument, clean_serial, read_at_path
from assay.model.facts import fact
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.fleet import Fleet
from assay.model.reading import parse_reading
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_contents import find_part_serials
from assay.observe.evidence_store import EvidenceStore
from assay.observe.last_seen import CONTACTS_FILE, LastSeen
from assay.tell.views.pool_delivery import Reliability, measure_node, sum_reliability
from assay.tell.views.records import LiveRecords, find_unread

Health = Literal["healthy", "unhealthy", "unknown"]
NEVER_SERVED = "not yet in service"
MONTH = timedelta(days=30)
COMPONENTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gpu": (("probe", "gpu"), ("gpu", "nvswitch", "collective", "trend.speed", "trend.memory")),
    "thermal": (("bmc", "sensor"), ("inlet", "gpu.hot", "hca.hot", "trend.heat", "bmc.event.temperature")),
    "memory": (("probe", "memory"), ("host.dimm", "host.memory", "bmc.event.memory")),
    "cooling": (("bmc", "fan"), ("fan", "bmc.event.fan", "bmc.event.leak")),
    "power": (("bmc", "psu"), ("psu", "trend.power", "bmc.event.power-supply")),
    "network": (("probe", "hca"), ("ib", "hca", "nic", "trend.optics", "trend.links")),
    "storage": (("probe", "nvme"), ("nvme", "disk", "storage", "nfs", "trend.drives", "bmc.event.drive")),
}
"""Component → the branch of the evidence that tells of it, and the classes of faults that are about it."""


@fact
class ComponentHealth:
    """How one component of a node is."""

    health: Health
    """healthy; unhealthy with an open fault; unknown where its readings are missing or too old."""
    read_at: str
    """When it was read: ISO 8601 UTC; "" for never."""
    faults: tuple[str, ...]
    """Its open faults: class and subject."""


@fact
class HostPart:
    """A part, as it was last read."""

    kind: str
    """What it is: chassis, baseboard, cpu, gpu, hca, nic, nvme, dimm or psu."""
    place: str
    """Its place in the node."""
    serial: str
    """Its serial number, or what else never changes: a GUID or a MAC address; "" if it tells none."""
    model: str
    """Its model; "" if it tells none."""


@fact
class BmcLog:
    """A log of the node's BMC, as it was last read."""

    log: str
    """The name of the log."""
    newest: str
    """Its newest entry: id@time."""
    critical: int
    """How many critical entries ever came."""
    warning: int
    """How many warnings ever came."""


@fact
class HostRecord:
    """A node, its machine, and how it is."""

    node: str
    """The name of the node."""
    machine: str
    """The id of the machine, which no repair and no other name changes: its serial number when it was enrolled."""
    created_at: str
    """When the node was enrolled: ISO 8601 with the offset of UTC."""
    pool: str
    """The pool that it is in."""
    site: str
    """The site where it stands."""
    rack: str
    """The rack that it is in."""
    spec: str
    """What it must be: the name of its spec."""
    gpus: int
    """How many GPUs it has by its spec."""
    state: str
    """The state of the policy that it is in."""
    in_service: bool
    """Whether customers can use it."""
    out_because: str
    """The rule that took it out of service; person; not yet in service; "" in service."""
    expected: str
    """When it should be back: ISO 8601 UTC; "" in service, and where nothing tells."""
    health: Health
    """healthy: it serves or waits in reserve, was read in time, and has no open fault."""
    customers: tuple[str, ...]
    """The customers that have its pool."""
    jobs: tuple[str, ...]
    """The jobs on it now, as its scheduler tells."""
    jobs_unknown: str
    """Why the jobs are not known; "" if they are."""
    closed: str
    """Why no new job starts on it, as its scheduler tells; "" if jobs may start."""
    read_at: str
    """When it was last read: ISO 8601 UTC; "" for never."""
    age_s: float | None
    """How many seconds ago that was; null for never."""
    components: dict[str, ComponentHealth]
    """How each component is: gpu, thermal, memory, cooling, power, network and storage."""
    parts: tuple[HostPart, ...]
    """Its parts."""
    firmware: dict[str, str]
    """The version of each component that its BMC tells, NVSwitches among them."""
    bmc_logs: tuple[BmcLog, ...]
    """The logs of its BMC."""
    agent_at: str
    """When its agent was last heard: ISO 8601 UTC; "" for never, and where none is declared."""
    agent_runs: bool
    """Whether that is no longer ago than the policy allows."""


@fact
class CapacityAmount:
    """Nodes, and the GPUs in them."""

    nodes: int
    """How many nodes."""
    gpus: int
    """How many GPUs they have."""


@fact
class OutOfService:
    """Nodes of a group that are out of service for one reason."""

    reason: str
    """The rule that took them out; person; not yet in service."""
    nodes: tuple[str, ...]
    """Their names."""
    gpus: int
    """How many GPUs they have."""
    expected: str
    """When the last of them should be back: ISO 8601 UTC; "" where nothing tells of one."""


@fact
class CapacityGroup:
    """What a group of nodes has."""

    kind: str
    """fleet, pool, rack, spec or customer."""
    name: str
    """Its name; "" for the fleet."""
    delivered: CapacityAmount
    """What customers can use."""
    healthy: CapacityAmount
    """Of that, what was read in time and has no open fault."""
    reserved: CapacityAmount
    """Of what is delivered, what customers have: by their pools, or by `customer` of the inventory."""
    active: CapacityAmount | None
    """Of that, what has jobs now; null where a scheduler does not tell."""
    out: tuple[OutOfService, ...]
    """What is out of service, by reason."""
    unhealthy: tuple[str, ...]
    """The nodes that are not healthy, in service or out."""
    reliability: Reliability
    """How its nodes held in the last 30 days."""


def judge_health(fleet: Fleet, state: NodeState, unread: Collection[str], read: Collection[str]) -> Health:
    """Return how a node is, by its state and its open faults.

    `read`: the nodes that were ever read, `unread`: those in service whose last reading is too old.
    """
    policy = fleet.policy_of_state.get(state.state)
    is_ready = policy is not None and (policy.is_in_service(state.state) or policy.spare_state == state.state)
    if not is_ready or state.open_faults:
        return "unhealthy"
    return "healthy" if state.node in read and state.node not in unread else "unknown"


def find_customers(fleet: Fleet) -> Mapping[str, list[str]]:
    """Return the customers that have each pool."""
    customers = defaultdict[str, list[str]](list)
    for policy in fleet.policies.values():
        for name, rights in policy.access.visitors.items() if policy.access else ():
            for pool in rights.pools:  # only a customer has pools
                customers[pool].append(name)
    return customers


@dataclass(frozen=True)
class HostReader:
    """Reads nodes of a fleet at one moment. `ask` asks the schedulers about nodes."""

    records: LiveRecords
    states: Mapping[str, NodeState]
    ask: Callable[[Collection[str]], StatusReadings]

    @cached_property
    def _unread(self) -> dict[str, str]:
        return find_unread(self.records, self.states.values())

    @cached_property
    def _read_times(self) -> dict[str, str]:
        return read_reading_times(self.records.data_dir, tuple(self.states.values()))

    @cached_property
    def _expected(self) -> dict[str, str]:
        """When each node that is out should be back, "" where nothing tells."""
        fleet, now = self.records.fleet, self.records.clock.now()
        absences = list_fleet_absences(fleet.policies.values(), self.states.values())
        backs = {
            name: expect_return(fleet.policy_of_state[state.state], state, absences, now).find_next(now)
            for name, state in self.states.items()
            if state.state not in fleet.states_in_service and state.state in fleet.policy_of_state
        }
        return {name: format_time(back) if back else "" for name, back in backs.items()}

    @cached_property
    def customers(self) -> Mapping[str, list[str]]:
        """The customers that have each pool."""
        return find_customers(self.records.fleet)

    def list_hosts(self, names: Collection[str]) -> list[HostRecord]:
        """Return the records of these nodes, by name."""
        readings = self.ask(names)
        store = EvidenceStore(self.records.data_dir / "evidence")
        machines = read_projection(self.records.ledger_for_reading, REPAIRS).machines
        answered = LastSeen(self.records.data_dir / CONTACTS_FILE).contacts()
        now, silent_minutes = self.records.clock.now(), self.records.fleet.policy.silence.agent_minutes
        hosts = []
        for name in sorted(names):
            state, node = self.states[name], self.records.fleet.nodes[name]
            evidence, status = store.latest(name), readings.statuses.get(name)
            serves, read_at = state.state in self.records.fleet.states_in_service, self._read_times.get(name, "")
            contact = answered.get((name, "agent")) if "agent" in list_sources(node) else None
            heard = contact.last_at if contact else None
            hosts.append(
                HostRecord(
                    node=name,
                    machine=machines.get(name) or state.serial,
                    created_at=state.enrolled_at,
                    pool=node.pool,
                    site=node.site,
                    rack=node.rack,
                    spec=node.spec,
                    gpus=self._count_gpus([name]),
                    state=state.state,
                    in_service=serves,
                    out_because="" if serves else find_absence_reason(state, self.records.fleet.states_in_service),
                    expected=self._expected.get(name, ""),
                    health=self._judge_health(state),
                    customers=tuple(self.customers.get(node.pool, ())),
                    jobs=tuple(map(str, status.jobs)) if status else (),
                    jobs_unknown="" if status else readings.errors.get(name, "its scheduler does not know this node"),
                    closed="; ".join(filter(None, (status.cordon, status.foreign_cordon))) if status else "",
                    read_at=read_at,
                    age_s=(now - parse_time(read_at)).total_seconds() if read_at else None,
                    components=self._judge_components(state, evidence),
                    parts=tuple(self._list_parts(name, evidence)) if evidence else (),
                    firmware=dict(_list_values(evidence, "bmc", "firmware")),
                    bmc_logs=tuple(_list_logs(evidence)),
                    agent_at=format_time(heard) if heard else "",
                    agent_runs=heard is not None and (now - heard).total_seconds() <= silent_minutes * 60,
                )
            )
        return hosts

    def list_groups(self, kind: str = "", name: str = "") -> Iterator[CapacityGroup]:
        """Yield what the fleet has, and each pool, rack, spec and customer, or those of a kind or name.

        Nodes that are gone for good are left out.
        """
        fleet, groups = self.records.fleet, defaultdict[tuple[str, str], list[NodeState]](list)
        for state in self.states.values():
            node, policy = fleet.nodes.get(state.node), fleet.policy_of_state.get(state.state)
            if node is None or policy is None or policy.states[state.state].final:
                continue
            rack = f"{node.site}/{node.rack}"
            keys = [("fleet", ""), ("pool", node.pool), ("rack", rack), ("spec", node.spec)]
            for key in [*keys, *(("customer", customer) for customer in self.customers.get(node.pool, ()))]:
                groups[key].append(state)
        serving = [state.node for state in groups["fleet", ""] if state.state in fleet.states_in_service]
        readings, end = self.ask(serving), self.records.clock.now()
        chosen = [group for group in sorted(groups) if kind in ("", group[0]) and name in ("", group[1])]
        nodes = {state.node: state for group in chosen for state in groups[group]}
        times, ledger = (end - MONTH, end), self.records.ledger_for_reading
        unknown = read_unknown_times(fleet, ledger, nodes.values(), *times, self._unread)
        held = {name: measure_node(fleet, state, *times, unknown[name]) for name, state in nodes.items()}
        for group in chosen:
            reliability = sum_reliability(end - MONTH, [held[state.node] for state in groups[group]])
            yield self._measure(*group, groups[group], readings, reliability)

    def _measure(
        self, kind: str, name: str, states: Sequence[NodeState], readings: StatusReadings, reliability: Reliability
    ) -> CapacityGroup:
        serving = self.records.fleet.states_in_service
        delivered = [state for state in states if state.state in serving]
        nodes_of, customers = self.records.fleet.nodes, self.customers
        reserved = [each.node for each in delivered if each.pool in customers or nodes_of[each.node].settings.customer]
        active = [node for node in reserved if node in readings.statuses and readings.statuses[node].jobs]
        away = defaultdict[str, list[str]](list)
        for state in states:
            if state.state not in serving:
                away[find_absence_reason(state, serving)].append(state.node)
        out = []
        for reason, nodes in sorted(away.items()):
            backs = [self._expected.get(node, "") for node in nodes]
            out.append(OutOfService(reason, tuple(nodes), self._count_gpus(nodes), max(backs) if all(backs) else ""))
        unhealthy = {state.node for state in states if self._judge_health(state) != "healthy"}
        return CapacityGroup(
            kind=kind,
            name=name,
            delivered=self._amount([state.node for state in delivered]),
            healthy=self._amount([state.node for state in delivered if state.node not in unhealthy]),
            reserved=self._amount(reserved),
            active=self._amount(active) if all(node in readings.statuses for node in reserved) else None,
            out=tuple(out),
            unhealthy=tuple(state.node for state in states if state.node in unhealthy),
            reliability=reliability,
        )

    def _judge_health(self, state: NodeState) -> Health:
        return judge_health(self.records.fleet, state, self._unread, self._read_times)

    def _amount(self, nodes: Sequence[str]) -> CapacityAmount:
        return CapacityAmount(len(nodes), self._count_gpus(nodes))

    def _count_gpus(self, nodes: Sequence[str]) -> int:
        return sum(self.records.fleet.spec_of(node).gpus.count for node in nodes)

    def _judge_components(self, state: NodeState, evidence: EvidenceDocument | None) -> dict[str, ComponentHealth]:
        judged = {}
        for name, (path, classes) in COMPONENTS.items():
            faults = [
                f"{fault.fault_class} {fault.subject}"
                for fault in state.open_faults
                if any(fault.fault_class == known or fault.fault_class.startswith(f"{known}.") for known in classes)
            ]
            is_read = evidence is not None and read_at_path(evidence.channels, path).kind == "value"
            known: Health = "healthy" if is_read and state.node not in self._unread else "unknown"
            read_at = format_time(evidence.at) if evidence and is_read else ""
            judged[name] = ComponentHealth("unhealthy" if faults else known, read_at, tuple(faults))
        return judged

    def _list_parts(self, name: str, evidence: EvidenceDocument) -> Iterator[HostPart]:
        for kind, *path in (("chassis", "serial"), ("baseboard", "board", "serial")):
            serial = clean_serial(read_at_path(evidence.channels, ("probe", "host", *path)).value)
            yield HostPart(kind, "", serial, "")
        for kind, key, *path in (("cpu", "serial", "bmc", "processor", "cpu"), ("nic", "mac", "probe", "nic")):
            parts = read_at_path(evidence.channels, path).value
            for place, part in parts.items() if isinstance(parts, Mapping) else ():
                model = read_at_path(part, ("model",))
                serial = clean_serial(read_at_path(part, (key,)).value)
                yield HostPart(kind, place, serial, str(model.value) if model.kind == "value" else "")
        names = map_parts_by_pci(self.records.fleet.spec_of(name))
        for part in find_part_serials(evidence, names):
            yield HostPart(part.kind, part.place, part.serial, part.model)


def find_absence_reason(state: NodeState, serving: Collection[str]) -> str:
    """Return the rule that took a node out of service; person; NEVER_SERVED."""
    left = next((move for move in reversed(state.transitions) if move.origin in serving), None)
    return (find_rule_name(left.rule) or PERSON_RULE) if left else NEVER_SERVED


def _list_values(evidence: EvidenceDocument | None, *path: str) -> Iterator[tuple[str, str]]:
    tree = read_at_path(evidence.channels, path).value if evidence else None
    for name, leaf in tree.items() if isinstance(tree, Mapping) else ():
        reading = parse_reading(leaf)
        if reading is not None and reading.kind == "value":
            yield name, str(reading.value)


def _list_logs(evidence: EvidenceDocument | None) -> Iterator[BmcLog]:
    """Yield the BMC's logs that answered when they were last read."""
    tree = read_at_path(evidence.channels, ("bmc", "event_log")) if evidence else None
    cursors = read_at_path(tree.value, ("cursors",)).value if tree and tree.kind == "value" else None
    for name, cursor in cursors.items() if isinstance(cursors, Mapping) else ():
        newest, _, counts = str(cursor).rpartition("#")
        critical, _, warning = counts.partition(",")
        yield BmcLog(name, newest, int(critical or 0), int(warning or 0))
