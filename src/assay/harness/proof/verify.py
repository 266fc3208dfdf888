"""Proves every check that is asked for, in as many processes as are wanted, and says which are not proved and why."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatchcase

from assay.harness.declared import checks
from assay.harness.proof.prepare import Preparation
from assay.harness.proof.sitting import Seen, Sitting, sit
from assay.model.errors import Trouble
from assay.model.fleet import Fleet

Progress = Callable[[int, int], None]


def quiet(done: int, due: int) -> None:
    """Tell nobody how far it is."""


@dataclass(frozen=True, slots=True)
class Unproved:
    """A check that cannot be relied on. `case` is "" where the good recording, or the lack of a case, is meant."""

    check: str
    case: str
    why: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved: `checks` and how many of their cases; `unproved` is empty where all is well."""

    checks: tuple[str, ...]
    cases: int
    unproved: tuple[Unproved, ...]


def verify(fleet: Fleet, patterns: Sequence[str] = (), *, jobs: int = 0, progress: Progress = quiet) -> Proof:
    """Judge every check whose id fits one of `patterns` (none: every check) on all of its recordings.

    `jobs` processes share the work; with 0 it is done in this one, whose standard output and error are taken meanwhile.
    Raises Trouble where no check fits, or where the recordings cannot be read.
    """
    declared = [check.id for check in checks(fleet)]
    chosen = [check for check in declared if not patterns or any(_fits(check, one) for one in patterns)]
    if not chosen:
        raise Trouble(f"no declared check fits {' or '.join(patterns)}", fix="`assay suites list` names every check")
    prepared = Preparation(fleet, chosen)
    sittings = prepared.sittings()
    seen = [one for some in _sat(sittings, jobs, progress) for one in some]
    unproved = [
        *(Unproved(check, "", why) for check, why in prepared.unproved.items()),
        *([] if patterns else (Unproved(check, "", "recorded, but not declared") for check in prepared.strangers)),
        *_wrong(seen),
        *_never_well(chosen, seen, prepared.unproved),
    ]
    return Proof(tuple(chosen), sum(1 for one in seen if one.wanted.case), tuple(sorted(unproved, key=_place)))


def _fits(check: str, pattern: str) -> bool:
    return fnmatchcase(check, pattern) or fnmatchcase(check.rpartition("::")[2], pattern) or check == pattern


def _sat(sittings: Sequence[Sitting], jobs: int, progress: Progress) -> Iterator[list[Seen]]:
    """Yield what came of each sitting, the longest begun first; they share nothing but the fleet."""
    by_size = sorted(sittings, key=lambda one: len(one.laid) + len(one.wanted), reverse=True)
    progress(0, len(by_size))
    if not jobs:
        yield from map(sit, by_size)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=min(jobs, len(by_size)), mp_context=context) as pool:
        begun = [pool.submit(sit, one) for one in by_size]
        for done, one in enumerate(as_completed(begun), start=1):
            progress(done, len(by_size))
            yield one.result()


def _wrong(seen: Iterable[Seen]) -> Iterator[Unproved]:
    """Yield what did not come out as its recording says. The good recording may leave out what it does not support."""
    for one in seen:
        if one.as_wanted or (not one.wanted.case and one.verdict == "skip"):
            continue
        came = f"{one.verdict}: {one.reason}" if one.verdict else one.reason
        if one.wanted.case:
            want = f"must {one.wanted.verdict} and say {one.wanted.says!r}, but came to {came or 'nothing'}"
        else:
            want = f"must pass on the good recording ({one.wanted.subject}), but came to {came or 'nothing'}"
        yield Unproved(one.wanted.check, one.wanted.case, want)


def _never_well(chosen: Iterable[str], seen: Iterable[Seen], told: Iterable[str]) -> Iterator[Unproved]:
    """Yield the checks that pass on no good recording, of those of which nothing else is said."""
    well = [one for one in seen if not one.wanted.case]
    passed, other = {one.wanted.check for one in well if one.verdict == "pass"}, set(told)
    other |= {one.wanted.check for one in well if one.verdict not in ("pass", "skip")}
    for check in chosen:
        if check not in passed and check not in other:
            yield Unproved(check, "", "passes on no good recording: it skips, or there is nothing of its kind")


def _place(one: Unproved) -> tuple[str, str, str]:
    return (one.check, one.case, one.why)
