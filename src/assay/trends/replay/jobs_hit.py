"""Which jobs met a fault: jobs that a file names, or jobs of an assumed size on every node that customers use."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from assay.model.specs.cost_assumptions import AssumedJob
from assay.model.specs.fault_catalog import FaultSeverity
from assay.trends.replay.exposure import JOB_SEVERITIES, EndedService, ExposedSpan, Exposure, NodeOpening


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs met a fault, by its severity, and how many others automation ended. Of assumed jobs: expected.

    `catastrophic_nodes`: the nodes of the jobs that met a catastrophic fault.
    """

    hit: Mapping[str, float]
    ended: float
    catastrophic_nodes: float


class JobLoad(Protocol):
    """The jobs of a replay."""

    def count(self, exposure: Exposure) -> JobCounts:
        """Return how many jobs met a fault, and how many automation ended."""
        ...

    def find_end(self, opening: NodeOpening, now: datetime) -> datetime | None:
        """Return when the last job that runs on a node now will end; None where none runs, or nobody knows."""
        ...

    @property
    def says_use(self) -> bool:
        """Whether the jobs say when a node is in use, and not the history's events."""
        ...


@dataclass(frozen=True)
class AssumedJobLoad:
    """One job after the other on every node: `job` is one of them.

    `history_says_use`: the history says of some node that it is in use. Jobs are then only where it says so.
    """

    job: AssumedJob
    history_says_use: bool = False
    says_use = False

    def count(self, exposure: Exposure) -> JobCounts:
        """Return expected numbers: the job at the beginning of an exposure, and one more each length of a job."""
        hit: dict[str, float] = dict.fromkeys(JOB_SEVERITIES, 0.0)
        for span in exposure.spans:
            if self._runs_jobs(span):
                starts = max(min(span.end, span.open_until) - span.begin, timedelta())
                hit[span.condition.severity] += float(span.is_first) + starts / timedelta(hours=self.job.hours)
        ended = [one for one in exposure.ended if self._runs_jobs(one) and one.condition.severity != "catastrophic"]
        return JobCounts(hit, float(len(ended)), hit["catastrophic"] * self.job.nodes)

    def find_end(self, opening: NodeOpening, now: datetime) -> datetime | None:  # noqa: ARG002
        """Return None: the history says when a node is in use."""
        return None

    def _runs_jobs(self, one: ExposedSpan | EndedService) -> bool:
        return one.condition.is_used or not self.history_says_use


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """One job of a file: when it began and ended, on which nodes."""

    start: datetime
    end: datetime
    nodes: tuple[str, ...]


class RecordedJobLoad:
    """The jobs of a file. A job that would have started on a closed node is taken to run elsewhere."""

    says_use = True

    def __init__(self, jobs: Sequence[RecordedJob]) -> None:
        self._jobs = sorted(jobs, key=lambda job: job.start)
        self._longest = max((job.end - job.start for job in jobs), default=timedelta())
        self._by_node: dict[str, list[int]] = defaultdict(list)
        for number, job in enumerate(self._jobs):
            for node in job.nodes:
                self._by_node[node].append(number)

    def count(self, exposure: Exposure) -> JobCounts:
        """Return exact numbers: every job once, with the worst that it met."""
        met: dict[int, FaultSeverity] = {}
        for severity in reversed(JOB_SEVERITIES):
            for span in exposure.spans:
                if span.condition.severity == severity:
                    met |= dict.fromkeys(self._find_running(span, span.begin, span.end), severity)
        ended = {job for one in exposure.ended for job in self._find_running(one, one.at, one.at)}
        hit: dict[str, float] = {
            severity: float(sum(one == severity for one in met.values())) for severity in JOB_SEVERITIES
        }
        nodes = sum(len(self._jobs[job].nodes) for job, severity in met.items() if severity == "catastrophic")
        return JobCounts(hit, float(sum(met.get(job) != "catastrophic" for job in ended)), float(nodes))

    def find_end(self, opening: NodeOpening, now: datetime) -> datetime | None:
        """Return when the last job that runs on a node now will end, None where none runs."""
        return max((self._jobs[job].end for job in self._find_running(opening, now, now)), default=None)

    def _find_running(self, opening: NodeOpening, begin: datetime, end: datetime) -> Iterator[int]:
        """Yield the jobs that ran at some moment from `begin` to `end`, and started while the node was open."""
        numbers = self._by_node.get(opening.node, [])
        first = bisect_left(numbers, begin - self._longest, key=lambda number: self._jobs[number].start)
        for number in numbers[first:]:
            job = self._jobs[number]
            if job.start > min(end, opening.open_until):
                return
            if job.end > begin and job.start >= opening.open_from:
                yield number
