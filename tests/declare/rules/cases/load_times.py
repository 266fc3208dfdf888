"""Loads that do not fit into their time: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import POLICY, Case

SCHEDULES, DAY, POLICY_FILE = "specs/schedules.yaml", "specs/day.yaml", "specs/policy.yaml"


def visit(parts: str, more: str = "") -> dict[str, str | None]:
    """Return a schedule whose visits last 30 minutes; each part takes 10."""
    how = f"phase: production, within_minutes: 30, parts: [{parts}], seconds: 600, at_once: 1, told_after: 2{more}"
    line = f"  idle: {{does: idle-verification, cron: 0 * * * *, verification: {{{how}}}}}"
    return {SCHEDULES: f"kind: Schedules\nname: ours\nsources: [us]\nschedules:\n{line}\n"}


def phase(hours: float, more: str = "") -> dict[str, str | None]:
    """Return a burn-in of one phase, in which two parts take an hour each."""
    line = f"  - {{name: heat, hours: {hours}, parts: [gpu_burn, battery], unit_seconds: 3600{more}}}"
    return {DAY: f"kind: BurnIn\nname: day\nsources: [us]\nphases:\n{line}\n"}


def load(part: str, more: str = "") -> dict[str, str | None]:
    """Return a policy with a load in its state onboard, which may take half an hour."""
    state = f"deadline: {{hours: 0.5}}, requires: [{{phase: production, parts: [{part}], fresh_hours: 1{more}}}], "
    return {POLICY_FILE: POLICY.replace("certified_to", f"{state}certified_to", 1)}


CYCLES = ", cycles: {on_minutes: 10, off_minutes: 20}"

CASES: dict[str, Case] = {
    "ASY0207": Case(
        visit("memory, gpu_burn, battery, training"), visit("memory, gpu_burn, battery"), f"{SCHEDULES}:5:86"
    ),
    "ASY0315": Case(phase(3, CYCLES), phase(6, CYCLES), f"{DAY}:5:18"),
    "ASY0316": Case(
        load("dcgm_diag_4", ", active: true"), load("dcgm_diag_3", ", active: true"), f"{POLICY_FILE}:6:82"
    ),
}
