"""Compares training with golden digests, step by step, and looks for losses that cannot be right; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.model.text.text_lists import format_count, format_list
from assay.validate.active.training_run import StepSeries, TrainingRun
from assay.validate.active.unit_results import Digest, LoadUnit, UnitName

WORDS = {"loss": "loss", "own": "gradients", "": "state"}


@dataclass(frozen=True, slots=True)
class StepDifference:
    """What differs from the golden digest at one step: `what` of these ranks, with what they have."""

    unit: LoadUnit
    what: str
    expected: str
    seen: Mapping[int, Digest]

    def describe(self, names: Mapping[int, str]) -> str:
        """Return it in one line. `names` of GPUs are by rank."""
        seed, _, step = self.unit.seed.rpartition(".")
        rank, digest = next(iter(self.seen.items()))
        ranks = format_list((names.get(one, f"rank {one}") for one in self.seen), 8)
        shown = f"{digest or 'no number'}, not {self.expected}"
        return f"{self.unit.test}, seed {seed}, step {step}: {self.what} of {ranks} ({shown} on rank {rank})"


@dataclass(frozen=True, slots=True)
class TrainingVerdict:
    """How training compares with golden digests. `steps`: how many were compared; `wrong`: how many of them differ.

    `first`: the first difference, None if there is none. `began`: the ranks that it began with; none where that cannot
    be told, since half of the ranks or more differ.
    """

    steps: int
    wrong: int
    first: StepDifference | None
    ranks: int

    @property
    def began(self) -> tuple[int, ...]:
        """The ranks whose numbers were wrong first."""
        seen = tuple(self.first.seen) if self.first else ()
        return seen if 2 * len(seen) < self.ranks else ()

    def describe_untold(self, names: Mapping[int, str]) -> str:
        """Return why no rank is named although something differs, "" if one is, or if nothing differs."""
        if self.first is None or self.began:
            return ""
        cause = "a cause that they share, as a library, or one of them gave it to the others"
        return f"{self.first.describe(names)}: {format_count(len(self.first.seen), 'rank')} of {self.ranks}: {cause}"


def compare_training(run: TrainingRun, golden: Mapping[UnitName, str]) -> TrainingVerdict:
    """Return how a run compares with golden digests, by test and seed."""
    compared: dict[str, bool] = {}
    first: dict[str, StepDifference] = {}
    for series in run.in_causal_order:
        for unit in series.units:
            expected = {rank: series.find_golden(golden, unit, rank) for rank in run.list_given_ranks(unit)}
            if not any(expected.values()):
                continue
            different = _find_difference(series, unit, expected)
            compared[unit.seed] = compared.get(unit.seed, False) or different is not None
            if different:
                first.setdefault(unit.seed, different)
    earliest = first[min(first, key=_count_step)] if first else None
    ranks = max((len(unit.digests) for unit in run.states.units), default=0)
    return TrainingVerdict(len(compared), sum(compared.values()), earliest, ranks)


def _find_difference(series: StepSeries, unit: LoadUnit, expected: Mapping[int, str]) -> StepDifference | None:
    seen = {rank: unit.digests[rank] for rank, digest in expected.items() if digest and unit.digests[rank] != digest}
    return StepDifference(unit, WORDS[series.name], expected[next(iter(seen))], seen) if seen else None


def _count_step(seed: str) -> tuple[int, ...]:
    return tuple(map(int, seed.split(".")))


def list_wrong_losses(run: TrainingRun, *, alike: bool) -> Iterator[tuple[LoadUnit, tuple[int, ...]]]:
    """Yield the steps with a loss that is no number, with the ranks.

    `alike`: all ranks have the same batch, so ranks with another loss than most are wrong too; all, where none is most.
    A rank that gave nothing at all is silent, and not told here.
    """
    for unit in run.losses.units:
        given = run.list_given_ranks(unit)
        wrong = tuple(rank for rank in given if unit.digests[rank] is None)
        if not wrong and alike:
            wrong = _find_outliers({rank: unit.digests[rank] for rank in given})
        if wrong:
            yield unit, wrong


def _find_outliers(losses: Mapping[int, Digest]) -> tuple[int, ...]:
    if len(set(losses.values())) < 2:
        return ()
    usual, count = Counter(losses.values()).most_common(1)[0]
    return tuple(rank for rank, loss in losses.items() if loss != usual or 2 * count <= len(losses))
