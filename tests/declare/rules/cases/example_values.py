"""Examples that stand in for a site's own values."""

from __future__ import annotations

from tests.declare.rules.cases.case import BUNDLE, Case

FILE = "specs/bundle.yaml"

CASES: dict[str, Case] = {
    "ASY0400": Case(
        {FILE: BUNDLE.replace("name: bundle\n", "name: bundle\nstands_in: name your own\n")},
        {FILE: BUNDLE.replace("name: bundle\n", "name: bundle\ndescription: as on example.com\n")},
        "specs/bundle.yaml:4:1",
    ),
}
