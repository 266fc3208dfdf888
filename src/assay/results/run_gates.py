"""A run held to its gates: which bound is missed, where, and by how much."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.check_catalog_and_gates import ANY_POOL, Gates, PoolGate
from assay.model.text_lists import format_count
from assay.results.comparison.run_comparison import ChangeKind, compare_runs
from assay.results.store.reader import StoredRun
from assay.results.store.run_lookup import list_earlier_runs
from assay.results.store.run_manifest import ENDED_KEY
from assay.results.store.schema import VERDICTS, deciding_condition

GateKind = Literal["success", "unknown", "new_failures"]
NEW_FAILURE_KINDS: tuple[ChangeKind, ...] = ("new_failure", "unexcused")
MAX_NAMED_NEW_FAILURES = 3
"""So many new failures are named."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """A run held to one bound. `seen` and `bound` are per cent, or a count of new failures; None: nothing to tell by.

    `source` is the file and line of the bound. `pool` is "" where the whole run is meant.
    """

    gates: str
    pool: str
    what: GateKind
    bound: float
    seen: float | None
    holds: bool
    source: str
    says: str

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class GateReport:
    """A run held to every bound; `before` is the run whose failures are not new, "" where there is none."""

    run: str
    before: str
    bounds: tuple[GateResult, ...]

    @property
    def holds(self) -> bool:
        """Whether no bound is missed."""
        return all(one.holds for one in self.bounds)


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The outcomes of a pool that decide: passed, failed, and not to be judged."""

    passed: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def decided(self) -> int:
        """How many there are."""
        return self.passed + self.failed + self.unknown


_COUNTS = f"""
SELECT substr(s.name, 1, instr(s.name, '/') - 1), sum(o.verdict = {VERDICTS.index("pass")}),
  sum(o.verdict = {VERDICTS.index("fail")}), sum(o.verdict = {VERDICTS.index("error")})
FROM outcome o JOIN subject s ON s.id = o.subject WHERE {deciding_condition("o")} GROUP BY 1
"""


def check_gates(fleet: Fleet, gates: Sequence[Gates], run: Path, runs: Sequence[Path]) -> GateReport:
    """Hold the run to every bound of `gates`; `runs` are all there are, oldest first.

    Raises AssayError for what is no run, or has not ended.
    """
    with StoredRun.open(run) as stored:
        if ENDED_KEY not in stored.about:
            fix = f"wait for it; if it was killed, `assay validate --resume {run.parent.name}` goes on with it"
            raise AssayError(f"the run {run.parent.name} has not ended", fix=fix)
        counts = {pool: PoolCounts(*numbers) for pool, *numbers in stored.connection.execute(_COUNTS)}
        asked = {fleet.nodes[node].pool for node in stored.run.nodes if node in fleet.nodes}
    pools = {pool: counts.get(pool, PoolCounts()) for pool in sorted({*counts, *asked})}
    before = find_previous_run(run, runs)
    bounds = [
        held
        for one in gates
        for held in (*_check_pools(fleet, one, pools), *_check_new_failures(fleet, one, before, run))
    ]
    return GateReport(run.parent.name, before.parent.name if before else "", tuple(bounds))


def find_previous_run(run: Path, runs: Sequence[Path]) -> Path | None:
    """Return the last run before this one that ended and was asked for the same phases and nodes, None for none."""
    with StoredRun.open(run) as stored:
        asked = _selection(stored)
    for other in reversed(list_earlier_runs(runs, run)):
        with (
            suppress(AssayError, sqlite3.DatabaseError),
            StoredRun.open(other) as stored,
        ):  # a damaged one is no run to go by
            if ENDED_KEY in stored.about and _selection(stored) == asked:
                return other
    return None


def _selection(stored: StoredRun) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(stored.run.phases), frozenset(stored.run.nodes)


def _check_pools(fleet: Fleet, gates: Gates, pools: Mapping[str, PoolCounts]) -> Iterator[GateResult]:
    for pool, counts in pools.items():
        least, named = _bound(gates, pool, "success_percent")
        if least is not None:
            yield _check_success(gates, pool, counts, least, _source(fleet, gates, named, "success_percent"))
        most, named = _bound(gates, pool, "unknown_percent")
        if most is not None:
            yield _check_unknown(gates, pool, counts, most, _source(fleet, gates, named, "unknown_percent"))


def _bound(gates: Gates, pool: str, field: str) -> tuple[float | None, str]:
    """Return a bound of a pool and the entry that says it: its own, or that of any."""
    for name in (pool, ANY_POOL):
        value: float | None = getattr(gates.pools.get(name, PoolGate.model_construct()), field)
        if value is not None:
            return value, name
    return None, ""


def _check_success(gates: Gates, pool: str, counts: PoolCounts, least: float, source: str) -> GateResult:
    if not counts.decided:
        return GateResult(
            gates.name, pool, "success", least, None, holds=False, source=source, says=_format_nothing_decided(pool)
        )
    seen = 100 * counts.passed / counts.decided
    said = (
        f"{pool}: {_percent(seen)} of {format_count(counts.decided, 'outcome')} passed, at least {least:g} % is asked"
    )
    holds = counts.passed * 100 >= least * counts.decided
    return GateResult(
        gates.name, pool, "success", least, seen, holds, source, said + _format_shortfall(least - seen, holds=holds)
    )


def _check_unknown(gates: Gates, pool: str, counts: PoolCounts, most: float, source: str) -> GateResult:
    if not counts.decided:
        return GateResult(
            gates.name, pool, "unknown", most, None, holds=False, source=source, says=_format_nothing_decided(pool)
        )
    seen = 100 * counts.unknown / counts.decided
    of = format_count(counts.decided, "outcome")
    said = f"{pool}: {_percent(seen)} of {of} could not be judged, at most {most:g} % is allowed"
    holds = counts.unknown * 100 <= most * counts.decided
    return GateResult(
        gates.name, pool, "unknown", most, seen, holds, source, said + _format_shortfall(seen - most, holds=holds)
    )


def _check_new_failures(fleet: Fleet, gates: Gates, before: Path | None, run: Path) -> Iterator[GateResult]:
    """Yield how many failures are new since the last run of the same selection."""
    if gates.new_failures is None:
        return
    most, source = gates.new_failures, _source(fleet, gates, "", "new_failures")
    if before is None:
        said = "there is no earlier run of this selection, so no failure is new"
        yield GateResult(gates.name, "", "new_failures", most, None, holds=True, source=source, says=said)
        return
    with compare_runs(before, run) as found:
        new = [one for one in found.changes(*NEW_FAILURE_KINDS) if one.decides]
    named = "; ".join(
        f"{one.subject} {one.check.rpartition('::')[2]}: {one.reason}" for one in new[:MAX_NAMED_NEW_FAILURES]
    )
    more = f"; and {len(new) - MAX_NAMED_NEW_FAILURES} more" if len(new) > MAX_NAMED_NEW_FAILURES else ""
    said = f"{format_count(len(new), 'new failure')} since {before.parent.name}, at most {most} allowed"
    holds = len(new) <= most
    shown = f": {named}{more}" if new and not holds else ""
    yield GateResult(gates.name, "", "new_failures", most, len(new), holds, source, said + shown)


def _source(fleet: Fleet, gates: Gates, pool: str, field: str) -> str:
    path = f"pools.{pool}.{field}" if pool else field
    return fleet.lines.get((f"Gates/{gates.name}", path), "")


def _format_nothing_decided(pool: str) -> str:
    return f"{pool}: nothing was decided, which is no success"


def _format_shortfall(by: float, *, holds: bool) -> str:
    return "" if holds else f": missed by {_percent(by).removesuffix(' %')} points"


def _percent(share: float) -> str:
    """Return a share to two digits, never rounded onto 0 or 100 unless it is that."""
    rounded = min(max(share, 0.01), 99.99) if 0 < share < 100 else share
    return f"{rounded:.2f}".rstrip("0").rstrip(".") + " %"
