"""What training recorded, as series of steps, compared with golden digests step by step. Pure.

A rank is a place in the run. All ranks have one state; gradients and losses differ where ranks have other batches or
other parts of the layers. A site's own training gives its digests and losses too. Losses that cannot be right are found
without golden digests.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from assay.model.evidence import EvidenceDocument
from assay.model.facts import frozen
from assay.model.text.lists import format_count, format_list
from assay.validate.active.unit_results import (
    DIGEST,
    Digest,
    LoadDevice,
    LoadRun,
    LoadUnit,
    UnitName,
    UnreadableRun,
    read_load_run,
    read_units,
)

GOLDEN_STEPS = 20
"""So many steps from the first are golden, then 20, 30, … 100, 200, …: what is wrong stays in the state, so that a
later step vouches for all before."""
SITE_TRAINING = "site_training"
TEST = "train.site"
ENGINE = "site"
SEED = "0"
WORDS = {"loss": "loss", "own": "gradients", "": "state"}


@frozen
class StepSeries:
    """One thing that each step tells: a unit has a digest of each rank, None for a loss that is no number.

    `name`: its last word in golden digests, "" for the state.
    """

    name: str
    units: tuple[LoadUnit, ...]

    def find_golden(self, golden: Mapping[UnitName, str], unit: LoadUnit, rank: int) -> str:
        """Return the golden digest of a rank at a step, "" for none."""
        test = self._name_test(unit)
        return golden.get((f"{test}.{rank}", unit.seed)) or golden.get((test, unit.seed), "")

    def list_golden(self, voters: int) -> Iterator[LoadUnit]:
        """Yield units on which nodes must agree: one of each step if all ranks have the same, else one of each rank."""
        are_alike = all(len(set(unit.digests)) == 1 for unit in self.units)
        for unit in self.units:
            if not is_golden_step(unit.seed):
                continue
            for rank, digest in enumerate(unit.digests[:1] if are_alike else unit.digests):
                test = self._name_test(unit) + ("" if are_alike else f".{rank}")
                yield LoadUnit(test, unit.seed, (digest,) * voters)

    def _name_test(self, unit: LoadUnit) -> str:
        return f"{unit.test}.{self.name}" if self.name else unit.test


@dataclass(frozen=True)
class TrainingRun:
    """One run of training. `load`: what computed it; its units are the states as the GPUs vote on them."""

    load: LoadRun
    states: StepSeries
    gradients: StepSeries
    losses: StepSeries

    @property
    def in_causal_order(self) -> tuple[StepSeries, StepSeries, StepSeries]:
        """What a step makes first stands first: a loss leads to gradients, and these to a state."""
        return self.losses, self.gradients, self.states

    def list_given_ranks(self, unit: LoadUnit) -> list[int]:
        """Return the ranks that gave a state at a unit's step: the others are silent."""
        states = self._digests.get(unit.name, unit.digests)
        return [rank for rank, state in enumerate(states) if state is not None]

    @cached_property
    def _digests(self) -> Mapping[UnitName, tuple[Digest, ...]]:
        return {unit.name: unit.digests for unit in self.states.units}

    def list_golden_units(self) -> LoadRun:
        """Return the run as golden digests are learned from it."""
        voters = len(self.load.devices)
        states = [unit for unit in self.load.units if is_golden_step(unit.seed)]
        beside = [unit for series in (self.gradients, self.losses) for unit in series.list_golden(voters)]
        return replace(self.load, units=(*states, *beside))


def is_golden_step(seed: str) -> bool:
    """Whether golden digests hold the step of a seed `SEED.STEP`."""
    step = seed.rpartition(".")[2]
    return int(step) < GOLDEN_STEPS or not step[1:].strip("0")


def read_training_run(branch: Mapping[str, Any]) -> TrainingRun:
    """Return the run of a branch such as `active.training`. Raises UnreadableRun where it holds none."""
    load = read_load_run(branch)
    gradients, losses = (read_units(branch, name, len(load.devices)) for name in ("own", "loss_bits"))
    return TrainingRun(load, StepSeries("", load.units), StepSeries("own", gradients), StepSeries("loss", losses))


def read_site_training(evidence: EvidenceDocument) -> TrainingRun:
    """Return the run of `active.site_training`: one rank, since its lines do not say which rank tells them.

    Its engine is `site`, and its program the SHA-256 of the declaration. Raises UnreadableRun without digests.
    """
    digests = {step: digest for step, digest in _require(evidence, "digests").items() if DIGEST.fullmatch(str(digest))}
    losses = {step: struct.pack(">d", loss).hex() for step, loss in _require(evidence, "losses").items()}
    gpus, states = tuple(_list_gpus(evidence)), _list_units(digests)
    ended = evidence.read("active", SITE_TRAINING, "ended")
    load = LoadRun(
        devices=gpus,
        units=tuple(replace(unit, digests=unit.digests * len(gpus)) for unit in states),
        engine=ENGINE,
        backend="cuda",
        driver=_read_text(evidence, "probe", "gpu", "driver"),
        runtime=_read_text(evidence, "probe", "gpu", "cuda"),
        program=_read_text(evidence, "active", SITE_TRAINING, "program"),
        cut_short=ended.reason,
    )
    return TrainingRun(load, StepSeries("", states), StepSeries("own", ()), StepSeries("loss", _list_units(losses)))


def _list_units(digests: Mapping[str, str]) -> tuple[LoadUnit, ...]:
    return tuple(LoadUnit(TEST, f"{SEED}.{step}", (digest,)) for step, digest in digests.items())


def _list_gpus(evidence: EvidenceDocument) -> list[LoadDevice]:
    devices = evidence.read("probe", "gpu", "devices").value
    gpus = []
    for place in devices if isinstance(devices, Mapping) else ():
        index, uuid, name = (
            evidence.read("probe", "gpu", "devices", place, field) for field in ("index", "uuid", "name")
        )
        if "value" == index.kind == uuid.kind == name.kind:
            gpus.append(LoadDevice(int(index.value), str(uuid.value), str(name.value)))
    return gpus


def _require(evidence: EvidenceDocument, name: str) -> Mapping[str, Any]:
    reading = evidence.read("active", SITE_TRAINING, name)
    if reading.kind != "value":
        raise UnreadableRun(name, reading.kind, reading.reason)
    if not isinstance(reading.value, Mapping):
        raise UnreadableRun(name, "failed", f"is no branch: {reading.value!r}")
    return reading.value


def _read_text(evidence: EvidenceDocument, *path: str) -> str:
    reading = evidence.read(*path)
    return str(reading.value) if reading.kind == "value" else ""


@frozen
class StepDifference:
    """What differs from the golden digest at one step: `quantity` of these ranks, with what they have."""

    unit: LoadUnit
    quantity: str
    expected: str
    seen: Mapping[int, Digest]

    def describe(self, names: Mapping[int, str]) -> str:
        """Return it in one line. `names` of GPUs are by rank."""
        seed, _, step = self.unit.seed.rpartition(".")
        rank, digest = next(iter(self.seen.items()))
        ranks = format_list((names.get(place, f"rank {place}") for place in self.seen), 8)
        shown = f"{digest or 'no number'}, not {self.expected}"
        return f"{self.unit.test}, seed {seed}, step {step}: {self.quantity} of {ranks} ({shown} on rank {rank})"


@frozen
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
            seen = {}
            for rank, digest in expected.items():
                if digest and unit.digests[rank] != digest:
                    seen[rank] = unit.digests[rank]
            compared[unit.seed] = compared.get(unit.seed, False) or bool(seen)
            if seen:
                right = expected[next(iter(seen))]
                first.setdefault(unit.seed, StepDifference(unit, WORDS[series.name], right, seen))
    earliest = first[min(first, key=lambda seed: tuple(map(int, seed.split("."))))] if first else None
    ranks = max((len(unit.digests) for unit in run.states.units), default=0)
    return TrainingVerdict(len(compared), sum(compared.values()), earliest, ranks)


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
