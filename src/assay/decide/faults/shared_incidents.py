"""Finds incidents of several nodes that lie outside of them: in what the nodes share, as `SharedCause` says. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from assay.decide.faults.incidents import Incident, list_open_incidents
from assay.decide.moves.cordons import map_rack_rules
from assay.decide.state.fleet_snapshot import SWITCH_TRAY, FleetSnapshot, NodeSnapshot
from assay.model.facts import fact
from assay.model.specs.fault_relations import SharedCause, matches
from assay.model.timestamps import parse_time

Member = tuple[NodeSnapshot, Incident]


@fact
class SharedIncident:
    """One cause that shows on several nodes which share something."""

    shares: str
    """What the nodes share: commit, rack, NVLink domain, leaf, site or spec."""
    place: str
    """Which one."""
    suspects: tuple[str, ...]
    """The switch trays that the sick links of each of the nodes lead to."""
    cause: SharedCause
    """What it is, and what is done about it."""
    members: tuple[Incident, ...]
    """The incidents of the nodes, the first seen first."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, each once."""
        return tuple(dict.fromkeys(incident.node for incident in self.members))

    @property
    def order(self) -> str:
        """What a technician does, and where."""
        return f"{self.cause.act}: {', '.join([f'{self.shares} {self.place}', *self.suspects])}"


def map_open_incidents(snapshot: FleetSnapshot) -> dict[str, list[Incident]]:
    """Return the open incidents of each node that has some, the worst first."""
    opened = {view.name: list_open_incidents(snapshot.relations, view.node_state) for view in snapshot.nodes}
    return {name: incidents for name, incidents in opened.items() if incidents}


def list_shared_incidents(
    snapshot: FleetSnapshot, incidents: Mapping[str, Sequence[Incident]]
) -> Iterator[SharedIncident]:
    """Yield what several nodes have in common; each incident of a node is in the first that takes it in."""
    views, taken = {view.name: view for view in snapshot.nodes}, set[str]()
    for cause in snapshot.relations.shared:
        hits = [
            (views[name], incident)
            for name, listed in incidents.items()
            for incident in listed
            if incident.id not in taken and matches(cause.classes, incident.cause.fault_class)
        ]
        if len({view.name for view, _ in hits}) < cause.nodes:
            continue
        sizes = _count_nodes(snapshot, cause)
        groups: defaultdict[str, list[Member]] = defaultdict(list)
        for view, incident in sorted(hits, key=lambda hit: (hit[1].first_seen, hit[0].name)):
            for place in _list_places(snapshot, view, cause, incident):
                groups[place].append((view, incident))
        for place, members in sorted(groups.items()):
            burst = _find_burst(cause, [member for member in members if member[1].id not in taken])
            count = len({view.name for view, _ in burst})
            if count >= cause.nodes and count * 100 >= cause.percent * sizes.get(place, 0):
                taken |= {incident.id for _, incident in burst}
                traits = [snapshot.traits.get(view.name, frozenset()) for view, _ in burst]
                named = sorted(frozenset.intersection(*traits)) if cause.shares == "NVLink domain" else ()
                suspects = tuple(" ".join(trait) for trait in named if trait[0] == SWITCH_TRAY)
                yield SharedIncident(cause.shares, place, suspects, cause, tuple(incident for _, incident in burst))


def _list_places(
    snapshot: FleetSnapshot, view: NodeSnapshot, cause: SharedCause, incident: Incident | None = None
) -> list[str]:
    if cause.shares == "commit":
        return [commit] if incident and (commit := _find_commit(snapshot, view, incident)) else []
    if cause.shares == "leaf":
        return [name for kind, name in sorted(snapshot.traits.get(view.name, ())) if kind == "leaf"]
    if cause.shares == "NVLink domain" and view.node.spec not in map_rack_rules(snapshot.policy):
        return []
    places = {"site": view.node.site, "spec": view.node.spec}
    return [places.get(cause.shares, "/".join(view.node.rack_place))]


def _find_commit(snapshot: FleetSnapshot, view: NodeSnapshot, incident: Incident) -> str:
    """Return the commit since which an incident that only checks tell of is one, "" for none."""
    marks = {name for fault in view.node_state.faults if fault.id == incident.cause.id for name in fault.marks}
    key = (incident.cause.fault_class, incident.cause.subject)
    failures = [each for each in view.latest if each.outcome.verdict == "fail"] if marks == {"check"} else []
    commits = {snapshot.find_commit(each) for each in failures if (each.outcome.fault, each.outcome.subject) == key}
    return commits.pop() if len(commits) == 1 else ""


def _count_nodes(snapshot: FleetSnapshot, cause: SharedCause) -> Mapping[str, int]:
    """Return how many nodes each rack or site has; nothing for others, whose quiet nodes nobody counts."""
    counts = Counter[str]()
    if cause.shares not in ("commit", "leaf", "spec"):
        for view in snapshot.nodes:
            counts.update(_list_places(snapshot, view, cause))
        for (_, site, rack), count in snapshot.quiet_counts.items():
            counts[site if cause.shares == "site" else f"{site}/{rack}"] += count
    return counts


def _find_burst(cause: SharedCause, members: Sequence[Member]) -> list[Member]:
    """Return the members, in order of time, that follow each other within the cause's minutes; the largest such run."""
    runs: list[list[Member]] = [[]]
    for member in members:
        at, run = parse_time(member[1].first_seen), runs[-1]
        if run and (at - parse_time(run[-1][1].first_seen)).total_seconds() > cause.minutes * 60:
            runs.append(run := [])
        run.append(member)
    return max(runs, key=len)
