"""A run's results as JUnit XML: a suite for each pool, a case for each outcome, or, of many, for each node.

What is known or on trial fails no build: it is a skipped case. Written as it is read, but for what failed on each node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from assay.harness.results.lines import of_outcome, sign
from assay.harness.results.result import WORDS, Place, Result
from assay.model.outcome import Outcome, Run
from assay.model.spans import counted

MOST_CASES = 2000
"""So many outcomes, or fewer, are a case each."""
MOST_LINES = 20
"""Of one node; the counts are of all."""
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ELEMENTS = {"fail": "failure", "error": "error", "skip": "skipped", "known": "skipped", "trial": "skipped"}
TOTALS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
Case = tuple[str, str, float, str, str, str]
"""Class name, name, seconds, element ("" for a pass), its message, its text."""


def junit(result: Result) -> Iterator[str]:
    """Yield the document."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites name={_quoted(f'assay {result.run.id}')}>"
    if result.remark:  # else a run that was killed would look well
        case = ("assay", "run", 0.0, "error", f"not to be relied on: {result.remark}", "")
        yield from _suite(result.run, "assay", Counter(["error"]), [case])
    if result.counts.total() <= MOST_CASES:
        outcomes = sorted(result.outcomes(), key=lambda one: _scope(one.subject))
        for scope, some in groupby(outcomes, lambda one: _scope(one.subject)):
            cases = [_of_outcome(one) for one in some]
            yield from _suite(result.run, scope, Counter(case[3] for case in cases), cases)
    else:
        yield from _nodes(result)
    yield "</testsuites>"


def clean(text: str) -> str:
    r"""Return text that XML may hold: what it may not is written as `\x1b`."""
    return _FORBIDDEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _nodes(result: Result) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for outcome in result.wrong():
        told = lines.setdefault(outcome.node or outcome.subject, [])
        if outcome.verdict != "skip" and len(told) < MOST_LINES:
            told.append(" ".join(of_outcome(outcome).split()))
    totals: dict[str, Counter[str]] = {}
    for place in result.places():
        totals.setdefault(place.scope, Counter())[_element(place)] += 1
    for scope, some in groupby(result.places(), lambda place: place.scope):
        cases = (_of_place(place, lines.get(place.name, [])) for place in some)
        yield from _suite(result.run, scope, totals[scope], cases)


def _suite(run: Run, scope: str, totals: Counter[str], cases: Iterable[Case]) -> Iterator[str]:
    counts = {"tests": totals.total()} | {name: totals[element] for element, name in TOTALS.items()}
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
    body = f">{escape(clean(text))}</{element}>" if text else "/>"
    yield f"{head}><{element} message={_quoted(message)}{body}</testcase>"


def _of_outcome(outcome: Outcome) -> Case:
    module, _, function = outcome.check.partition("::")
    word = sign(outcome.verdict, outcome.known, observed=outcome.observed)
    known = {"known": f"known ({outcome.known}): ", "trial": "the check is on trial: "}.get(word, "")
    element = ELEMENTS.get(word, "")
    classname = module.removesuffix(".py").replace("/", ".")
    return classname, f"{function}[{outcome.subject}]", outcome.duration_s, element, known + outcome.reason, ""


def _of_place(place: Place, lines: list[str]) -> Case:
    counts = [f"{place.counts[verdict]} {word}" for verdict, word in WORDS.items() if place.counts[verdict]]
    said = f"of {counted(place.counts.total(), 'outcome')}: {', '.join(counts)}"
    return place.scope, place.name, 0.0, _element(place), said, "\n".join(lines)


def _element(place: Place) -> str:
    for verdict in ("fail", "error"):
        if place.deciding[verdict]:
            return ELEMENTS[verdict]
    return "" if place.counts["pass"] else "skipped"


def _scope(subject: str) -> str:
    return subject.partition("/")[0]


def _quoted(text: str) -> str:
    return quoteattr(clean(text))
