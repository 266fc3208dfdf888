"""A plan as a comment under a pull request: what matters first, the rest folded, within what GitHub takes."""

from __future__ import annotations

from collections.abc import Iterator

from assay.model.spans import folded, listed
from assay.plan.plan import Plan
from assay.plan.words import Section, headline, hours, sections

MARKER = "<!-- assay plan -->"
"""By this line the comment is found again, to be updated in place."""
MOST_CHARACTERS = 65_536
CUTS = (60, 20, 5, 1)
OPEN = {"Refused", "Notes"}


def as_markdown(plan: Plan) -> str:
    """Return the plan as Markdown, its lists cut as far as the limit of a comment needs."""
    for most in CUTS:
        text = "\n".join(_lines(plan, most))
        if len(text) <= MOST_CHARACTERS:
            return text
    return text[: MOST_CHARACTERS - 2] + " …"


def _lines(plan: Plan, most: int) -> Iterator[str]:
    yield MARKER
    yield f"### assay plan: {_title(plan)}"
    yield ""
    yield f"{_code(plan.base)} → {_code(plan.head)}: {_plain(headline(plan))}."
    told = sections(plan) if plan.changes or plan.refused else []
    for section in (one for one in told if one.title in OPEN):
        yield from ("", f"**{section.title}**", "", *_items(section, most))
    yield from _table(plan, most)
    for section in (one for one in told if one.title not in (*OPEN, "Waves")):
        summary = f"{section.title} ({len(section.lines)})"
        yield from ("", f"<details><summary>{summary}</summary>", "", *_items(section, most), "", "</details>")


def _title(plan: Plan) -> str:
    if plan.refused:
        return f"refused, {len(plan.refused)} of the limits would be broken"
    return "inside the limits" if plan.changes else "nothing changes"


def _table(plan: Plan, most: int) -> Iterator[str]:
    waves = plan.work.schedule.waves
    if not waves:
        return
    yield ""
    yield "| wave | nodes | | wall time | node-hours out |"
    yield "|---|---:|---|---:|---:|"
    for wave in waves[:most]:
        kind = f"{wave.number}, canary" if wave.canary else str(wave.number)
        names = listed(folded(wave.nodes), 4)
        yield f"| {kind} | {len(wave.nodes)} | {_plain(names)} | {hours(wave.hours)} | {wave.node_hours:.0f} |"
    total = plan.work.schedule
    if len(waves) > most:
        yield f"| … | | and {len(waves) - most} more | | |"
    yield f"| all | {sum(len(wave.nodes) for wave in waves)} | | {hours(total.hours)} | {total.node_hours:.0f} |"


def _items(section: Section, most: int) -> Iterator[str]:
    for line in section.lines[:most]:
        yield f"- {_plain(_shortened(line)).replace(chr(10), '<br>')}"
    if len(section.lines) > most:
        yield f"- and {len(section.lines) - most} more"


def _shortened(line: str, most: int = 2000) -> str:
    return line if len(line) <= most else f"{line[:most]} …"


def _code(text: str) -> str:
    return f"`{text}`" if "`" not in text else _plain(text)


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is: names of nodes and classes hold no markup, people's words may."""
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
