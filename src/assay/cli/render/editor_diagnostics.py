"""The mistakes in a fleet repository as editors and code scanners read them: one line each, or SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from assay.model.texts.printable_text import escape_line

if TYPE_CHECKING:
    from assay.fleet.repository_check import CheckReport
    from assay.fleet.validation_problems import FleetProblem

GCC_SEVERITIES = {"error": "error", "warning": "warning", "notice": "note"}
"""Our severities in the words of compilers, by which editors tell them apart; SARIF has the same words."""
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def format_check_editor(report: CheckReport) -> str:
    """Return every problem on one line, as GCC writes them: `file:line:column: error: message [code]`.

    Vim, Emacs and VS Code (`$gcc`) know this form. Alike problems are not folded: each marks its own line.
    """
    return "\n".join(map(_format_line, report.problems))


def format_check_sarif(report: CheckReport) -> str:
    """Return the report as one SARIF log, for code scanning of a forge and for SARIF viewers of editors."""
    from assay import __version__

    driver = {"name": "assay check", "version": __version__, "rules": list(_list_rules(report.problems))}
    results = [_make_result(problem) for problem in report.problems]
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _format_line(problem: FleetProblem) -> str:
    place = f"{escape_line(problem.file)}:{max(problem.line, 1)}:{max(problem.column, 1)}"
    return f"{place}: {GCC_SEVERITIES[problem.severity]}: {escape_line(_describe(problem))} [{problem.code}]"


def _describe(problem: FleetProblem) -> str:
    return f"{problem.message} → {problem.fix}" if problem.fix else problem.message


def _list_rules(problems: Iterable[FleetProblem]) -> Iterable[dict[str, Any]]:
    from assay.fleet.repository_check import load_rules

    known = load_rules()
    for code in sorted({problem.code for problem in problems}):
        rule = known.get(code)
        about = {"shortDescription": {"text": rule.title}, "fullDescription": {"text": rule.why}} if rule else {}
        yield {"id": code, **about}


def _make_result(problem: FleetProblem) -> dict[str, Any]:
    region = {"startLine": max(problem.line, 1), "startColumn": max(problem.column, 1)}
    place = {"artifactLocation": {"uri": quote(problem.file), "uriBaseId": "%SRCROOT%"}, "region": region}
    return {
        "ruleId": problem.code,
        "level": GCC_SEVERITIES[problem.severity],
        "message": {"text": _describe(problem)},
        "locations": [{"physicalLocation": place}],
    }
