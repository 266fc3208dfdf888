"""A run's results as JUnit XML: a suite for each pool, a case for each outcome, or, of many, for each node.

What is known or on trial fails no build: it is a skipped case. Written as it is read, but for what failed on each node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from assay.model.outcome import Outcome, SuiteRun
from assay.model.text_lists import format_count
from assay.results.outcome_lines import format_outcome, verdict_word
from assay.results.run_summary import VERDICT_PHRASES, PlaceCounts, RunSummary

MAX_OUTCOME_CASES = 2000
"""So many outcomes, or fewer, are a case each."""
MAX_NODE_LINES = 20
"""Of one node; the counts are of all."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ELEMENT_OF_WORD = {"fail": "failure", "error": "error", "skip": "skipped", "known": "skipped", "trial": "skipped"}
TOTAL_OF_ELEMENT = {"failure": "failures", "error": "errors", "skipped": "skipped"}
JunitCase = tuple[str, str, float, str, str, str]
"""Class name, name, seconds, element ("" for a pass), its message, its text."""


def format_junit(result: RunSummary) -> Iterator[str]:
    """Yield the document."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites name={_quoted(f'assay {result.run.id}')}>"
    if result.remark:  # else a run that was killed would look well
        case = ("assay", "run", 0.0, "error", f"not to be relied on: {result.remark}", "")
        yield from _suite(result.run, "assay", Counter(["error"]), [case])
    if result.counts.total() <= MAX_OUTCOME_CASES:
        outcomes = sorted(result.outcomes(), key=lambda one: _scope(one.subject))
        for scope, some in groupby(outcomes, lambda one: _scope(one.subject)):
            cases = [_of_outcome(one) for one in some]
            yield from _suite(result.run, scope, Counter(case[3] for case in cases), cases)
    else:
        yield from _nodes(result)
    yield "</testsuites>"


def escape_xml_text(text: str) -> str:
    r"""Return text that XML may hold: what it may not is written as `\x1b`."""
    return _FORBIDDEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _nodes(result: RunSummary) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for outcome in result.problems():
        told = lines.setdefault(outcome.node or outcome.subject, [])
        if outcome.verdict != "skip" and len(told) < MAX_NODE_LINES:
            told.append(" ".join(format_outcome(outcome).split()))
    totals: dict[str, Counter[str]] = {}
    for place in result.places():
        totals.setdefault(place.scope, Counter())[_element(place)] += 1
    for scope, some in groupby(result.places(), lambda place: place.scope):
        cases = (_of_place(place, lines.get(place.name, [])) for place in some)
        yield from _suite(result.run, scope, totals[scope], cases)


def _suite(run: SuiteRun, scope: str, totals: Counter[str], cases: Iterable[JunitCase]) -> Iterator[str]:
    counts = {"tests": totals.total()} | {name: totals[element] for element, name in TOTAL_OF_ELEMENT.items()}
    said = " ".join(f'{name}="{count}"' for name, count in counts.items())
    yield f'<testsuite name={_quoted(scope)} timestamp="{run.at[:19]}" {said}>'
    for case in cases:
        yield from _case(*case)
    yield "</testsuite>"


def _case(classname: str, name: str, seconds: float, element: str, message: str, text: str) -> Iterator[str]:
    head = f'<testcase classname={_quoted(classname)} name={_quoted(name)} time="{seconds:.6f}"'
    if not element:
        yield f"{head}/>"
        return
    body = f">{escape(escape_xml_text(text))}</{element}>" if text else "/>"
    yield f"{head}><{element} message={_quoted(message)}{body}</testcase>"


def _of_outcome(outcome: Outcome) -> JunitCase:
    module, _, function = outcome.check.partition("::")
    word = verdict_word(outcome.verdict, outcome.known, observed=outcome.observed)
    known = {"known": f"known ({outcome.known}): ", "trial": "the check is on trial: "}.get(word, "")
    element = ELEMENT_OF_WORD.get(word, "")
    classname = module.removesuffix(".py").replace("/", ".")
    return classname, f"{function}[{outcome.subject}]", outcome.duration_s, element, known + outcome.reason, ""


def _of_place(place: PlaceCounts, lines: list[str]) -> JunitCase:
    counts = [f"{place.counts[verdict]} {word}" for verdict, word in VERDICT_PHRASES.items() if place.counts[verdict]]
    said = f"of {format_count(place.counts.total(), 'outcome')}: {', '.join(counts)}"
    return place.scope, place.name, 0.0, _element(place), said, "\n".join(lines)


def _element(place: PlaceCounts) -> str:
    for verdict in ("fail", "error"):
        if place.deciding[verdict]:
            return ELEMENT_OF_WORD[verdict]
    return "" if place.counts["pass"] else "skipped"


def _scope(subject: str) -> str:
    return subject.partition("/")[0]


def _quoted(text: str) -> str:
    return quoteattr(escape_xml_text(text))
