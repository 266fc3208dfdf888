"""What a person should know besides: nothing of it is refused, all of it would surprise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from assay.model.spans import counted
from assay.plan.declared import Declared
from assay.plan.facts import Standing
from assay.plan.follows import Follows
from assay.plan.specs import Configuration
from assay.plan.work import Work, rack_of


def notes(
    after: Declared,
    standings: Mapping[str, Standing],
    following: Iterable[Follows],
    settings: Iterable[Configuration],
    planned: Work,
) -> tuple[str, ...]:
    """Return the notes, the weightiest first."""
    return (*_breaker(after, standings, following), *_unseen(settings), *_one_machine(after, planned))


def _breaker(after: Declared, standings: Mapping[str, Standing], following: Iterable[Follows]) -> Iterator[str]:
    """Tell of pools whose breaker the change itself will open: all its nodes drift at the next look."""
    breaker, fleet = after.policy.breaker, after.fleet
    hit = {node for one in following if one.what in ("moves", "noted") and _serious(after, one) for node in one.nodes}
    counting = [node for name, node in fleet.nodes.items() if standings[name].serves or standings[name].out]
    size = Counter(node.pool for node in counting)
    drifting = Counter(node.pool for node in counting if node.name in hit)
    for pool, count in sorted(drifting.items()):
        if count >= breaker.min_nodes and count * 100 >= breaker.percent * size[pool]:
            held = f"for {breaker.window_minutes:g} min no fault takes a node of it out of service"
            wave = f"{count} of {size[pool]} serving nodes will show the change as a fault at the next look"
            yield f"the breaker of pool {pool} will open: {wave}, and {held} ({after.policy_line('breaker')})"


def _serious(after: Declared, one: Follows) -> bool:
    return after.catalog.treatment(one.fault).severity != "informational"


def _unseen(settings: Iterable[Configuration]) -> Iterator[str]:
    for one in settings:
        if not one.seen_by:
            many = counted(len(one.nodes), "node")
            yield f"no check reads {one.setting.field} of the spec: nobody will see whether {many} became so"


def _one_machine(after: Declared, planned: Work) -> Iterator[str]:
    """Tell of racks that are one machine, which runs on two versions while its nodes go in turn."""
    fleet, waves = after.fleet, planned.schedule.waves
    turns = Counter({(rack_of(fleet.nodes[name]), wave.number) for wave in waves for name in wave.nodes})
    racks = Counter(rack for rack, _ in turns)
    machines = {rack_of(node): node.spec for node in fleet.nodes.values() if fleet.node_specs[node.spec].rack}
    mixed = [rack for rack, count in racks.items() if count > 1 and rack in machines]
    if mixed:
        most = max(racks[rack] for rack in mixed)
        kinds = ", ".join(sorted({machines[rack] for rack in mixed}))
        why = f"rack_concurrent lets so few nodes of a rack go at once ({after.policy_line('limits.rack_concurrent')})"
        yield f"{counted(len(mixed), 'rack')} ({kinds}), each one machine, will run mixed over {most} waves: {why}"
