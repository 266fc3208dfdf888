"""Planned work as a calendar: iCalendar (RFC 5545), to which people subscribe.

Rollouts and swaps are told as operations, so that customers find all work on their nodes in one list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from assay.decide.rollouts.decide_rollouts import find_begin
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.state.operation_record import OperationOnNode, OperationRecord, OperationState
from assay.model.entries.node_entries import NodeReplacedEntry
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.text.lists import format_nodes
from assay.model.timestamps import format_time, parse_time

ROLLOUT = "rollout"
"""The name under which rollouts are among the operations."""
SWAPS_SHOWN = 20
LINE_BYTES = 73
"""A line has at most 75 bytes; what is folded begins with a space."""
STATUSES = {"planned": "CONFIRMED", "cancelled": "CANCELLED"}
_make_own_work = partial(OperationRecord, key="", who="assay", role="")
"""What assay does without an order of anybody."""


def describe_rollout(fleet: Fleet, rollout: Rollout, expected_end: str) -> OperationRecord:
    """Return a rollout as an operation: each node is planned until it is ordered out. The id is the rollout's."""
    ended = rollout.ended_at
    rest: OperationState = "planned" if rollout.is_active else "cancelled"
    nodes = [
        OperationOnNode(
            node=name,
            state="succeeded" if member.proof else "running" if member.is_ordered_out and not ended else rest,
            text=member.proof or ("" if member.order else member.reserved),
            at=member.ordered_at or rollout.started_at,
            order=derive_id("operation", rollout.id, name) if member.order else "",
            deferred_to=member.deferred_to,
        )
        for name, member in rollout.members.items()
    ]
    states, kinds = {each.state for each in nodes}, sorted({member.to for member in rollout.members.values()})
    doing = [fleet.policy.states[to].for_customers.doing for to in kinds if to in fleet.policy.states]
    changed = max([rollout.started_at, ended, *(each.at for each in nodes)])
    return _make_own_work(
        id=rollout.id,
        operation=ROLLOUT,
        reason=" ".join(doing) or "the configuration of the nodes changes",
        state=next((state for state in ("planned", "running", "cancelled") if state in states), "succeeded"),
        created_at=rollout.started_at,
        updated_at=changed,
        to=", ".join(kinds),
        now=False,
        nodes=tuple(nodes),
        starts_at=format_time(find_begin(fleet.policy, rollout)),
        ends_at=ended or expected_end,
        position=rollout.started_seq + count_steps(rollout),
    )


def count_steps(rollout: Rollout) -> int:
    """Return how many orders, deferrals and proofs a rollout has had."""
    return sum(bool(member.order) + member.deferrals + bool(member.proof) for member in rollout.members.values())


def _add_swap(swaps: dict[str, tuple[LedgerEntry, ...]], entry: LedgerEntry) -> dict[str, tuple[LedgerEntry, ...]]:
    pool = NodeReplacedEntry.read(entry).pool
    return {**swaps, pool: (entry, *swaps.get(pool, ()))[:SWAPS_SHOWN]}


SWAPS = Projection[dict[str, tuple[LedgerEntry, ...]]]((NodeReplacedEntry.kind,), dict, _add_swap)
"""The last swaps of each pool, the newest first."""


def describe_swap(entry: LedgerEntry) -> OperationRecord:
    """Return the swap that an entry `node.replaced` tells as an operation on both nodes."""
    swap = NodeReplacedEntry.read(entry)
    text = f"{swap.by} took the place of {entry.node}"
    return _make_own_work(
        id=entry.id,
        operation="replace",
        reason=text,
        state="succeeded",
        created_at=entry.at,
        updated_at=entry.at,
        to="",
        now=True,
        nodes=tuple(
            OperationOnNode(name, "succeeded", text, entry.at, swap.decision) for name in (entry.node, swap.by)
        ),
        starts_at=entry.at,
        ends_at=entry.at,
        position=entry.seq,
    )


def format_calendar(records: Iterable[OperationRecord]) -> str:
    """Return the calendar. An event keeps its id when it is deferred, and its number tells which version is newer."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//assay//planned work//EN"]
    for record in records:
        lines += _list_lines(record)
    return "".join(f"{part}\r\n" for line in [*lines, "END:VCALENDAR"] for part in _fold(line))


def _list_lines(record: OperationRecord) -> list[str]:
    nodes = format_nodes([each.node for each in record.nodes])
    return [
        "BEGIN:VEVENT",
        f"UID:{record.id}@assay",
        f"SEQUENCE:{record.position}",
        f"DTSTAMP:{_format_moment(record.updated_at)}",
        f"DTSTART:{_format_moment(record.starts_at)}",
        f"DTEND:{_format_moment(record.ends_at)}",
        f"SUMMARY:{_escape(f'{record.operation} of {nodes}')}",
        f"DESCRIPTION:{_escape(f'{record.reason} ({record.state})')}",
        f"STATUS:{STATUSES.get(record.state, 'CONFIRMED')}",
        "END:VEVENT",
    ]


def _format_moment(at: str) -> str:
    return f"{parse_time(at):%Y%m%dT%H%M%SZ}"


def _escape(text: str) -> str:
    for sign in ("\\", ";", ","):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _fold(line: str) -> Iterator[str]:
    """Yield a line in parts that are short enough, none of which ends within a character."""
    part = ""
    for sign in line:
        if len((part + sign).encode()) > LINE_BYTES:
            yield part
            part = " "
        part += sign
    yield part
