"""Runs a search to its end: round by round, each result into the file, from where an interrupted run stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.model.errors import AssayError
from assay.validate.collectives.group_results import GroupResult, GroupRound
from assay.validate.collectives.matchings import PairRound
from assay.validate.collectives.pair_processes import PairRunner
from assay.validate.collectives.pair_results import PairResult
from assay.validate.collectives.result_file import ResultFile
from assay.validate.collectives.staged_search import SearchResults, StagedSearch
from assay.validate.collectives.tasks import TaskResult, list_tasks

ShowProgress = Callable[[str, int, int], None]
"""(round, done, total)."""


@dataclass(frozen=True, slots=True)
class SearchRunners:
    """What runs pairs, nodes alone, and nodes together. A search without such a stage needs no runner for it."""

    pair: PairRunner
    alone: PairRunner | None = None
    together: PairRunner | None = None

    def choose(self, planned: PairRound | GroupRound) -> PairRunner:
        """Return the runner of a round. Raises AssayError if there is none."""
        if isinstance(planned, PairRound):
            return self.pair
        runner = self.alone if planned.name.startswith("G") else self.together
        if runner is None:
            raise AssayError(f"no command is declared for round {planned.name}", fix="name another result file")
        return runner


def run_search(
    search: StagedSearch,
    rails: Sequence[int],
    runners: SearchRunners,
    file: ResultFile,
    results: SearchResults,
    show: ShowProgress,
) -> SearchResults:
    """Return all results, those of an earlier run included. An exception leaves the file with whole lines."""
    pairs, groups = list(results.pairs), list(results.groups)
    ended: set[str] = set()
    while planned := search.find_next_round(SearchResults(pairs, groups), ended):
        tasks = list_tasks(planned, rails)
        known: set[object] = {*(result.key for result in pairs), *(result.key for result in groups)}
        left = [task for task in tasks if task.make_result("").key not in known]
        counts = iter(range(len(tasks) - len(left), len(tasks) + 1))
        show(planned.name, next(counts), len(tasks))

        def take(
            result: TaskResult, counts: object = counts, name: str = planned.name, total: int = len(tasks)
        ) -> None:
            file.append(result)
            if isinstance(result, GroupResult):
                groups.append(result)
            elif isinstance(result, PairResult):
                pairs.append(result)
            show(name, next(counts), total)  # type: ignore[call-overload]

        if left:
            runners.choose(planned).run(left, take)
        ended.add(planned.name)
    return SearchResults(pairs, groups)
