"""How far automation may go, what waits for a person, and what was only watched: for verbs, pages and API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from typing_extensions import TypedDict

from assay.controller.orders.trust_orders import describe_undo, list_fleet_waits
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.trust.trust_waits import TrustWait
from assay.lifecycle.trust.watch_record import RECORD_KINDS, WatchRecord, make_watch_record
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.trust_rules import TrustSetting, TrustStep
from assay.model.text_lists import format_count, format_list
from assay.model.timestamps import format_minute
from assay.views.record_source import RecordSource


class TrustWaitStatus(TypedDict):
    """One thing that waits for a person, or that assay only watches."""

    id: str
    """What `assay approve` and `assay decline` name."""
    node: str
    """The name of the node."""
    kind: str
    """decision, effect or order; would: it takes no yes, because assay only watches there."""
    since: str
    """Since when: ISO 8601 UTC."""
    text: str
    """What would be done, and why it waits."""
    undo: str
    """What undoes it, in words."""
    said: str
    """The last yes or no, with the name of who said it; "" without one."""


class NodeTrust(TypedDict):
    """How far automation may go with a node."""

    step: TrustStep
    """watch, suggest or act: the step of all that has no line of its own."""
    where: str
    """The file and line that say so; "" if no line does."""
    waits: list[TrustWaitStatus]
    """What waits, the newest decisions only."""


class FleetTrust(NodeTrust):
    """How far automation may go with the fleet."""

    pools: dict[str, TrustStep]
    """The steps of pools with a line of their own."""
    actions: dict[str, TrustStep]
    """The steps of actions with a line of their own."""
    watched: WatchRecord | None
    """What assay would have done in the last days; null if it watches nowhere."""


def build_fleet_trust(source: RecordSource, states: Iterable[NodeState]) -> FleetTrust | None:
    """Return the trust of the fleet, None without one policy."""
    fleet = source.fleet
    if len(fleet.policies) != 1:
        return None
    rules, setting, watched = fleet.policy.trust, fleet.find_trust(), None
    own = {} if fleet.is_lab else rules.pools
    steps = [setting.step, *own.values(), *({} if fleet.is_lab else rules.actions).values()]
    if "watch" in steps:
        try:
            entries: Sequence[LedgerEntry] = source.ledger_for_reading.entries(kinds=RECORD_KINDS)
        except AssayError:
            entries = ()
        watched = make_watch_record(fleet.policy, entries, source.clock.now())
    return {
        **_describe(setting, list_fleet_waits(fleet, states)),
        "pools": own,
        "actions": {} if fleet.is_lab else dict(rules.actions.items()),
        "watched": watched,
    }


def find_node_trust(fleet: Fleet, state: NodeState) -> NodeTrust | None:
    """Return the trust of a node, None without one policy."""
    return (
        _describe(fleet.find_trust(state.node), list_fleet_waits(fleet, [state])) if len(fleet.policies) == 1 else None
    )


def fleet_trust_as_json(trust: FleetTrust | None) -> Any:
    """Return plain JSON data."""
    watched = trust["watched"] if trust else None
    return trust and {**trust, "watched": watched and asdict(watched)}


def _describe(setting: TrustSetting, waits: Iterable[TrustWait]) -> NodeTrust:
    return {
        "step": setting.step,
        "where": setting.where,
        "waits": [
            {
                "id": one.id,
                "node": one.node,
                "kind": one.kind,
                "since": one.since,
                "text": one.text,
                "undo": describe_undo(one.actions),
                "said": one.said,
            }
            for one in waits
        ],
    }


def format_fleet_trust(trust: FleetTrust) -> Iterator[str]:
    """Yield the step with its exceptions, what assay would have done, and what waits, in lines for people."""
    own = format_list([f"{name}: {step}" for name, step in {**trust["pools"], **trust["actions"]}.items()])
    yield _format_step(trust) + (f"; {own}" if own else "")
    if record := trust["watched"]:
        yield format_watch_record(record)
    for wait in trust["waits"]:
        if wait["kind"] != "would":
            yield format_wait(wait)


def format_watch_record(record: WatchRecord) -> str:
    """Return what assay would have done, in a line."""
    kinds = format_list([f"{count} × {what}" for what, count in record.decisions.items()], 4)
    count = format_count(sum(record.decisions.values()), "decision")
    return (
        f"in {record.days} days it would have made {count} on {format_count(record.nodes, 'node')}"
        f"{kinds and f' ({kinds})'}, {record.node_hours:g} node-hours out of service; "
        f"people did the same {format_count(record.done_by_people, 'time')}"
    )


def format_wait(wait: TrustWaitStatus) -> str:
    """Return what waits in a line, with the command that says yes."""
    said = f"; {wait['said']}" if wait["said"] else ""
    rest = "" if wait["kind"] == "would" else f"; {wait['undo']}; assay approve {wait['id'][:12]} --reason …"
    return f"{wait['node']}: {wait['text']} (since {format_minute(wait['since'])}){said}{rest}"


def format_node_trust(trust: NodeTrust | None) -> list[str]:
    """Return a node's step, and what waits there, in lines."""
    if trust is None:
        return []
    return [_format_step(trust), *map(format_wait, trust["waits"])]


def _format_step(trust: NodeTrust) -> str:
    where = f" ({trust['where']})" if trust["where"] else ""
    return f"trust step {trust['step']}{where}"
