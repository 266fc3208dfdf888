"""The report of a search with all its stages: a node that fails alone is named as such, before what pairs show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assay.validate.collectives.coverage import measure_coverage
from assay.validate.collectives.fabric_map import FabricPart
from assay.validate.collectives.gate import GateFindings
from assay.validate.collectives.group_judging import observe_alone, observe_together, select_rounds
from assay.validate.collectives.judging import BY_SEVERITY
from assay.validate.collectives.report import CollectivesReport, NamedPart, build_report
from assay.validate.collectives.scale_search import ScaleFinding
from assay.validate.collectives.stage_findings import StageFindings
from assay.validate.collectives.staged_search import SearchResults, StagedSearch

ALONE = "alone"
"""How the symptom of a node that the gate names ends."""


def build_staged_report(search: StagedSearch, results: SearchResults) -> CollectivesReport:
    """Return the report of all results so far."""
    pairs = build_report(search.fabric, search.nodes, results.pairs, search.rule)
    if not results.groups and not search.stages.gate:
        return pairs
    stages = find_stages(search, results)
    coverage = measure_coverage(
        search.fabric, search.nodes, search.pair_search(results).observe(results.pairs), _list_measured(search, results)
    )
    rounds = dict.fromkeys([*(one.round for one in results.groups), *pairs.rounds])
    named = tuple(_name_alone(stages.gate)) if stages.gate else ()
    return replace(pairs, named=named + pairs.named, coverage=tuple(coverage), rounds=tuple(rounds), stages=stages)


def find_stages(search: StagedSearch, results: SearchResults) -> StageFindings:
    """Return what the stages beside the pairs found."""
    scale = search.ask_about_scale(results) if search.stages.whole != "no" else None
    return StageFindings(
        search.judge_gate(results) if search.stages.gate else None,
        search.judge_whole(results),
        search.is_over_early(results),
        scale if isinstance(scale, ScaleFinding) else None,
        search.list_blocks(search.list_survivors(results)) if scale else (),
        len(select_rounds(results.groups, "S")),
    )


def _name_alone(gate: GateFindings) -> Iterator[NamedPart]:
    for node, runs in gate.faulty.items():
        bad = tuple(one for one in runs if one.is_bad)
        words = " and ".join(verdict for verdict in BY_SEVERITY if any(one.verdict == verdict for one in bad))
        often = "" if len(bad) == len(runs) else ", now and then"
        yield NamedPart(FabricPart("node", node), f"{words} {ALONE}{often}", len(runs), bad)


def _list_measured(search: StagedSearch, results: SearchResults) -> set[str]:
    rule = search.stages.rule
    alone = observe_alone(select_rounds(results.groups, "G"), rule)
    together = observe_together([one for one in results.groups if one.round[:1] in "WS"], rule)
    return {node for one in (*alone, *together) if one.verdict != "unknown" or one.has_ended for node in one.nodes}
