"""A plan as JSON (everything, in one stable shape), as Markdown and as text.

Markdown is for a comment on a pull request: the most important part first, the rest folded, within GitHub's limit. Text
is for a terminal: one line if nothing changes, else a headline and short sections.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from assay.lifecycle.node_entry import describe_entry
from assay.model.backtest_report import BacktestReport
from assay.model.node import Node
from assay.model.text_lists import fold_names, format_list
from assay.plan.change_plan import ChangePlan
from assay.plan.check_reruns import CheckRerun
from assay.plan.grouped_spec_changes import ConfigurationChange
from assay.plan.plan_sections import PlanSection, find_all_pools, format_headline, format_hours, format_sections
from assay.plan.review.plan_content import PLAN_TRAILER
from assay.plan.rollout_nodes_and_limits import RolloutRoute


def find_touched_pools(plan: ChangePlan) -> list[str]:
    """Return the pools with a node that the plan names; all pools if it changes something for every node."""
    every = find_all_pools(plan)
    there = {new.name: new.pool for _, new in plan.nodes.kept} | {node.name: node.pool for node in plan.nodes.added}
    if any((plan.answers, plan.policy, plan.faults, plan.profiles, plan.bundles, plan.fabrics, plan.checks_gone)):
        return every
    named = {there[name] for name in _list_named_nodes(plan) if name in there}
    fabrics = {job.fabric for job in plan.cables if not job.nodes}
    named |= {new.pool for _, new in plan.nodes.kept if new.settings.fabric in fabrics} if fabrics else set()
    return sorted(named.union(*(one.pools for one in plan.other)))


def _list_named_nodes(plan: ChangePlan) -> Iterator[str]:
    yield from (node.name for node in plan.nodes.added)
    yield from (new.name for _, new in plan.nodes.renamed)
    for part in (plan.nodes.changed, plan.firmware, plan.configuration, plan.limits, plan.reruns, plan.cables):
        for one in part:
            yield from one.nodes


def format_plan_json(plan: ChangePlan) -> str:
    """Return the plan as one JSON document."""
    return json.dumps(plan_document(plan), indent=1, ensure_ascii=False)


def plan_document(plan: ChangePlan) -> dict[str, Any]:
    """Return the plan as plain JSON data."""
    return {
        "base": plan.base,
        "head": plan.head,
        "digest": plan.content.digest,
        "changes": plan.has_changes,
        "pools": find_touched_pools(plan),
        "refused": to_plain_json(plan.refused),
        "risks": to_plain_json(plan.risks),
        "nodes": _inventory_json(plan),
        "firmware": [{**to_plain_json(one.move), "nodes": list(one.nodes)} for one in plan.firmware],
        "configuration": list(map(_configuration_json, plan.configuration)),
        "limits": [
            {
                "spec": one.spec,
                **to_plain_json(one.threshold),
                "line": one.line,
                "nodes": list(one.nodes),
                "checks": list(one.checks),
            }
            for one in plan.limits
        ],
        "checks": {"again": [_rerun_json(one) for one in plan.reruns], "gone": list(plan.checks_gone)},
        "recounts": to_plain_json(plan.recounts),
        "follows": to_plain_json(plan.follows),
        "cables": [
            {name: value for name, value in to_plain_json(job).items() if name != "place"} for job in plan.cables
        ],
        "policy": to_plain_json({"answers": plan.answers, "settings": plan.policy, "replay": plan.policy_replay}),
        "faults": to_plain_json(plan.faults),
        "profiles": to_plain_json(plan.profiles),
        "bundles": to_plain_json(plan.bundles),
        "fabrics": to_plain_json(plan.fabrics),
        "also_changed": to_plain_json(plan.other),
        "schedule": _schedule_json(plan),
        "backtest": _backtest_json(plan.backtest),
        "limit_trials": to_plain_json(plan.limit_trials),
        "notes": list(plan.notes),
    }


def _configuration_json(one: ConfigurationChange) -> dict[str, Any]:
    lists = {"nodes": list(one.nodes), "pools": list(one.pools), "seen_by": list(one.seen_by)}
    return {**to_plain_json(one.setting), **lists}


def _inventory_json(plan: ChangePlan) -> dict[str, Any]:
    return {
        "added": [{**to_plain_json(node), "entry": describe_entry(node, plan.as_of)} for node in plan.nodes.added],
        "removed": to_plain_json(plan.nodes.removed),
        "renamed": [{"from": old.name, "to": new.name} for old, new in plan.nodes.renamed],
        "changed": to_plain_json(plan.nodes.changed),
    }


def to_plain_json(value: Any) -> Any:
    """Return plain JSON data. Values that JSON accepts are not copied."""
    if isinstance(value, Node):
        return {
            "node": value.name,
            "pool": value.pool,
            "spec": value.spec,
            "rack": value.rack,
            "u": value.u,
            "start": value.settings.lifecycle_start,
        }
    if is_dataclass(value):
        return {field.name: to_plain_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_plain_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain_json(item) for item in value]
    return value


def _backtest_json(report: BacktestReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    plain: dict[str, Any] = to_plain_json(report)
    found = plain.pop("differences")
    return {**plain, "found": [{BACKTEST_KEYS.get(name, name): value for name, value in one.items()} for one in found]}


BACKTEST_KEYS = {"still_holds": "still", "reason": "because", "old_result": "then", "new_result": "now"}
"""JSON keys of a `BacktestDifference` that are not the names of its fields."""


def _rerun_json(one: CheckRerun) -> dict[str, Any]:
    phases = {phase: list(checks) for phase, checks in one.phases.items()}
    return {
        "nodes": list(one.nodes),
        "phases": phases,
        "because": {stale.check: list(stale.because) for stale in one.stale},
    }


def _schedule_json(plan: ChangePlan) -> dict[str, Any]:
    work, schedule = plan.work, plan.work.schedule
    return {
        "waves": to_plain_json(schedule.waves),
        "hours": schedule.hours,
        "node_hours": schedule.node_hours,
        "waiting": to_plain_json(schedule.waiting),
        "under_way": list(work.under_way),
        "left_alone": list(work.left_alone),
        "ways": [_route_json(way) for way in work.rollout_routes],
    }


def _route_json(way: RolloutRoute) -> dict[str, Any]:
    return {
        "states": list(way.route.states),
        "nodes": way.nodes,
        "hours": way.hours,
        "stages": to_plain_json(way.stages),
    }


COMMENT_MARKER = "<!-- assay plan -->"
"""By this line the comment is found again, to be updated in place."""
MAX_CHARACTERS = 65_536
LIST_LENGTHS = (60, 20, 5, 1)
UNFOLDED_SECTIONS = {"Refused", "Risks", "Notes"}


def format_plan_markdown(plan: ChangePlan) -> str:
    """Return the plan as Markdown. Its lists are cut if the size limit of a comment requires it."""
    for most in LIST_LENGTHS:
        text = "\n".join(_format_lines(plan, most))
        if len(text) <= MAX_CHARACTERS:
            return text
    return text[: MAX_CHARACTERS - 2] + " …"


def _format_lines(plan: ChangePlan, most: int) -> Iterator[str]:
    yield COMMENT_MARKER
    yield f"### assay plan: {_format_title(plan)}"
    yield ""
    yield f"{_format_code(plan.base)} → {_format_code(plan.head)}: {_escape_markdown(format_headline(plan))}."
    if plan.has_changes:  # near the top, because long comments are cut at the end
        yield from ("", f"{PLAN_TRAILER}: {plan.content.digest}")
    told = format_sections(plan) if plan.has_changes or plan.refused else []
    for section in (one for one in told if one.title in UNFOLDED_SECTIONS):
        yield from ("", f"**{section.title}**", "", *_format_items(section, most))
    yield from _format_wave_table(plan, most)
    for section in (one for one in told if one.title not in (*UNFOLDED_SECTIONS, "Waves")):
        summary = f"{section.title} ({len(section.lines)})"
        yield from ("", f"<details><summary>{summary}</summary>", "", *_format_items(section, most), "", "</details>")


def _format_title(plan: ChangePlan) -> str:
    if plan.refused:
        return f"refused, {len(plan.refused)} of the limits would be broken"
    return "inside the limits" if plan.has_changes else "nothing changes"


def _format_wave_table(plan: ChangePlan, most: int) -> Iterator[str]:
    waves = plan.work.schedule.waves
    if not waves:
        return
    yield ""
    yield "| wave | nodes | | wall time | node-hours out |"
    yield "|---|---:|---|---:|---:|"
    for wave in waves[:most]:
        kind = f"{wave.number}, canary" if wave.canary else str(wave.number)
        names = format_list(fold_names(wave.nodes), 4)
        cells = (kind, len(wave.nodes), _escape_markdown(names), format_hours(wave.hours), f"{wave.node_hours:.0f}")
        yield f"| {' | '.join(str(cell) for cell in cells)} |"
    total = plan.work.schedule
    if len(waves) > most:
        yield f"| … | | and {len(waves) - most} more | | |"
    yield f"| all | {sum(len(wave.nodes) for wave in waves)} | | {format_hours(total.hours)} | {total.node_hours:.0f} |"


def _format_items(section: PlanSection, most: int) -> Iterator[str]:
    for line in section.lines[:most]:
        yield f"- {_escape_markdown(_shortened(line)).replace(chr(10), '<br>')}"
    if len(section.lines) > most:
        yield f"- and {len(section.lines) - most} more"


def _shortened(line: str, most: int = 2000) -> str:
    return line if len(line) <= most else f"{line[:most]} …"


def _format_code(text: str) -> str:
    return f"`{text}`" if "`" not in text else _escape_markdown(text)


def _escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged. Names of nodes and classes need no escape, but people's words may."""
    signs = {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "|": "\\|",
        "*": "\\*",
        "`": "\\`",
        "[": "\\[",
        "@": "@\u200b",
    }
    return "".join(signs.get(sign, sign) for sign in text)


MAX_LINES = 40


def format_plan_text(plan: ChangePlan) -> str:
    """Return the plan as text. Long sections are cut; JSON holds everything."""
    first = f"{plan.base} → {plan.head}: {format_headline(plan)}"
    told = format_sections(plan) if plan.has_changes or plan.refused else []
    return "\n".join([first, *(line for section in told for line in _format_section(section))])


def _format_section(section: PlanSection) -> Iterator[str]:
    yield ""
    yield section.title
    for entry in section.lines[:MAX_LINES]:
        yield from (f"  {line}" for line in entry.split("\n"))
    if len(section.lines) > MAX_LINES:
        yield f"  and {len(section.lines) - MAX_LINES} more (`--format json` has them all)"
