"""Owners and their teams: each code, wrong and right."""

from __future__ import annotations

from tests.declare.rules.cases.case import NODE, Case

OWNED = {"specs/node.yaml": NODE + "owner: hardware\n"}
TEAMS = {"specs/owners.yaml": 'kind: CodeOwners\nname: owners\nteams: {hardware: ["@us/hardware"]}\n'}
LINES = "# Made by `assay specs codeowners` from the owners of the specs: change those, and run it again.\n"
MADE = LINES + "/specs/node.yaml @us/hardware\n"

CASES: dict[str, Case] = {
    "ASY0261": Case(
        {**TEAMS, "specs/node.yaml": NODE + "owner: hardwear\n"}, {**OWNED, **TEAMS}, "specs/node.yaml:18:1"
    ),
    "ASY0262": Case({**OWNED, **TEAMS, "CODEOWNERS": LINES}, {**OWNED, **TEAMS, "CODEOWNERS": MADE}, "CODEOWNERS"),
}
