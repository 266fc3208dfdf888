"""`assay sync`: how far the fleet is what git says, and what differs where, each difference once with all its nodes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, fields, replace
from datetime import datetime
from pathlib import Path

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, Nodes, Pools, TableFormat
from assay.cli.workspace import Workspace, select_nodes
from assay.decide.drift.sync_report import SYNC_STATES, NodeSync, PoolSync, SyncDifference, SyncReport
from assay.model.facts import extend, fact
from assay.model.text.csv_rows import format_csv
from assay.model.text.lists import fold_names, format_count, format_list
from assay.model.timestamps import format_ago, format_minute
from assay.tell.views.node_sync import STATE_WORDS, format_difference

SHOWN_NAMES = 12
"""So many names and ranges of nodes are shown in one line."""
SHOWN_DIGITS = 10
"""So many digits of a commit are shown."""
_PART = re.compile(r"([a-z]+(?:_[a-z]+)?\d+) (.+)")


@fact
class SyncAnswer:
    """How far the nodes are what git says, by pool and by node."""

    revision: str
    """The commit that they were compared with, with `-dirty` and a digest if files differ from it; "" without one."""
    pools: tuple[PoolSync, ...]
    """The pools, in the order of the inventory."""
    nodes: Sequence[NodeSync]
    """The nodes that were asked for."""


def sync(pool: Pools = None, node: Nodes = None, fleet: FleetDir = Path(), form: TableFormat = "text") -> None:
    """Show how far the nodes are what the fleet repository declares: firmware, settings and configuration.

    For each pool, show how many nodes are in sync, rolling out, drifted, held or unknown, and since when the oldest
    difference is seen. For each node that is not in sync, show what differs: the wanted value with file and line, the
    value that was seen, and since when. A node is in sync only if every check of drift has passed on fresh evidence.

    Exit codes: 0 every node is in sync; 1 some are not; 2 the ledger or the fleet cannot be read.
    """
    from assay.cli.workspace import load_sync_report

    workspace = Workspace(fleet.resolve())
    names = select_nodes(workspace.fleet, node or [], pool or [])
    report = load_sync_report(workspace, names)
    lines = format_sync_csv(report) if form == "csv" else format_sync(report, workspace.clock.now())
    print_answer(extend(SyncAnswer, report), form, lines)
    raise typer.Exit(0 if report.is_in_sync else 1)


def format_sync_csv(report: SyncReport) -> Iterator[str]:
    """Yield a line for each difference, and for each node that has none."""
    rows: list[Mapping[str, object]] = []
    for node in report.nodes:
        head = {"node": node.node, "state": node.state}
        rows += [{**head, **asdict(item)} for item in node.items] or [head]
    yield from format_csv(("node", "state", *(each.name for each in fields(SyncDifference))), rows)


def format_sync(report: SyncReport, now: datetime) -> Iterator[str]:
    """Yield the lines of a report."""
    yield from _format_pools(report.pools, now)
    for state in SYNC_STATES[1:]:
        nodes = [node for node in report.nodes if node.state == state]
        if nodes:
            yield ""
            yield f"{STATE_WORDS[state]}: {format_count(len(nodes), 'node')}: {_format_names(nodes)}"
            yield from _format_holders(nodes)
            yield from _format_items(nodes)
            yield from _format_remedies(nodes)
    yield ""
    yield f"compared with {format_short_revision(report.revision) or 'files without a commit'}"


def _format_pools(pools: Sequence[PoolSync], now: datetime) -> Iterator[str]:
    titles = ["pool", "nodes", *STATE_WORDS.values(), "actual revision", "oldest drift"]
    rows = [
        [
            pool.pool,
            str(pool.nodes),
            *(str(pool.counts[state]) for state in SYNC_STATES),
            _format_revisions(pool),
            format_ago(pool.oldest, now) if pool.oldest else "–",
        ]
        for pool in pools
    ]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    counts = range(1, len(SYNC_STATES) + 2)
    for row in (titles, *rows):
        cells = (
            cell.rjust(width) if at in counts else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _format_revisions(pool: PoolSync) -> str:
    if len(pool.revisions) == 1:
        return format_short_revision(next(iter(pool.revisions))) or "unknown"
    most = sorted(pool.revisions.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{format_short_revision(revision) or 'unknown'} on {count}" for revision, count in most)


def format_short_revision(revision: str) -> str:
    """Return a commit as people read it: its first digits, and whether files differ from it."""
    commit, dirty, _ = revision.partition("-dirty")
    return f"{commit[:SHOWN_DIGITS]} with uncommitted changes" if dirty else commit[:SHOWN_DIGITS]


def _format_names(nodes: Sequence[NodeSync]) -> str:
    return format_list(fold_names(node.node for node in nodes), SHOWN_NAMES)


def _format_holders(nodes: Sequence[NodeSync]) -> Iterator[str]:
    by_holder: dict[str, list[NodeSync]] = defaultdict(list)
    for node in nodes:
        if node.state == "held":
            by_holder[node.held_by].append(node)
    yield from (f"  held by {holder}: {_format_names(held)}" for holder, held in by_holder.items())


def _format_remedies(nodes: Sequence[NodeSync]) -> Iterator[str]:
    """Yield what the policy does about each class of differences, with the nodes if it is not all of them."""
    by_remedy: dict[str, list[NodeSync]] = defaultdict(list)
    for node in nodes:
        for remedy in node.remedies:
            by_remedy[remedy].append(node)
    for remedy, some in by_remedy.items():
        shown = f" (on {_format_names(some)})" if len(some) < len(nodes) else ""
        yield f"  remedy of {remedy}{shown}"


def _format_items(nodes: Sequence[NodeSync]) -> Iterator[str]:
    """Yield the lines of each difference, most nodes first. Parts with the same difference share one line."""
    seen_since: dict[SyncDifference, dict[str, str]] = defaultdict(dict)
    for node in nodes:
        for item in node.items:
            seen_since[replace(item, since="")][node.node] = item.since
    parts: dict[tuple[SyncDifference, tuple[str, ...]], list[str]] = defaultdict(list)
    oldest: dict[tuple[SyncDifference, tuple[str, ...]], str] = {}
    for item, times in seen_since.items():
        part = _PART.fullmatch(item.what)
        key = (replace(item, what=part[2]) if part else item, tuple(times))
        parts[key] += [part[1]] if part else []
        oldest[key] = min((at for at in (*times.values(), oldest.get(key, "")) if at), default="")
    for (item, names), of_parts in sorted(parts.items(), key=lambda pair: (-len(pair[0][1]), astuple(pair[0][0]))):
        name = f"{format_list(fold_names(of_parts))} {item.what}" if of_parts else item.what
        yield f"  {name}: {format_difference(item)}"
        since = f"since {format_minute(oldest[item, names])}" if oldest[item, names] else ""
        shown = f"on {format_list(fold_names(names), SHOWN_NAMES)}" if len(names) < len(nodes) else ""
        if place := ", ".join(filter(None, (shown, since))):
            yield f"    {place}"
