"""Checks a run against its gates: which bound it misses, in which pool, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.schema import deciding_condition
from assay.model.errors import AssayError
from assay.model.facts import fact, frozen
from assay.model.fleet import Fleet
from assay.model.outcome import VERDICTS
from assay.model.specs.check_catalog import ANY_POOL, Gates, PoolGate
from assay.model.text.lists import format_count, format_percent
from assay.validate.results.paired_runs import list_earlier_runs
from assay.validate.results.run_comparison import ChangeKind, RunComparison
from assay.validate.results.run_summary import RunSummary

GateKind = Literal["success", "unknown", "new_failures", "reliable"]
NEW_FAILURE_KINDS: tuple[ChangeKind, ...] = ("new_failure", "unexcused")
MAX_NAMED_NEW_FAILURES = 3


@frozen
class GateResult:
    """A run and one bound. `seen` and `bound` are percentages, or counts of new failures; None: there is no value.

    `source` is the file and line of the bound. `pool` is "" for the whole run. `says` is one line for people.
    """

    gates: str
    """The document of the kind Gates that has the bound."""
    pool: str
    what: GateKind
    """What is bounded: passes (success), errors (unknown), new failures, or whether the run is reliable."""
    bound: float
    seen: float | None
    holds: bool
    """Whether the bound is kept."""
    source: str
    says: str


@fact
class GateReport:
    """Whether a run meets the fleet's gates."""

    run: str
    """The id of the run."""
    before: str
    """The run whose failures are not new; "" if there is none."""
    holds: bool
    """Whether every bound is kept; else the exit code is 1."""
    bounds: tuple[GateResult, ...]
    """The bounds."""


@frozen
class PoolCounts:
    """The outcomes of a pool that nothing excuses, without skips: passed, failed, and those that are errors."""

    passed: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def decided(self) -> int:
        """Their number."""
        return self.passed + self.failed + self.unknown


_COUNTS = f"""
SELECT substr(s.name, 1, instr(s.name, '/') - 1), sum(o.verdict = {VERDICTS.index("pass")}),
  sum(o.verdict = {VERDICTS.index("fail")}), sum(o.verdict = {VERDICTS.index("error")})
FROM outcome o JOIN subject s ON s.id = o.subject WHERE {deciding_condition("o")} GROUP BY 1
"""


def check_gates(
    fleet: Fleet, gates: Sequence[Gates], run: Path, runs: Sequence[Path], now: datetime | None = None
) -> GateReport:
    """Check a run against every bound of `gates`. `runs` are all runs, oldest first.

    With `now`, a run whose evidence is too old then, or in which all was skipped, misses a bound of each document.

    Raises AssayError for a file that is no run, and for a run that has not ended.
    """
    with StoredRun.open_whole(run) as stored:
        if not stored.has_ended:
            fix = f"wait for it; if it was killed, resume it: assay validate --resume {run.parent.name}"
            raise AssayError(f"the run {run.parent.name} has not ended", fix=fix)
        objection = RunSummary(stored, now=now).remark if now else ""
        counts = {pool: PoolCounts(*numbers) for pool, *numbers in stored.connection.execute(_COUNTS)}
        judged_pools = {fleet.nodes[node].pool for node in stored.run.nodes if node in fleet.nodes}
    pools = {pool: counts.get(pool, PoolCounts()) for pool in sorted({*counts, *judged_pools})}
    before = find_previous_run(run, runs)
    results: list[GateResult] = []
    for document in gates:
        if objection:  # the run says nothing of the fleet as it is now
            says = f"the run cannot be relied on: {objection}"
            results.append(GateResult(document.name, "", "reliable", 0, None, False, "", says))
        results += _check_pools(fleet, document, pools)
        results += _check_new_failures(fleet, document, before, run)
    holds = all(result.holds for result in results)
    return GateReport(run.parent.name, before.parent.name if before else "", holds, tuple(results))


def find_previous_run(run: Path, runs: Sequence[Path]) -> Path | None:
    """Return the last ended run before this one with the same phases and nodes, None where there is none."""
    with StoredRun.open(run) as stored:
        selection = _selection(stored)
    for earlier in reversed(list_earlier_runs(runs, run)):
        # a damaged run is passed over
        with suppress(AssayError), StoredRun.open_whole(earlier) as stored:
            if stored.has_ended and _selection(stored) == selection:
                return earlier
    return None


def _selection(stored: StoredRun) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(stored.run.phases), frozenset(stored.run.nodes)


def _check_pools(fleet: Fleet, gates: Gates, pools: Mapping[str, PoolCounts]) -> Iterator[GateResult]:
    for pool, counts in pools.items():
        least, entry = _find_bound(gates, pool, "success_percent")
        if least is not None:
            yield _check_success(gates, pool, counts, least, _source(fleet, gates, entry, "success_percent"))
        most, entry = _find_bound(gates, pool, "unknown_percent")
        if most is not None:
            yield _check_unknown(gates, pool, counts, most, _source(fleet, gates, entry, "unknown_percent"))


def _find_bound(gates: Gates, pool: str, field: str) -> tuple[float | None, str]:
    """Return a bound of a pool and the name of its entry: the pool's own, or the one for any pool."""
    for name in (pool, ANY_POOL):
        value: float | None = getattr(gates.pools.get(name, PoolGate.model_construct()), field)
        if value is not None:
            return value, name
    return None, ""


def _check_success(gates: Gates, pool: str, counts: PoolCounts, least: float, source: str) -> GateResult:
    if not counts.decided:
        return GateResult(gates.name, pool, "success", least, None, False, source, _format_nothing_decided(pool))
    seen = 100 * counts.passed / counts.decided
    total = format_count(counts.decided, "outcome")
    holds = counts.passed * 100 >= least * counts.decided
    says = f"{pool}: {format_percent(seen / 100)} of {total} passed, at least {least:g} % is required"
    says += _format_shortfall(least - seen, holds=holds)
    return GateResult(gates.name, pool, "success", least, seen, holds, source, says)


def _check_unknown(gates: Gates, pool: str, counts: PoolCounts, most: float, source: str) -> GateResult:
    if not counts.decided:
        return GateResult(gates.name, pool, "unknown", most, None, False, source, _format_nothing_decided(pool))
    seen = 100 * counts.unknown / counts.decided
    total = format_count(counts.decided, "outcome")
    holds = counts.unknown * 100 <= most * counts.decided
    says = f"{pool}: {format_percent(seen / 100)} of {total} could not be judged, at most {most:g} % is allowed"
    says += _format_shortfall(seen - most, holds=holds)
    return GateResult(gates.name, pool, "unknown", most, seen, holds, source, says)


def _check_new_failures(fleet: Fleet, gates: Gates, before: Path | None, run: Path) -> Iterator[GateResult]:
    """Yield the result for the bound of new failures since the last run of the same selection, if there is a bound."""
    if gates.new_failures is None:
        return
    most, source = gates.new_failures, _source(fleet, gates, "", "new_failures")
    if before is None:
        says = "there is no earlier run of this selection, so no failure is new"
        yield GateResult(gates.name, "", "new_failures", most, None, True, source, says)
        return
    with RunComparison(before, run) as comparison:
        new = [change for change in comparison.changes(*NEW_FAILURE_KINDS) if change.decides]
    holds = len(new) <= most
    says = f"{format_count(len(new), 'new failure')} since {before.parent.name}, at most {most} allowed"
    if not holds:
        shown = new[:MAX_NAMED_NEW_FAILURES]
        more = f"; and {len(new) - len(shown)} more" if len(new) > len(shown) else ""
        names = (f"{change.subject} {change.check.rpartition('::')[2]}: {change.reason}" for change in shown)
        says += f": {'; '.join(names)}{more}"
    yield GateResult(gates.name, "", "new_failures", most, len(new), holds, source, says)


def _source(fleet: Fleet, gates: Gates, pool: str, field: str) -> str:
    path = f"pools.{pool}.{field}" if pool else field
    return fleet.lines.get((f"Gates/{gates.name}", path), "")


def _format_nothing_decided(pool: str) -> str:
    return f"{pool}: no outcome passed, failed or was an error, which is no success"


def _format_shortfall(by: float, *, holds: bool) -> str:
    return "" if holds else f": missed by {format_percent(by / 100).removesuffix(' %')} points"
