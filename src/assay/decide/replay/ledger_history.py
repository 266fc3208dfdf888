"""Makes a history of faults out of the ledger: what each node showed in the last days, and when it was over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from operator import attrgetter

from assay.decide.replay.fault_history import HistoryEvent
from assay.decide.state.node_state import NodeState
from assay.model.faults.fault_record import FaultRecord
from assay.model.node import Node
from assay.model.timestamps import parse_time


def list_fault_events(
    node_states: Iterable[NodeState], nodes: Collection[Node], start: datetime, now: datetime
) -> tuple[HistoryEvent, ...]:
    """Return the faults of these nodes from `start` to `now`, in the order of their times.

    A fault that was open at `start` begins there. One that nothing has cleared stays.
    """
    known = {node.name: node for node in nodes}
    events = [
        event
        for node_state in node_states
        if node_state.node in known
        for record in node_state.faults
        for event in _list_events(known[node_state.node], record, start, now)
    ]
    return tuple(sorted(events, key=attrgetter("at", "node", "fault", "part")))


def _list_events(node: Node, record: FaultRecord, start: datetime, now: datetime) -> Iterator[HistoryEvent]:
    cleared = parse_time(record.cleared_at) if record.cleared_at else None
    if cleared and cleared <= start:
        return
    part = record.subject.removeprefix(node.subject).lstrip("/")
    seen = {max(start, parse_time(at)) for at in (record.first_seen, *record.times, record.last_seen) if at}
    for at in sorted(at for at in seen if at <= now):
        yield HistoryEvent(at, node.name, "fault", record.fault_class, part, detail=record.detail)
    if cleared and cleared <= now:
        yield HistoryEvent(max(cleared, *seen), node.name, "clear", record.fault_class, part)
