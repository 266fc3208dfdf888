"""Rollouts as JSON and as lines: for `assay rollout`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from assay.decide.rollouts.node_progress import PROGRESS_KINDS
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.rollouts.step_entries import shorten_id
from assay.model.entries.rollout_entries import CommitAdoptedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.printable_text import escape_line
from assay.model.text.text_lists import format_count, format_nodes
from assay.model.timestamps import format_ago
from assay.tell.views.rollouts import summarize_rollout

if TYPE_CHECKING:
    from assay.act.rollouts.rollout_report import RolloutReport
    from assay.cli.answers.rollout_answers import (
        ComingWave,
        RolloutNode,
        RolloutProgress,
        RolloutShowAnswer,
        UncomparedCommit,
    )

BAR_WIDTH = 30
NODES_SHOWN = 12
"""So many nodes of each kind of progress have a line of their own."""


def report_as_json(report: RolloutReport) -> RolloutShowAnswer:
    """Return a report as the object that `assay rollout show --format json` prints."""
    rollout, step = report.rollout, report.step
    progress = {one.node: one for one in step.progress} if step else {}
    nodes: list[RolloutNode] = [
        {
            "node": name,
            "progress": progress[name].kind if name in progress else "proven" if member.proof else "",
            "why": progress[name].why if name in progress else member.proof,
            "to": member.to,
            "change": member.reason,
            "ordered_at": member.ordered_at,
        }
        for name, member in rollout.members.items()
    ]
    waves: list[ComingWave] = [
        {"number": one.number + 1, "canary": one.canary, "nodes": list(one.nodes)} for one in report.waves
    ]
    waits_for = step.waits_for if step else ""
    shown: RolloutProgress = {
        **summarize_rollout(rollout),
        "waits_for": waits_for,
        "hours_left": report.hours_left,
    }
    return {"rollout": shown, "nodes": nodes, "waves": waves}


def uncompared_as_json(adopted: LedgerEntry) -> UncomparedCommit:
    """Return a commit that was adopted without a rollout, because it could not be compared with the one before."""
    body = CommitAdoptedEntry.read(adopted)
    return {"commit": body.commit, "base": body.base, "at": adopted.at, "reason": body.uncompared}


def format_uncompared(adopted: LedgerEntry, now: datetime) -> str:
    """Return such a commit in two lines: what happened, and what to do."""
    body = CommitAdoptedEntry.read(adopted)
    when = f"adopted {format_ago(adopted.at, now)}"
    why = f"cannot be compared with {body.base[:8]}: {body.uncompared}"
    return f"{body.commit[:8]}  {when}, without a rollout: {why}\n  → `assay sync` shows what differs, and the remedies"


def format_rollout(one: Rollout, now: datetime) -> str:
    """Return a rollout in one line."""
    proven = len(one.members) - len(one.unproven)
    when = f"ended {format_ago(one.ended_at, now)}" if one.ended_at else f"since {format_ago(one.started_at, now)}"
    why = escape_line(f"paused by {one.pause.who}: {one.pause.reason}" if one.pause else one.end_reason)
    head = f"{shorten_id(one.id)}  {one.base[:8]} → {one.commit[:8]}  {one.status}, {when}"
    return f"{head}  {proven} of {format_count(len(one.members), 'node')} proven{f'  {why}' if why else ''}"


def format_report(report: RolloutReport, now: datetime) -> str:
    """Return a report as lines for people."""
    return "\n".join(_format_lines(report, now))


def _format_lines(report: RolloutReport, now: datetime) -> Iterator[str]:
    rollout, step = report.rollout, report.step
    yield format_rollout(rollout, now)
    total, proven = len(rollout.members), len(rollout.members) - len(rollout.unproven)
    filled = BAR_WIDTH * proven // max(1, total)
    bar = f"{'█' * filled}{'░' * (BAR_WIDTH - filled)}"
    if step is None:
        yield f"  {bar}  {proven} of {total} proven"
        return
    counts = Counter(one.kind for one in step.progress)
    yield f"  {bar}  {', '.join(f'{counts[kind]} {kind}' for kind in PROGRESS_KINDS if counts[kind])}"
    if step.waits_for:
        yield f"  waits: {step.waits_for}"
    if rollout.plan:
        yield f"  reviewed plan: {rollout.plan}"
    yield f"  {format_count(len(report.waves), 'wave')} to go, about {report.hours_left or 0:.0f} h"
    for wave in report.waves[:NODES_SHOWN]:
        yield f"  wave {wave.number + 1}{' (canary)' if wave.canary else ''}: {format_nodes(list(wave.nodes))}"
    for kind in PROGRESS_KINDS:
        yield from _format_nodes_of_kind(report, kind)


def _format_nodes_of_kind(report: RolloutReport, kind: str) -> Iterator[str]:
    """Yield a line for each node of which there is something to say; those that wait or are proven are only counted."""
    step = report.step
    if step is None or kind in ("waiting", "proven"):
        return
    nodes = [one for one in step.progress if one.kind == kind]
    yield from (f"  {one.node}  {kind}  {one.why}" for one in nodes[:NODES_SHOWN])
    if len(nodes) > NODES_SHOWN:
        yield f"  and {len(nodes) - NODES_SHOWN} more {kind}"
