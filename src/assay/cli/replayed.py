"""A replay's answer for people: what moved, what it cost, and how the other policy differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from assay.lifecycle.when import spoken

MOST = 40


def as_text(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an answer."""
    moves = [one for one in document["decisions"] if one["timing"] != "record"]
    yield from _decisions(moves)
    records = Counter(one["remedy"] for one in document["decisions"] if one["timing"] == "record")
    if records:
        yield f"recorded: {_counts(records)}"
    for trip in document["breaker_trips"]:
        yield f"{trip['time']}  breaker of pool {trip['pool']}: {trip['because']}; {len(trip['nodes'])} nodes held"
    yield ""
    yield f"policy {document['policy']}, {document['events']:,} events, {document['from']} to {document['until']}"
    yield from _totals(document)
    if document["unknown_faults"]:
        yield f"no catalogue knows: {', '.join(document['unknown_faults'])}"
    if document["unread_fields"]:
        yield f"fields of events that nobody reads: {', '.join(document['unread_fields'])}"
    if "against" in document:
        yield from _difference(document["against"])


def _decisions(moves: list[dict[str, Any]]) -> Iterator[str]:
    for one in moves[:MOST]:
        when = "when idle" if one["timing"] == "pending" else "at once"
        yield f"{one['time']}  {one['node']}: {one['from']} → {one['to']}, {when}  ({one['because']})"
    if len(moves) > MOST:
        yield f"… and {len(moves) - MOST:,} more moves; --format json has them all"


def _totals(document: dict[str, Any]) -> Iterator[str]:
    totals = document["totals"]
    worst = sorted(document["nodes"].items(), key=lambda item: (-item[1], item[0]))
    most = [f"{name} {_span(seconds)}" for name, seconds in worst[:5] if seconds]
    yield f"out of production: {_span(totals['seconds_out'])} of nodes' time{_most(most)}"
    yield f"actions: {_counts(totals['actions'])}; tickets: {totals['tickets']}"


def _difference(against: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"against policy {against['policy']}, which has {_span(against['totals']['seconds_out'])} out of production"
    yield f"  actions: {_counts(against['totals']['actions'])}; tickets: {against['totals']['tickets']}"
    yield f"  breaker trips: {len(against['breaker_trips'])}"
    for title, key in (("only here", "only_here"), ("only there", "only_there")):
        moves = [one for one in against["decisions"][key] if one["timing"] != "record"]
        yield f"  {title}: {len(moves)} {'move' if len(moves) == 1 else 'moves'}"
        yield from (f"    {line}" for line in _decisions(moves))


def _most(most: Iterable[str]) -> str:
    named = ", ".join(most)
    return f"; the most: {named}" if named else ""


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _span(seconds: float) -> str:
    return spoken(timedelta(seconds=seconds))
