"""What a policy answers to faults: each code, wrong and right."""

from __future__ import annotations

from cases.case import POLICY, Case, one

FILE = "specs/policy.yaml"
HOT = POLICY.replace("faults:\n", "faults:\n  hot: {classes: [gpu.hot], timing: record}\n")
IN_USE = "  busy: {in_use: true, timing: record}\n  hot: {classes: [gpu.hot], timing: immediate, to: onboard}\n  any"
CLIMB = POLICY.replace("timing: pending, to: onboard", "timing: pending")
RUNG = CLIMB.replace("rungs: {}", "rungs: {ticket: {to: onboard}}")
SPARE = POLICY.replace("edges:", "  spare: {summary: kept, certified_to: onboard}\nedges:\n  spare: [onboard]").replace(
    "production: [onboard]", "production: [onboard, spare]"
)
FROM_SPARE = "faults:\n  kept: {states: [spare], timing: immediate, to: production}\n"

CASES: dict[str, Case] = {
    "ASY0072": Case(one(FILE, HOT, "gpu.hot", "gpu.hut"), {FILE: HOT}, f"{FILE}:12:9"),
    "ASY0078": Case(
        one(FILE, POLICY, "  any", IN_USE),
        one(FILE, POLICY, "  any", IN_USE.replace("[gpu.hot],", "[gpu.hot], in_use: false,")),
        f"{FILE}:13:3",
    ),
    "ASY0079": Case(
        one(FILE, HOT, "  any", "  hotter: {classes: [gpu.hot], states: [production], timing: record}\n  any"),
        one(FILE, HOT, "  hot:", "  hotter: {classes: [gpu.hot], states: [production], timing: record}\n  hot:"),
        f"{FILE}:13:3",
    ),
    "ASY0087": Case({FILE: CLIMB}, {FILE: RUNG}, "specs/faults.yaml:5:48"),
    "ASY0089": Case(
        one(FILE, SPARE, "faults:\n", FROM_SPARE),
        one(FILE, SPARE, "faults:\n", FROM_SPARE.replace("to: production", "to: onboard")),
        f"{FILE}:14:10",
    ),
}
