"""Fault catalogues against each other and the policy: each code, wrong and right."""

from __future__ import annotations

from cases.case import FAULTS, Case, one

FILE = "specs/faults.yaml"
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

CASES: dict[str, Case] = {
    "ASY0140": Case({"specs/site.yaml": TWICE}, {"specs/site.yaml": SITE}, "specs/site.yaml:5:3"),
    "ASY0141": Case(
        {FILE: FAULTS.replace(BLAMED, BLAMED.replace("hardware", "application"))},
        {FILE: FAULTS.replace(BLAMED, BLAMED.replace("hardware", "driver"))},
        f"{FILE}:7:96",
    ),
    "ASY0142": Case(one(FILE, ECHO, "[gpu.hot]", "[gpu.hut]"), {FILE: ECHO}, f"{FILE}:7:76"),
}
