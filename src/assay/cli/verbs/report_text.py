"""The report of a search as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.validate.collectives.fabric_map import FabricPart
from assay.validate.collectives.group_judging import GroupObservation
from assay.validate.collectives.judging import PairObservation
from assay.validate.collectives.report import CollectivesReport, NamedPart, UndecidedCase

SHOWN_PAIRS = 8
SHOWN_PARTS = 12


def format_report(report: CollectivesReport) -> str:
    """Return the report, the named parts first."""
    return "\n".join(_list_lines(report))


def _list_lines(report: CollectivesReport) -> Iterator[str]:
    yield _summarize(report)
    yield from report.stages.list_lines()
    for named in report.named:
        yield from ("", *_describe_named(named))
    for case in report.undecided:
        yield from ("", *_describe_undecided(case))
    if report.transient:
        yield ""
        yield "bad once, good in every later pair:"
        yield from _list_pairs(report.transient)
    yield ""
    yield "exercised:"
    yield from (f"  {share}" for share in report.coverage)
    if any(share.kind == "uplink" for share in report.coverage):
        yield f"  routing: {report.routing}"
    yield from (f"  {count} of the pairs could not be judged: {why}" for why, count in report.unmeasured.items())
    if report.unchecked:
        yield f"  {report.unchecked} results were not checked: they may be wrong"


def _summarize(report: CollectivesReport) -> str:
    rounds = f"{report.pairs:,} pairs in {len(report.rounds)} rounds"
    found = f"{len(report.named)} named" if report.named else "nobody named"
    open_cases = f", {len(report.undecided)} could not be told" if report.undecided else ""
    return f"{rounds}: {found}{open_cases}"


def _describe_named(named: NamedPart) -> Iterator[str]:
    yield f"{named.part.kind} {named.part.name}: {named.symptom}; bad in {len(named.evidence)} of {named.tests} runs"
    yield from _list_pairs(named.evidence)


def _describe_undecided(case: UndecidedCase) -> Iterator[str]:
    yield f"could not tell: {_format_parts(case.suspects)}"
    yield f"  {case.reason}"
    yield from _list_pairs(case.evidence)


def _format_parts(parts: Sequence[FabricPart]) -> str:
    shown = ", ".join(f"{part.kind} {part.name}" for part in parts[:SHOWN_PARTS])
    return f"one of {shown}" + (f" and {len(parts) - SHOWN_PARTS} more" if len(parts) > SHOWN_PARTS else "")


def _list_pairs(evidence: Sequence[PairObservation | GroupObservation]) -> Iterator[str]:
    for one in evidence[:SHOWN_PAIRS]:
        yield f"  {one.round}  {one.label}: {one.why}"
    if len(evidence) > SHOWN_PAIRS:
        yield f"  and {len(evidence) - SHOWN_PAIRS} more"
