"""The answer of `assay replay` for people: decisions, costs, and the difference to another policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from assay.model.timestamps import format_duration

MAX_MOVES_SHOWN = 40


def format_replay_text(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines for a document of `assay.trends.replay.replay_result`."""
    yield from _format_moves([decision for decision in document["decisions"] if decision["timing"] != "record"])
    records = Counter(decision["remedy"] for decision in document["decisions"] if decision["timing"] == "record")
    if records:
        yield f"recorded: {_format_counts(records)}"
    for trip in document["breaker_trips"]:
        yield f"{trip['time']}  breaker of pool {trip['pool']}: {trip['because']}; {len(trip['nodes'])} nodes held"
    yield ""
    yield f"policy {document['policy']}, {document['events']:,} events, {document['from']} to {document['until']}"
    yield from _format_totals(document)
    if document["unknown_faults"]:
        yield f"not in the fault catalogue: {', '.join(document['unknown_faults'])}"
    if document["unread_fields"]:
        yield f"unused fields of events: {', '.join(document['unread_fields'])}"
    if "against" in document:
        yield from _format_difference(document["against"])


def _format_moves(moves: list[dict[str, Any]]) -> Iterator[str]:
    for move in moves[:MAX_MOVES_SHOWN]:
        when = "when idle" if move["timing"] == "pending" else "at once"
        yield f"{move['time']}  {move['node']}: {move['from']} → {move['to']}, {when}  ({move['because']})"
    if len(moves) > MAX_MOVES_SHOWN:
        yield f"… and {len(moves) - MAX_MOVES_SHOWN:,} more moves; --format json has all of them"


def _format_totals(document: dict[str, Any]) -> Iterator[str]:
    totals = document["totals"]
    longest = sorted(document["nodes"].items(), key=lambda item: (-item[1], item[0]))[:5]
    nodes = ", ".join(f"{name} {_format_seconds(seconds)}" for name, seconds in longest if seconds)
    most = f"; the most: {nodes}" if nodes else ""
    yield f"out of service: {_format_seconds(totals['seconds_out'])} of node time{most}"
    yield f"actions: {_format_counts(totals['actions'])}; tickets: {totals['tickets']}"


def _format_difference(against: dict[str, Any]) -> Iterator[str]:
    totals = against["totals"]
    yield ""
    yield f"compared with policy {against['policy']}: {_format_seconds(totals['seconds_out'])} out of service"
    yield f"  actions: {_format_counts(totals['actions'])}; tickets: {totals['tickets']}"
    yield f"  breaker trips: {len(against['breaker_trips'])}"
    for title, key in (("only here", "only_here"), ("only there", "only_there")):
        moves = [decision for decision in against["decisions"][key] if decision["timing"] != "record"]
        yield f"  {title}: {len(moves)} {'move' if len(moves) == 1 else 'moves'}"
        yield from (f"    {line}" for line in _format_moves(moves))


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _format_seconds(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))
