"""How far automation may go, what waits for a person, and what was only watched: for verbs, pages and API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from assay.act.orders.orders import list_fleet_waits
from assay.decide.state.node_state import NodeState
from assay.decide.trust.gate import TrustWait
from assay.decide.trust.record import RECORD_KINDS, WatchRecord, make_watch_record
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.fleet import Fleet
from assay.model.specs.trust_rules import TrustStep
from assay.model.text.lists import format_count, format_list
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from assay.tell.views.records import RecordSource


@fact
class NodeTrust:
    """How far automation may go with a node, or with the fleet."""

    step: TrustStep
    """Watch, suggest or act: of all that has no line of its own."""
    where: str
    """The file and line that say so; "" for none."""
    waits: list[TrustWait]
    """What waits for a person or is only watched, the newest decisions."""


@fact
class FleetTrust(NodeTrust):
    """How far automation may go with the fleet."""

    pools: Mapping[str, TrustStep]
    """The steps of pools with a line of their own."""
    actions: Mapping[str, TrustStep]
    """The steps of actions with a line of their own."""
    watched: WatchRecord | None
    """What assay would have done in the last days; null if it watches nowhere."""


def build_fleet_trust(source: RecordSource, states: Iterable[NodeState]) -> FleetTrust | None:
    """Return the trust of the fleet, None without one policy."""
    fleet = source.fleet
    if len(fleet.policies) != 1:
        return None
    rules, setting = fleet.policy.trust, fleet.find_trust()
    actions = {} if fleet.is_lab else {str(name): step for name, step in rules.actions.items()}
    pools = {} if fleet.is_lab else rules.pools
    watched = None
    if "watch" in (setting.step, *pools.values(), *actions.values()):
        try:
            entries = source.ledger_for_reading.entries(kinds=RECORD_KINDS)
        except AssayError:  # nothing was observed yet
            entries = []
        watched = make_watch_record(fleet.policy, entries, source.clock.now())
    return FleetTrust(setting.step, setting.where, list_fleet_waits(fleet, states), pools, actions, watched)


def find_node_trust(fleet: Fleet, state: NodeState) -> NodeTrust | None:
    """Return the trust of a node, None without one policy."""
    if len(fleet.policies) != 1:
        return None
    setting = fleet.find_trust(state.node)
    return NodeTrust(setting.step, setting.where, list_fleet_waits(fleet, [state]))


def format_fleet_trust(trust: FleetTrust) -> Iterator[str]:
    """Yield the step with its exceptions, what assay would have done, and what waits, in lines for people."""
    own = format_list([f"{name}: {step}" for name, step in {**trust.pools, **trust.actions}.items()])
    yield _format_step(trust) + (f"; {own}" if own else "")
    if record := trust.watched:
        kinds = format_list([f"{count} × {decision}" for decision, count in record.decisions.items()], 4)
        count = format_count(sum(record.decisions.values()), "decision")
        yield (
            f"in {record.days} days it would have made {count} on {format_count(record.nodes, 'node')}"
            f"{kinds and f' ({kinds})'}, {record.node_hours:g} node-hours out of service; "
            f"people did the same {format_count(record.done_by_people, 'time')}"
        )
    yield from (_format_wait(wait) for wait in trust.waits if wait.kind != "would")


def format_node_trust(trust: NodeTrust | None) -> list[str]:
    """Return a node's step, and what waits there with the command that says yes, in lines."""
    return [_format_step(trust), *map(_format_wait, trust.waits)] if trust else []


def _format_step(trust: NodeTrust) -> str:
    return f"trust step {trust.step}" + (f" ({trust.where})" if trust.where else "")


def _format_wait(wait: TrustWait) -> str:
    remark = f"; {wait.said}" if wait.said else ""
    rest = "" if wait.kind == "would" else f"; {wait.undo}; assay approve {wait.id[:12]} --reason …"
    return f"{wait.node}: {wait.text} (since {format_minute(wait.since)}){remark}{rest}"
