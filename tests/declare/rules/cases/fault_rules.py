"""Fault rules of a policy and fault catalogues: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import CHECKS, FAULTS, POLICY, Case, replaced

POLICY_FILE = "specs/policy.yaml"
HOT = POLICY.replace("faults:\n", "faults:\n  hot: {classes: [gpu.hot], timing: record}\n")
IN_USE = "  busy: {in_use: true, timing: record}\n  hot: {classes: [gpu.hot], timing: immediate, to: onboard}\n  any"
CLIMB = POLICY.replace("timing: pending, to: onboard", "timing: pending")
RUNG = CLIMB.replace("rungs: {}", "rungs: {ticket: {to: onboard}}")
SPARE = POLICY.replace("edges:", "  spare: {summary: kept, certified_to: onboard}\nedges:\n  spare: [onboard]").replace(
    "production: [onboard]", "production: [onboard, spare]"
)
FROM_SPARE = "faults:\n  kept: {states: [spare], timing: immediate, to: production}\n"


CATALOG_FILE = "specs/faults.yaml"
SITE = """kind: FaultCatalog
name: site
extends: faults
sources: [us]
classes:
  gpu.hot: {severity: informational}
"""
TWICE = SITE.replace("extends: faults\n", "").replace(
    "{severity: informational}",
    "{summary: too hot, source: us, sel: {message: hot}, severity: informational, blame: hardware, remedy: none}",
)
BLAMED = "check: true, severity: degraded, blame: hardware"
ECHO = FAULTS.replace("check: true, ", "check: true, follows: {classes: [gpu.hot]}, ")

LOADS = "active: true, parts:"
PROVEN = FAULTS.replace("check: true,", "check: true, proof: [battery],")
CASES: dict[str, Case] = {
    "ASY0072": Case(replaced(POLICY_FILE, HOT, "gpu.hot", "gpu.hut"), {POLICY_FILE: HOT}, f"{POLICY_FILE}:12:9"),
    "ASY0078": Case(
        replaced(POLICY_FILE, POLICY, "  any", IN_USE),
        replaced(POLICY_FILE, POLICY, "  any", IN_USE.replace("[gpu.hot],", "[gpu.hot], in_use: false,")),
        f"{POLICY_FILE}:13:3",
    ),
    "ASY0079": Case(
        replaced(
            POLICY_FILE, HOT, "  any", "  hotter: {classes: [gpu.hot], states: [production], timing: record}\n  any"
        ),
        replaced(
            POLICY_FILE, HOT, "  hot:", "  hotter: {classes: [gpu.hot], states: [production], timing: record}\n  hot:"
        ),
        f"{POLICY_FILE}:13:3",
    ),
    "ASY0087": Case({POLICY_FILE: CLIMB}, {POLICY_FILE: RUNG}, "specs/faults.yaml:5:48"),
    "ASY0089": Case(
        replaced(POLICY_FILE, SPARE, "faults:\n", FROM_SPARE),
        replaced(POLICY_FILE, SPARE, "faults:\n", FROM_SPARE.replace("to: production", "to: onboard")),
        f"{POLICY_FILE}:14:10",
    ),
    "ASY0140": Case({"specs/site.yaml": TWICE}, {"specs/site.yaml": SITE}, "specs/site.yaml:5:3"),
    "ASY0141": Case(
        {CATALOG_FILE: FAULTS.replace(BLAMED, BLAMED.replace("hardware", "application"))},
        {CATALOG_FILE: FAULTS.replace(BLAMED, BLAMED.replace("hardware", "driver"))},
        f"{CATALOG_FILE}:7:96",
    ),
    "ASY0142": Case(
        replaced(CATALOG_FILE, ECHO, "[gpu.hot]", "[gpu.hut]"), {CATALOG_FILE: ECHO}, f"{CATALOG_FILE}:7:76"
    ),
    "ASY0284": Case(
        {CATALOG_FILE: PROVEN, "specs/checks.yaml": CHECKS.replace("phases:", f"{LOADS} [memory], phases:")},
        {CATALOG_FILE: PROVEN, "specs/checks.yaml": CHECKS.replace("phases:", f"{LOADS} [battery], phases:")},
        f"{CATALOG_FILE}:7:56",
    ),
}
