"""Judges visits to idle nodes by the checks of the parts that ran.

A visit that a customer cut short proves nothing good: of its outcomes, only failures are recorded. A wrong result is
evidence, whenever the end came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from assay.act.ingest.suite_runs import judge_phase, write_run_history
from assay.act.loop.context import ControllerContext
from assay.act.schedules.idle_load import NodeLoadResult
from assay.act.schedules.idle_visits import list_checks_to_leave_out, list_parts
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog_and_gates import Phase
from assay.observe.evidence_store import EvidenceStore
from assay.validate.runs.run_validation import run_validation


def judge_loaded(
    context: ControllerContext, phase: Phase, loads: Sequence[NodeLoadResult], evidence: Path
) -> Iterator[RecordedOutcome]:
    """Judge loads that ended by themselves, and yield the outcomes. All are recorded."""
    for parts, names in _group_nodes({load.node: frozenset(load.active) for load in loads}).items():
        left_out = _deselect(context, parts, cut=False)
        result = judge_phase(context, names, phase, evidence, left_out)
        for outcome in result.stored.outcomes(nodes=names):
            yield RecordedOutcome(result.run.id, result.run.at, outcome)


def judge_cut(
    context: ControllerContext, phase: Phase, loads: Sequence[NodeLoadResult], store: EvidenceStore
) -> Iterator[RecordedOutcome]:
    """Judge what loads found before a customer cut them short; record and yield the failures."""
    computed = {load.node: parts for load in loads if (parts := list_parts(load.active))}
    groups = _group_nodes(computed)
    for load in loads:
        known = context.evidence.latest(load.node)
        channels = {**(known.channels if known else {}), "active": load.active}
        channels.pop("before", None)
        store.store_latest(EvidenceDocument(load.node, context.clock.now(), channels, context.ledger.head()))
    for parts, names in groups.items():
        result = run_validation(
            context.fleet,
            store.folder / "latest",
            nodes=names,
            phases=[phase],
            reports=context.reports,
            ledger=None,
            clock=context.clock,
            extra=_deselect(context, parts, cut=True),
        )
        failures = list(result.stored.outcomes(nodes=names, verdicts=["fail"]))
        if failures:
            context.ledger.record(result.run, failures, context.clock.now())
        yield from (RecordedOutcome(result.run.id, result.run.at, outcome) for outcome in failures)
    if groups:
        write_run_history(context)


def _group_nodes(parts_by_node: Mapping[str, frozenset[str]]) -> dict[frozenset[str], list[str]]:
    """Return the nodes by the parts to judge them by. Checks of a part that was asked for and is absent are errors."""
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for name, parts in parts_by_node.items():
        groups[parts].append(name)
    return dict(groups)


def _deselect(context: ControllerContext, parts: frozenset[str], *, cut: bool) -> list[str]:
    """Return pytest's arguments that leave out the checks which these parts cannot answer."""
    return [f"--deselect={check}" for check in list_checks_to_leave_out(context, parts, cut=cut)]
