"""Formats a run as JUnit XML: a suite for each pool, a case for each outcome, or for each node if there are many.

Failures that are known or on trial become skipped cases, so that they fail no build.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from assay.model.outcome import Outcome, SuiteRun
from assay.model.text.lists import format_count
from assay.validate.results.outcome_lines import format_outcome, verdict_word
from assay.validate.results.run_summary import VERDICT_PHRASES, PlaceCounts, RunSummary

MAX_OUTCOME_CASES = 2000
"""Up to so many outcomes get a case each."""
MAX_NODE_LINES = 20
"""Lines in the case of one node; its counts are complete."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ELEMENT_OF_WORD = {"fail": "failure", "error": "error", "skip": "skipped", "known": "skipped", "trial": "skipped"}
TOTAL_OF_ELEMENT = {"failure": "failures", "error": "errors", "skipped": "skipped"}
JunitCase = tuple[str, str, float, str, str, str]
"""Class name, name, seconds, element ("" for a pass), its message, its text."""


def format_junit(summary: RunSummary) -> Iterator[str]:
    """Yield the document, with a case for each outcome, or for each node where there are many outcomes."""
    many = summary.counts.total() > MAX_OUTCOME_CASES
    suites = _node_suites(summary) if many else _outcome_suites(summary)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites name={_quoted(f'assay {summary.run.id}')}>"
    if summary.remark:  # without this, a killed run could look successful
        case = ("assay", "run", 0.0, "error", f"unreliable: {summary.remark}", "")
        yield from _suite(summary.run, "assay", Counter(["error"]), [_format_case(*case)])
    yield from suites
    yield "</testsuites>"


def escape_xml_text(text: str) -> str:
    r"""Return text with the characters that XML forbids written as `\x1b`."""
    return _FORBIDDEN.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _outcome_suites(summary: RunSummary) -> Iterator[str]:
    by_scope: dict[str, list[JunitCase]] = {}
    for outcome in summary.outcomes():
        by_scope.setdefault(outcome.subject.partition("/")[0], []).append(_make_outcome_case(outcome))
    for scope, cases in sorted(by_scope.items()):
        totals = Counter(element for *_, element, _, _ in cases)
        yield from _suite(summary.run, scope, totals, (_format_case(*case) for case in cases))


def _node_suites(summary: RunSummary) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for outcome in summary.problems():
        of_place = lines.setdefault(outcome.node or outcome.subject, [])
        if outcome.verdict != "skip" and len(of_place) < MAX_NODE_LINES:
            of_place.append(" ".join(format_outcome(outcome).split()))
    totals: dict[str, Counter[str]] = {}
    for place in summary.places():
        totals.setdefault(place.scope, Counter())[_element(place)] += 1
    for scope, places in groupby(summary.places(), lambda place: place.scope):
        cases = (_format_case(*_make_place_case(place, lines.get(place.name, []))) for place in places)
        yield from _suite(summary.run, scope, totals[scope], cases)


def _suite(run: SuiteRun, scope: str, totals: Counter[str], cases: Iterable[str]) -> Iterator[str]:
    counts = {"tests": totals.total()} | {name: totals[element] for element, name in TOTAL_OF_ELEMENT.items()}
    attributes = " ".join(f'{name}="{count}"' for name, count in counts.items())
    yield f'<testsuite name={_quoted(scope)} timestamp="{run.at[:19]}" {attributes}>'
    yield from cases
    yield "</testsuite>"


def _format_case(classname: str, name: str, seconds: float, element: str, message: str, text: str) -> str:
    head = f'<testcase classname={_quoted(classname)} name={_quoted(name)} time="{seconds:.6f}"'
    if not element:
        return f"{head}/>"
    body = f">{escape(escape_xml_text(text))}</{element}>" if text else "/>"
    return f"{head}><{element} message={_quoted(message)}{body}</testcase>"


def _make_outcome_case(outcome: Outcome) -> JunitCase:
    module, _, function = outcome.check.partition("::")
    word = verdict_word(outcome.verdict, outcome.known, observed=outcome.observed)
    excuse = {"known": f"known ({outcome.known}): ", "trial": "the check is on trial: "}.get(word, "")
    element = ELEMENT_OF_WORD.get(word, "")
    classname = module.removesuffix(".py").replace("/", ".")
    return classname, f"{function}[{outcome.subject}]", outcome.duration_s, element, excuse + outcome.reason, ""


def _make_place_case(place: PlaceCounts, lines: list[str]) -> JunitCase:
    counts = [f"{place.counts[verdict]} {word}" for verdict, word in VERDICT_PHRASES.items() if place.counts[verdict]]
    message = f"of {format_count(place.counts.total(), 'outcome')}: {', '.join(counts)}"
    return place.scope, place.name, 0.0, _element(place), message, "\n".join(lines)


def _element(place: PlaceCounts) -> str:
    for verdict in ("fail", "error"):
        if place.deciding[verdict]:
            return ELEMENT_OF_WORD[verdict]
    return "" if place.counts["pass"] else "skipped"


def _quoted(text: str) -> str:
    return quoteattr(escape_xml_text(text))
