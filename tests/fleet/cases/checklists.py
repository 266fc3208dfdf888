"""Checklists: the one code, wrong and right."""

from __future__ import annotations

from cases.case import Case

FILE = "specs/checklists.yaml"
STEPS = "{title: Look, steps: [Look], done: Looked}"


def checklist(state: str) -> dict[str, str | None]:
    return {FILE: f"kind: Checklists\nname: ours\nsources: [us]\nstates: {{{state}: {STEPS}}}\n"}


CASES: dict[str, Case] = {"ASY0210": Case(checklist("onbord"), checklist("onboard"), f"{FILE}:4:10")}
