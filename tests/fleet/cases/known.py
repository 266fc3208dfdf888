"""Known issues: each code, wrong and right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cases.case import Case

FILE = "specs/known-issues.yaml"
ONE = """  - issue: https://git.example/issues/{issue}
    match: {{check: "{check}", {more}}}
    reason: it is counted twice
    owner: us
    expires: {expires}
"""


def day(days: int) -> str:
    """Return the day in so many days."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def entry(issue: int = 1, check: str = "suites/test_heat.py::*", more: str = "node: n1", expires: str = "") -> str:
    return ONE.format(issue=issue, check=check, more=more, expires=expires or day(90))


def listed(*entries: str) -> dict[str, str | None]:
    return {FILE: "kind: KnownIssues\nname: known\nissues:\n" + "".join(entries)}


CASES: dict[str, Case] = {
    "ASY0170": Case(listed(entry(expires=day(0))), listed(entry(expires=day(1))), f"{FILE}:8:5"),
    "ASY0171": Case(listed(entry(expires=day(10))), listed(entry(expires=day(16))), f"{FILE}:8:5"),
    "ASY0172": Case(listed(entry(more="node: n9*")), listed(entry(more="subject: '*/gpu3'")), f"{FILE}:5:5"),
    "ASY0173": Case(listed(entry(check="*", more="pool: '**'")), listed(entry(check="*")), f"{FILE}:5:5"),
    "ASY0174": Case(
        listed(entry(2), entry(1, more="node: n2")), listed(entry(1), entry(2, more="node: n2")), f"{FILE}:9:5"
    ),
    "ASY0175": Case(listed(entry(1), entry(2)), listed(entry(1), entry(2, more="node: n2")), f"{FILE}:10:5"),
}
