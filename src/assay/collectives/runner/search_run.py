"""Runs a search to its end: round by round, each result into the file, from where an interrupted run stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from assay.collectives.matchings import PairRound
from assay.collectives.pair_results import PairResult
from assay.collectives.runner.pair_command import PairTask
from assay.collectives.runner.pair_processes import PairRunner
from assay.collectives.runner.result_file import ResultFile
from assay.collectives.search import CollectiveSearch

ShowProgress = Callable[[str, int, int], None]
"""(round, done, total)."""


def run_search(
    search: CollectiveSearch,
    rails: Sequence[int],
    runner: PairRunner,
    file: ResultFile,
    results: Iterable[PairResult],
    show: ShowProgress,
) -> list[PairResult]:
    """Return all results, those of an earlier run included. An exception leaves the file with whole lines."""
    found = list(results)
    ended: set[str] = set()
    while planned := search.find_next_round(found, ended):
        done = {result.key for result in found}
        tasks = [task for task in list_tasks(planned, rails) if task.make_result("").key not in done]
        total = len(planned.pairs) * max(len(rails), 1)
        left = iter(range(total - len(tasks), total + 1))
        show(planned.name, next(left), total)

        def take(result: PairResult, left: Iterable[int] = left, name: str = planned.name, total: int = total) -> None:
            file.append(result)
            found.append(result)
            show(name, next(iter(left)), total)

        if tasks:
            runner.run(tasks, take)
        ended.add(planned.name)
    return found


def list_tasks(planned: PairRound, rails: Sequence[int]) -> list[PairTask]:
    """Return the runs of a round: one for each pair, or one for each pair and rail."""
    return [PairTask(planned.name, pair, rail) for pair in planned.pairs for rail in (rails or (None,))]
