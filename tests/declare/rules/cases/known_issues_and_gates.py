"""Known issues and gates: each code, wrong and right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.declare.rules.cases.case import POLICY, Case

GATES_WITH_SHARE = "kind: Gates\nname: gates\nsources: [us]\npools: {{any: {{success_percent: {}}}}}\n"
KNOWN_FILE = "specs/known-issues.yaml"
ENTRY = """  - issue: https://git.example/issues/{issue}
    match: {{check: "{check}", {more}}}
    reason: it is counted twice
    owner: us
    expires: {expires}
"""


def day(days: int) -> str:
    """Return the day in so many days."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def entry(issue: int = 1, check: str = "suites/test_heat.py::*", more: str = "node: n1", expires: str = "") -> str:
    return ENTRY.format(issue=issue, check=check, more=more, expires=expires or day(90))


def listed(*entries: str) -> dict[str, str | None]:
    return {KNOWN_FILE: "kind: KnownIssues\nname: known\nissues:\n" + "".join(entries)}


HEAT = "suites/test_heat.py::test_heat"
PROVED = POLICY.replace(
    "{summary: new, certified_to: production}",
    "{summary: new, requires: [{phase: production, fresh_hours: 1}], pass_to: production}",
)
GATES_FILE = "specs/gates.yaml"


def gates(pools: str) -> dict[str, str | None]:
    return {GATES_FILE: f"kind: Gates\nname: ours\nsources: [us]\npools: {{{pools}}}\n"}


OWN = "pool-a: {success_percent: 99}"

CASES: dict[str, Case] = {
    "ASY0170": Case(listed(entry(expires=day(0))), listed(entry(expires=day(1))), f"{KNOWN_FILE}:8:5"),
    "ASY0171": Case(listed(entry(expires=day(10))), listed(entry(expires=day(16))), f"{KNOWN_FILE}:8:5"),
    "ASY0172": Case(listed(entry(more="node: n9*")), listed(entry(more="subject: '*/gpu3'")), f"{KNOWN_FILE}:5:5"),
    "ASY0173": Case(listed(entry(check="*", more="pool: '**'")), listed(entry(check="*")), f"{KNOWN_FILE}:5:5"),
    "ASY0175": Case(listed(entry(1), entry(2)), listed(entry(1), entry(2, more="node: n2")), f"{KNOWN_FILE}:10:5"),
    "ASY0178": Case(listed(entry()), listed(entry(check=HEAT)), f"{KNOWN_FILE}:5:5"),
    "ASY0179": Case(listed(entry(expires=day(92))), listed(entry(expires=day(89))), f"{KNOWN_FILE}:8:5"),
    "ASY0182": Case(
        {**listed(entry(check=HEAT)), "specs/policy.yaml": PROVED},
        {**listed(entry(check=HEAT)), "specs/policy.yaml": f"{PROVED}excuses: {{admission: ['*']}}\n"},
        f"{KNOWN_FILE}:5:5",
    ),
    "ASY0180": Case(
        gates("pool-b: {success_percent: 99}"), gates(f"{OWN}, fabric: {{unknown_percent: 0}}"), f"{GATES_FILE}:4:9"
    ),
    "ASY0245": Case(
        {"specs/gates.yaml": GATES_WITH_SHARE.format(0.99)},
        {"specs/gates.yaml": GATES_WITH_SHARE.format(99)},
        "specs/gates.yaml:4:15",
    ),
}
