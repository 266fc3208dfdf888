"""A plan as Markdown, as text and as JSON.

Markdown is for a comment on a pull request: the most important part first, the rest folded, within GitHub's limit. Text
is for a terminal: one line if nothing changes, else a headline and short sections. JSON is the plan itself, with its
nodes, its pools and its digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.policy_changes import SettingDifference
from assay.decide.plan.review import format_plan_line
from assay.decide.plan.sections import PlanSection, find_all_pools, format_headline, format_hours, format_sections
from assay.decide.state.node_entry import describe_entry
from assay.model.facts import fact, inline, to_json
from assay.model.node import Node
from assay.model.text.lists import fold_names, format_list

COMMENT_MARKER = "<!-- assay plan -->"
"""By this line the comment is found again, to be updated in place."""
MAX_CHARACTERS = 65_536
LIST_LENGTHS = (60, 20, 5, 1)
UNFOLDED_SECTIONS = {"Refused", "Risks", "Notes", "Rollout under way"}


def format_plan_markdown(plan: ChangePlan) -> str:
    """Return the plan as Markdown. Its lists are cut if the size limit of a comment requires it."""
    for most in LIST_LENGTHS:
        text = "\n".join(_format_lines(plan, most))
        if len(text) <= MAX_CHARACTERS:
            return text
    return text[: MAX_CHARACTERS - 2] + " …"


def _format_lines(plan: ChangePlan, most: int) -> Iterator[str]:
    yield COMMENT_MARKER
    title = "inside the limits" if plan.has_changes else "nothing changes"
    if plan.refused:
        title = f"refused, {len(plan.refused)} of the limits would be broken"
    yield f"### assay plan: {title}"
    yield ""
    yield f"{_format_code(plan.base)} → {_format_code(plan.head)}: {_escape_markdown(format_headline(plan))}."
    if plan.has_changes:  # near the top, because long comments are cut at the end
        yield from ("", format_plan_line(plan.content.digest, plan.facts.position))
    sections = format_sections(plan) if plan.has_changes or plan.refused else []
    for section in (section for section in sections if section.title in UNFOLDED_SECTIONS):
        yield from ("", f"**{section.title}**", "", *_format_items(section, most))
    yield from _format_wave_table(plan, most)
    for section in (section for section in sections if section.title not in (*UNFOLDED_SECTIONS, "Waves")):
        summary = f"{section.title} ({len(section.lines)})"
        yield from ("", f"<details><summary>{summary}</summary>", "", *_format_items(section, most), "", "</details>")


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


MAX_LINE_LENGTH = 2000


def _format_items(section: PlanSection, most: int) -> Iterator[str]:
    for line in section.lines[:most]:
        shown = line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]} …"
        yield f"- {_escape_markdown(shown).replace(chr(10), '<br>')}"
    if len(section.lines) > most:
        yield f"- and {len(section.lines) - most} more"


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
    sections = format_sections(plan) if plan.has_changes or plan.refused else []
    return "\n".join([first, *(line for section in sections for line in _format_section(section))])


def _format_section(section: PlanSection) -> Iterator[str]:
    yield ""
    yield section.title
    for entry in section.lines[:MAX_LINES]:
        yield from (f"  {line}" for line in entry.split("\n"))
    if len(section.lines) > MAX_LINES:
        yield f"  and {len(section.lines) - MAX_LINES} more (`--format json` has them all)"


@fact
class PlannedNode:
    """A node that comes or goes."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that it is in."""
    spec: str
    """Its node spec."""
    rack: str
    """Its rack; "" if none is declared."""
    u: int
    """Its place in the rack, in rack units; 0 if none is declared."""
    start: str
    """The state in which it starts."""
    entry: str
    """How a new node comes into service, in words; "" for one that goes."""


@fact
class InventoryDifference:
    """How the inventory differs."""

    added: list[PlannedNode]
    """The new nodes."""
    removed: list[PlannedNode]
    """The nodes that are gone."""
    renamed: Mapping[str, str]
    """The new name of each machine whose node has another name, by the old one."""
    changed: tuple[NodeChange, ...]
    """The fields that change, with their nodes."""


@fact
class PlanAnswer:
    """What merging a change would do to the fleet."""

    plan: ChangePlan = inline()
    digest: str
    """The digest of what the plan decides: by the files, and by the facts where there are any."""
    changes: bool
    """Whether merging changes anything for the fleet."""
    pools: list[str]
    """The pools that it touches."""
    nodes: InventoryDifference
    """The nodes that come, go or change."""


def find_touched_pools(plan: ChangePlan) -> list[str]:
    """Return the pools with a node that the plan names, or whose profile or fabric it changes; all for a policy."""
    every = find_all_pools(plan)
    there = {new.name: new.pool for _, new in plan.nodes.kept} | {node.name: node.pool for node in plan.nodes.added}
    if any((plan.answers, plan.policy, plan.faults, plan.checks_gone)):
        return every
    named = {there[name] for name in _list_named_nodes(plan) if name in there}
    recabled = {job.fabric for job in plan.cables if not job.nodes}
    for new in [new for _, new in plan.nodes.kept] if (recabled or plan.fabrics or plan.profiles) else ():
        fabric = new.settings.fabric
        if fabric in recabled or _is_reset(plan.fabrics, fabric) or _is_reset(plan.profiles, new.profile):
            named.add(new.pool)
    return sorted(named.union(plan.bundle_pools, *(change.pools for change in plan.other)))


def _is_reset(changes: tuple[SettingDifference, ...], spec: str | None) -> bool:
    return any(change.path.startswith(f"{spec}.") for change in changes)


def _list_named_nodes(plan: ChangePlan) -> Iterator[str]:
    yield from (node.name for node in plan.nodes.added)
    yield from (new.name for _, new in plan.nodes.renamed)
    for part in (plan.nodes.changed, plan.firmware, plan.configuration, plan.limits, plan.reruns, plan.cables):
        for change in part:
            yield from change.nodes


def format_plan_json(plan: ChangePlan) -> str:
    """Return the plan as one JSON document."""
    return json.dumps(to_json(make_plan_answer(plan)), indent=1, ensure_ascii=False)


def make_plan_answer(plan: ChangePlan) -> PlanAnswer:
    """Return all that a plan says."""
    nodes = InventoryDifference(
        [_show_node(node, describe_entry(node, plan.as_of)) for node in plan.nodes.added],
        [_show_node(node) for node in plan.nodes.removed],
        {old.name: new.name for old, new in plan.nodes.renamed},
        plan.nodes.changed,
    )
    return PlanAnswer(plan, plan.content.digest, plan.has_changes, find_touched_pools(plan), nodes)


def _show_node(node: Node, entry: str = "") -> PlannedNode:
    return PlannedNode(node.name, node.pool, node.spec, node.rack, node.u, node.settings.lifecycle_start, entry)
