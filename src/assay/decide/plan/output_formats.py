"""A plan as Markdown and as text.

Markdown is for a comment on a pull request: the most important part first, the rest folded, within GitHub's limit. Text
is for a terminal: one line if nothing changes, else a headline and short sections.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.review import PLAN_TRAILER
from assay.decide.plan.sections import PlanSection, format_headline, format_hours, format_sections
from assay.model.text.lists import fold_names, format_list

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
    title = "inside the limits" if plan.has_changes else "nothing changes"
    if plan.refused:
        title = f"refused, {len(plan.refused)} of the limits would be broken"
    yield f"### assay plan: {title}"
    yield ""
    yield f"{_format_code(plan.base)} → {_format_code(plan.head)}: {_escape_markdown(format_headline(plan))}."
    if plan.has_changes:  # near the top, because long comments are cut at the end
        yield from ("", f"{PLAN_TRAILER}: {plan.content.digest}")
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
