"""A plan for people at a terminal: one line when nothing changes, else a headline and short sections."""

from __future__ import annotations

from collections.abc import Iterator

from assay.plan.plan import Plan
from assay.plan.words import Section, headline, sections

MOST = 40


def as_text(plan: Plan) -> str:
    """Return the plan as text. Long sections are cut; JSON holds everything."""
    first = f"{plan.base} → {plan.head}: {headline(plan)}"
    told = sections(plan) if plan.changes or plan.refused else []
    return "\n".join([first, *(line for section in told for line in _laid_out(section))])


def _laid_out(section: Section) -> Iterator[str]:
    yield ""
    yield section.title
    for entry in section.lines[:MOST]:
        yield from (f"  {line}" for line in entry.split("\n"))
    if len(section.lines) > MOST:
        yield f"  and {len(section.lines) - MOST} more (`--format json` has them all)"
