"""Verifies checks against their recordings, in several processes, and reports which are not proved and why."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatchcase

from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.validate.recording_session import ObservedVerdict, RecordingSession, run_recording_session
from assay.validate.runs.declared_outcomes import list_declared_checks
from assay.validate.verification_plan import VerificationPlan

VerificationProgress = Callable[[int, int], None]


def ignore_progress(done: int, due: int) -> None:
    """Take the progress and do nothing."""


@dataclass(frozen=True, slots=True)
class UnprovedCheck:
    """A check that cannot be relied on. `case` is "" for the good recording, and where there is no case."""

    check: str
    case: str
    why: str


@dataclass(frozen=True, slots=True)
class SuiteProof:
    """The verified checks, the number of their cases, and what is not proved; empty if every check is."""

    checks: tuple[str, ...]
    cases: int
    unproved: tuple[UnprovedCheck, ...]


def verify_checks(
    fleet: Fleet, patterns: Sequence[str] = (), *, jobs: int = 0, progress: VerificationProgress = ignore_progress
) -> SuiteProof:
    """Judge every check whose id matches one of `patterns` (none: every check) on all of its recordings.

    `jobs` processes share the work; with 0 this process does it, and captures its standard output and error meanwhile.
    Raises AssayError where no check matches, or where the recordings cannot be read.
    """
    declared = [check.id for check in list_declared_checks(fleet)]
    chosen = [check for check in declared if not patterns or any(_fits(check, one) for one in patterns)]
    if not chosen:
        raise AssayError(f"no declared check fits {' or '.join(patterns)}", fix="`assay suites list` names every check")
    prepared = VerificationPlan(fleet, chosen)
    sittings = prepared.make_sessions()
    seen = [one for some in _run_sessions(sittings, jobs, progress) for one in some]
    unproved = [
        *(UnprovedCheck(check, "", why) for check, why in prepared.unproved.items()),
        *(
            []
            if patterns
            else (UnprovedCheck(check, "", "recorded, but not declared") for check in prepared.undeclared_checks)
        ),
        *_find_unexpected(seen),
        *_find_never_passing(chosen, seen, prepared.unproved),
    ]
    return SuiteProof(
        tuple(chosen), sum(1 for one in seen if one.expected.case), tuple(sorted(unproved, key=_sort_key))
    )


def _fits(check: str, pattern: str) -> bool:
    return fnmatchcase(check, pattern) or fnmatchcase(check.rpartition("::")[2], pattern) or check == pattern


def _run_sessions(
    sittings: Sequence[RecordingSession], jobs: int, progress: VerificationProgress
) -> Iterator[list[ObservedVerdict]]:
    """Yield the verdicts of each session, started with the largest. Sessions share nothing but the fleet."""
    by_size = sorted(sittings, key=lambda one: len(one.documents) + len(one.expected), reverse=True)
    progress(0, len(by_size))
    if not jobs or not by_size:
        yield from map(run_recording_session, by_size)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=min(jobs, len(by_size)), mp_context=context) as pool:
        begun = [pool.submit(run_recording_session, one) for one in by_size]
        for done, one in enumerate(as_completed(begun), start=1):
            progress(done, len(by_size))
            yield one.result()


def _find_unexpected(seen: Iterable[ObservedVerdict]) -> Iterator[UnprovedCheck]:
    """Yield verdicts that differ from the expected ones. On a good recording, a check may also skip."""
    for one in seen:
        if one.is_as_expected or (not one.expected.case and one.verdict == "skip"):
            continue
        came = f"{one.verdict}: {one.reason}" if one.verdict else one.reason
        if one.expected.case:
            want = f"must {one.expected.verdict} and say {one.expected.says!r}, but came to {came or 'nothing'}"
        else:
            want = f"must pass on the good recording ({one.expected.subject}), but came to {came or 'nothing'}"
        yield UnprovedCheck(one.expected.check, one.expected.case, want)


def _find_never_passing(
    chosen: Iterable[str], seen: Iterable[ObservedVerdict], told: Iterable[str]
) -> Iterator[UnprovedCheck]:
    """Yield the checks that pass on no good recording, without those that have another problem."""
    well = [one for one in seen if not one.expected.case]
    passed, other = {one.expected.check for one in well if one.verdict == "pass"}, set(told)
    other |= {one.expected.check for one in well if one.verdict not in ("pass", "skip")}
    for check in chosen:
        if check not in passed and check not in other:
            yield UnprovedCheck(check, "", "passes on no good recording: it skips, or there is nothing of its kind")


def _sort_key(one: UnprovedCheck) -> tuple[str, str, str]:
    return (one.check, one.case, one.why)
